"""Soaks: what must stay bounded when the product runs for a long time.

`year/`: the log directories of one broker for a virtual year, under load and faults. `cluster/`: a whole simulated
cluster for a virtual day. `processes/`: real nodes for some minutes, with short settings. Each samples the same kind of
gauges (`gauges.py`), holds them to bounds that follow from the settings, and draws them (`page.py`).
"""
