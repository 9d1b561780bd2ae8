"""Scenarios of `jepsen live`: fixed sequences of strikes at a cluster of a stated shape, with promises of their own.

Clients, checks, audit and report are those of every live run. The files:

    catalogue.py                       the scenarios by name, and what of one cannot be done on this machine
    striker.py                         chooses the victim of each strike, and makes its blow
    volumes.py, directory_faults.py    file systems that can be struck, and the ways to strike a log directory
    directories.py                     one log directory fails and comes back, and nothing else does
    network.py                         blows at links, by the proxy before each node
    upgrades.py                        nodes of earlier software are replaced by this tree's
    moves.py                           partitions move while brokers and controllers are killed
    after.py                           what the clients saw meanwhile
"""
