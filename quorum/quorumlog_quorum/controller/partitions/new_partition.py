"""A new partition: what its replicas must be, and its first record."""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId, Uuid
from quorumlog.messages.metadata_records import PartitionRecord
from quorumlog_quorum.controller.partitions.election import Brokers, default_directory


def check_replicas(brokers: Brokers, index: int, replicas: tuple[NodeId, ...]) -> None:
    """Check the replicas that a request assigns to a partition. Raises ApiError(INVALID_REPLICA_ASSIGNMENT)."""
    if not replicas or len(set(replicas)) < len(replicas):
        raise bad_assignment(f"partition {index} needs one or more different brokers, has {list(replicas)}")
    for broker_id in replicas:
        if broker_id not in brokers:
            raise bad_assignment(f"partition {index}: broker {broker_id} is not registered")
        if brokers[broker_id].is_cordoned:
            raise bad_assignment(f"partition {index}: broker {broker_id} has only cordoned log directories")
    if not any(brokers[broker_id].takes_replicas for broker_id in replicas):
        raise bad_assignment(f"partition {index}: all of {list(replicas)} are fenced or shutting down")


def bad_assignment(reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)


def partition_record(brokers: Brokers, topic_id: Uuid, index: int, replicas: tuple[NodeId, ...]) -> PartitionRecord:
    """The ISR is the replicas that are active, in their order; the first of them leads. At least one must be active."""
    isr = tuple(broker_id for broker_id in replicas if brokers[broker_id].takes_replicas)
    return PartitionRecord(
        partition=index,
        topic_id=topic_id,
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        directories=tuple(default_directory(brokers[broker_id]) for broker_id in replicas),
    )
