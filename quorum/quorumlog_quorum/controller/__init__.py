"""The controller: what the quorum's leader writes into the metadata log, for brokers and for clients.

A request comes to `service.py` and is looked up in the table of `requests.py`. Its operation (one file per API, for
example `create_topics.py`; what several share in `election.py`, `fencing.py`, `sweep.py`) is a generator that adds
records to a `Draft`. `runner.py` runs it slice by slice and appends each slice; `operation_queue.py` says whose turn it
is, `pending.py` what other operations must reckon with meanwhile. The answer waits in `commit_waiters.py`. Beside the
requests, `sessions.py` and `failure_detector.py` decide when a broker is fenced. Everything but `service.py`,
`runner.py`, `call.py`, `commit_waiters.py` and `broker_liveness.py` is a core: no event loop, no clock. The controller
reads images and writes records; it knows the quorum only as a log to append to (`MetadataDriver`).
"""
