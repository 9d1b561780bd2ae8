"""Which brokers keep a partition, and which of them leads it (KIP-455, KIP-460).

Field by field these are Kafka's messages under our names. The active controller answers all of them; brokers
forward
them to it. Reassignments under way are also in every broker's metadata.

Written by `./dev proto` from proto/quorumlog/v1/reassignments.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class AlterPartitionReassignmentsRequest:
    """Each partition is accepted, cancelled or refused alone. The answer comes once the reassignment has begun; what
    is
    under way is listed by ListPartitionReassignments.

    allow_replication_factor_change: False: a target with another number of replicas than the partition has is
    refused.
    """

    topics: tuple[ReassignableTopic, ...] = ()
    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True


@message(frozen=True, slots=True, kw_only=True)
class ReassignableTopic:
    name: str
    partitions: tuple[ReassignablePartition, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ReassignablePartition:
    """replicas: The brokers that keep the partition in the end, preferred leader first.
    cancel: True: end the reassignment under way and go back to the replicas before it; `replicas` is ignored.
    Kafka's null.
    """

    index: int
    replicas: tuple[int, ...] = ()
    cancel: bool = False


@message(frozen=True, slots=True, kw_only=True)
class AlterPartitionReassignmentsResponse:
    error_code: int = 0
    error_message: str = ""
    allow_replication_factor_change: bool = True
    topics: tuple[ReassignableTopicResult, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class ReassignableTopicResult:
    name: str
    partitions: tuple[ReassignablePartitionResult, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ReassignablePartitionResult:
    """error_code: INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR, NO_REASSIGNMENT_IN_PROGRESS,
    UNKNOWN_TOPIC_OR_PARTITION.
    """

    index: int
    error_code: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class ListPartitionReassignmentsRequest:
    """all_topics: True: every reassignment under way; `topics` is ignored."""

    all_topics: bool = True
    topics: tuple[ReassignmentsOfTopic, ...] = ()
    timeout_ms: int = 60000


@message(frozen=True, slots=True, kw_only=True)
class ReassignmentsOfTopic:
    name: str
    partitions: tuple[int, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ListPartitionReassignmentsResponse:
    """Partitions that are not being reassigned, or do not exist, are left out."""

    error_code: int = 0
    error_message: str = ""
    topics: tuple[OngoingTopicReassignment, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class OngoingTopicReassignment:
    name: str
    partitions: tuple[OngoingPartitionReassignment, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class OngoingPartitionReassignment:
    """replicas: All that keep the partition now: the target, then those that are about to be removed."""

    index: int
    replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ElectLeadersRequest:
    """election_type: 0: the preferred replica, which is the first one. 1: any live replica, where no other one can
    lead; acknowledged
        records may be lost (Kafka's numbers).
    all_partitions: True: every partition that needs such an election; `topics` is ignored, and the answer leaves
    out partitions that
        need none.
    """

    election_type: int = 0
    all_partitions: bool = True
    topics: tuple[ElectionTopic, ...] = ()
    timeout_ms: int = 60000


@message(frozen=True, slots=True, kw_only=True)
class ElectionTopic:
    name: str
    partitions: tuple[int, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ElectLeadersResponse:
    error_code: int = 0
    error_message: str = ""
    topics: tuple[ElectionTopicResult, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class ElectionTopicResult:
    name: str
    partitions: tuple[ElectionPartitionResult, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ElectionPartitionResult:
    """error_code: ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION.
    """

    index: int
    error_code: int = 0
    error_message: str = ""
