"""Changes that clients make to the log of a leader: appends, deletion of records; and forgotten producers.

An append is validated, stamped and queued in one synchronous call; only its result is awaited. The room may use
`replicas` and below, and does not know `fetch`. Begin with `produce_path.py`.
"""
