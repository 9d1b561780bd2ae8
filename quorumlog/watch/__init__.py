"""A cluster as its protocol shows it, watched over time: one sample after the other, a bounded past, and what follows
from both. It asks by `quorumlog.client` only, so it watches a cluster of Apache Kafka as well.
"""
