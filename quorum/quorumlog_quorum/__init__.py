"""The metadata quorum: `raft` decides, the driver carries it out, `metadata` is what the log says, `controller` writes.

`node/driver.py` is the entrance: it owns the metadata log (`disk`) and turns the effects of the Raft core into writes,
calls and answers (`node/raft_loop.py`, `node/effect_queue.py`). `node/committed.py` delivers what is committed; brokers
see it only through `metadata/`, of which `subscription.py` is a part. `snapshots` are files, `snapshot_service` what a
running node does with them; `offline` is for stopped nodes. It may import storage and quorumlog. Begin with
`node/driver.py`.
"""
