"""Reading, and writing, partition directories of another cluster: Apache Kafka's, or another of ours.

Nothing here opens a log of this node, and nothing changes what it reads: `source.py` is a partition directory and what
its neighbours say of it, `examine.py` reads it whole once, `kafka_metadata.py` finds a topic's settings in the metadata
log beside it.
"""
