"""The clients: producer, consumer and admin, for asyncio and, by `blocking.py`, for code without an event loop.

What applications import lies here; what is behind it lies in rooms, from below: `batches/` (what is sent), `cluster/`
(whom to call), `fetching/` (what is read), `group/`, `transactions/`, `administration/`, `handover/` (of the blocking
clients). Cores decide and do no I/O: `batches/accumulator.py`, `batches/numbering.py` (idempotence),
`batches/partitioning.py`, `transactions/machine.py`, `cluster/metadata_cache.py`, `fetching/position.py`,
`group/member_core.py`. Shells carry it out: `sender.py`, `fetching/loop.py`, `cluster/link.py`. It may import the rest
of quorumlog but `spark` and `testing`. Begin with `producer.py` or `consumer.py`.
"""
