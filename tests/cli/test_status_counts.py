"""What `quorumlog status` counts of partitions: a reassignment alone leaves the cluster HEALTHY."""

from __future__ import annotations

from quorumlog.client.administration.partitions import Reassignment
from quorumlog.messages.cluster import PartitionMetadata, TopicMetadata
from quorumlog_cli.commands.nodes.status import partition_counts


def topic(*isr: int) -> TopicMetadata:
    part = PartitionMetadata(index=0, leader_id=1, replicas=(4, 1, 2, 3), isr=isr)
    return TopicMetadata(name="orders", partitions=(part,))


def test_a_replica_that_is_being_added_is_not_missed() -> None:
    moving = {("orders", 0): Reassignment((4, 1, 2, 3), (4,), (3,))}
    assert partition_counts([topic(1, 2, 3)], moving) == {"partitions": 1, "under_replicated": 0, "without_leader": 0}
    assert partition_counts([topic(1, 2)], moving)["under_replicated"] == 1
    assert partition_counts([topic(1, 2, 3)], {})["under_replicated"] == 1
