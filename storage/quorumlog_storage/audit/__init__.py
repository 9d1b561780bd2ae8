"""The auditor: reads the files of stopped nodes and says, to the byte, what is wrong with them.

It changes nothing and trusts nothing. It shares no code with recovery, the indexes or the producer state: each check is
a second, plainer answer, computed from the batches.

    log_audit.py        one log: its segments from front to back, once; what each file beside them says, is compared
    directory_audit.py  a log directory: its own files, and every log in it
    compare.py          several replicas of one partition against each other

Memory is bounded: one window of a file, one batch, and the entries that a producer or an epoch needs.
"""
