"""Moves of replicas between the log directories of this broker (KIP-113, KIP-858).

- `manager.py`: which moves there are; what an operator may ask for, what a start finds
- `mover.py`: one move, from its future log to the exchange
- `exchange.py`: the log for its copy, while the replica goes on to serve
- `progress.py`: how far a move is, and when it will end; pure
- `jobs.py`: work of a directory, awaited

`quorumlog_storage/moves/` says what is on the disks at each point.
"""
