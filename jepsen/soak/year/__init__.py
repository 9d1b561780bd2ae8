"""A virtual year of one broker's log directories, without a quorum and without a network.

The data plane of the broker is production code: directories, logs, retention, cleaner, checkpoints, recovery. In place
of the quorum there is an `Authority`, in place of the clients a `Load`; the disks are simulated, and time is virtual.
"""
