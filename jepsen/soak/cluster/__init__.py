"""A virtual day of a whole simulated cluster: quorum, replication, clients, an operator, and faults.

All nodes are production code on simulated machines, as in `jepsen/sim`. What that checks after every step is left to
it, and timers are slow, because a day is long. Here the curves count: files, descriptors, memory, the metadata log,
starts.
"""
