"""One partition as clients see it: the same fields in Metadata and in DescribeTopicPartitions.

If the leader's broker is not alive, the partition has no leader. Offline are the replicas on brokers that are not
alive, and those in a log directory that is not online, also if only its broker knows which one that was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE, NodeId, Uuid
from quorumlog.messages.admin import PartitionDescription
from quorumlog.messages.cluster import PartitionMetadata
from quorumlog_quorum.metadata.registration import BrokerRegistration, PartitionRegistration

Described = TypeVar("Described", PartitionMetadata, PartitionDescription)


def described(
    kind: type[Described], index: int, partition: PartitionRegistration, live: Mapping[NodeId, BrokerRegistration]
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
        offline_replicas=tuple(
            [
                replica
                for replica, directory in zip(partition.replicas, partition.directories, strict=True)
                if _is_offline(directory, live.get(replica))
            ]
        ),
        eligible_leader_replicas=partition.eligible_leader_replicas,
        last_known_elr=partition.last_known_elr,
        leader_recovery_state=partition.leader_recovery_state,
    )


def _is_offline(directory: Uuid, broker: BrokerRegistration | None) -> bool:
    """broker: None if it is not alive. It names its online directories; old software named none."""
    return broker is None or (bool(broker.log_directories) and not broker.is_online(directory))
