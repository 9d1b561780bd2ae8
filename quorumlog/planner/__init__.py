"""Where replicas should lie: plans that drain, balance, fill and move, decided from a picture of the cluster.

Pure: no clock, no randomness, no I/O. The same picture gives the same plan. `cluster.py` is the picture, `plan.py` the
result, `plan_file.py` its text; each other module makes one kind of plan.
"""
