"""Log directories: their queues of changes, where each replica's log lies, its files and checkpoints.

All file operations run in a directory's worker; callbacks come back on the loop. The room knows a replica only as a
`HostedReplica`. It may use `partition` and storage. Begin with `log_directory.py`.
"""
