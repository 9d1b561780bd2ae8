"""Compaction of this broker's logs: which log comes next, up to where, and what became of it.

`choice.py`, `states.py` and `failures.py` are cores: values in, decisions out. `manager.py` is their shell: it takes
the filthiest log, lets a `Runner` do a round of it (quorumlog_storage/cleaning/), has the directory's writer swap in
each group, and notes how far the log is clean. A runner is a process of its own on a real machine; in a simulation the
same round runs slice by slice in the directory's reader (`sliced.py`). `explained.py` says why a log is, or is not,
compacted.
"""
