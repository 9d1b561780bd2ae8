"""Reads from the log of a leader: by consumers below the high watermark, by followers up to its end.

`fetch_path.py` is the way of a request; the session modules keep what a reader asked for and was sent (KIP-227);
`counted_partition.py` and `counting_scope.py` are how a consumer waits for many bytes;
`offset_queries.py` answers questions about offsets without records. The room may use `replicas` and below, and does not
know `produce`. Begin with `fetch_path.py`.
"""
