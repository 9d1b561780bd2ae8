"""Log directories: their queues of jobs, the directory of each replica's log, checkpoints, and deleted files.

All file operations run in a directory's worker; callbacks come back on the loop. How a partition's files change is
`quorumlog_storage/directory/partition_log.py`, and the states of a directory are
`quorumlog_storage/writer/directory_life.py`. The room knows a replica only as a `HostedReplica`. It may use `partition`
and storage. Begin with `log_directory.py`.
"""
