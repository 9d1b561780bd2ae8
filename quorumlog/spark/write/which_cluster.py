"""Which form of exactly-once writes a cluster takes: joint transactions, or decisions in a topic of an Apache Kafka."""

from __future__ import annotations

from quorumlog.client.blocking import Cluster

OUR_FEATURE = "metadata.version"  # with a level of ours; Kafka's own is told under another name
OLDER = (
    "this quorumlog is older than the joint transactions by which a batch is written exactly once: upgrade its nodes, "
    'or say .option("delivery", "at-least-once") if that will do'
)


def is_quorumlog(cluster: Cluster) -> bool:
    """Raises what the client raises: a cluster that does not say is neither."""
    return any(one.name == OUR_FEATURE for one in cluster.admin.describe_features().features)
