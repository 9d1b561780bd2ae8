"""Which production functions a simulation runs, and which it never does.

`tracing.py` notes the functions that run, `defined.py` lists those that are there, `reached.py` compares the two.
"""
