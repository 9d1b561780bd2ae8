"""Many simulations in a few processes at a time, each in a process of its own.

`job.py` is one simulation, `template.py` the process that is forked for each, `runner.py` runs one job after the other,
`pool.py` runs a few of them side by side.
"""
