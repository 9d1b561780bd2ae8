"""One partition as clients see it: the same fields in Metadata and in DescribeTopicPartitions.

If the leader's broker is not alive, the partition has no leader; replicas on brokers that are not alive are offline.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE, NodeId
from quorumlog.messages.admin import PartitionDescription
from quorumlog.messages.cluster import PartitionMetadata
from quorumlog_quorum.metadata.registration import PartitionRegistration

Described = TypeVar("Described", PartitionMetadata, PartitionDescription)


def described(
    kind: type[Described], index: int, partition: PartitionRegistration, live: Collection[NodeId]
) -> Described:
    """live: brokers that are registered and unfenced. The error is LEADER_NOT_AVAILABLE if none of them leads."""
    leader = partition.leader if partition.leader in live else NO_NODE
    return kind(
        error_code=ErrorCode.NONE if leader != NO_NODE else ErrorCode.LEADER_NOT_AVAILABLE,
        index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replicas=partition.replicas,
        isr=partition.isr,
        offline_replicas=tuple(replica for replica in partition.replicas if replica not in live),
        eligible_leader_replicas=partition.eligible_leader_replicas,
        last_known_elr=partition.last_known_elr,
        leader_recovery_state=partition.leader_recovery_state,
    )
