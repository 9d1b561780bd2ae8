"""Mirrors topics, settings and groups of a cluster into another one (decision 118).

In the order of the data: origin (where a copy came from), naming (which topics, and their names on the target),
settings (what the target's topics need), entries (which topics hold copies), kept (the mirror's file beside Spark's
checkpoint), rows (a batch of Spark's rows as rows to write), translation (groups' offsets),
internal_records (heartbeats and checkpoints), all pure; sides (calls to the two clusters), groups, job (the query and
its timer).
"""
