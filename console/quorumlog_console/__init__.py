"""The console: a cluster in a browser, to look at and not to change.

It asks the cluster by `quorumlog.client` only, as the principal that has logged in where the cluster asks who its
clients are. Pages are made here, on the server; it has one thread and one loop of its own.
"""
