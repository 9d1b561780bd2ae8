"""The clients: producer, consumer and admin, for asyncio and, by `blocking.py`, for code without an event loop.

Cores decide and do no I/O: `accumulator.py` (batches), `numbering.py` (idempotence), `transactions/machine.py`,
`metadata_cache.py`, `fetch_position.py`, `partitioning.py`. Shells carry it out: `sender.py`, `fetch_loop.py`,
`link.py`. It may import the rest of quorumlog but `spark` and `testing`. Begin with `producer.py` or `consumer.py`.
"""
