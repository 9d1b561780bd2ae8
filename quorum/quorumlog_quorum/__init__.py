"""The metadata quorum: `raft` decides, the driver carries it out, `metadata` is what the log says, `controller` writes.

`driver.py` is the entrance: it owns the metadata log and turns the effects of the Raft core into writes, calls and
answers (`raft_loop.py`, `effect_queue.py`). `committed.py` delivers what is committed; brokers see it only through
`subscription.py` and `metadata/`. It may import storage and quorumlog. Begin with `driver.py`.
"""
