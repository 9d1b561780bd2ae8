"""The controller: what the quorum's leader writes into the metadata log, for brokers and for clients.

A request comes to `shell/service.py` and is looked up in the table of `requests/requests.py`. Its operation (one file
per API, for example `requests/create_topics.py`; what several share is in `partitions` and `bulk_changes`) is a
generator that adds records to a `Draft` (`engine`). `shell/runner.py` runs it slice by slice and appends each slice;
`engine/operation_queue.py` says whose turn it is, `engine/pending.py` what other operations must reckon with meanwhile.
The answer waits in `shell/commit_waiters.py`. Beside the requests, `engine/sessions.py` and
`engine/failure_detector.py` decide when a broker is fenced; `core.py` joins both. Everything but `shell` is a core: no
event loop, no clock. The controller reads images and writes records; it knows the quorum only as a log to append to
(`MetadataDriver`).
"""
