"""The log engine, for partitions and for the quorum's metadata log. Pure but for `edge/`, which touches the machine.

`partition_log.py` owns a partition's files, `checkpointed_log.py` a log and its recovery point. `log.py` is the log,
`segment.py` one of its segments; `recovery.py` opens a log again. `writer.py` and `worker.py` change files turn by
turn, `directory_life.py` is the state of a log directory. `disk.py` is the seam to a disk. It may import quorumlog's
records, ids and errors. Begin with `log.py`.
"""
