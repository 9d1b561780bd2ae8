"""Records of `__consumer_offsets` that the consumer protocol writes (KIP-848). All of their values are flexible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from quorumlog.ids import Uuid
from quorumlog.records.coordinator.layout import (
    BYTE,
    BYTES,
    INT,
    LONG,
    NULLABLE_TEXT,
    TEXT,
    UUID,
    Field,
    Layout,
    array,
    optional_struct,
)


class ConsumerGroupMetadataKey(NamedTuple):
    """Type 3."""

    group_id: str


class ConsumerGroupPartitionMetadataKey(NamedTuple):
    """Type 4, of old software: read, and deleted by a tombstone, never written."""

    group_id: str


class ConsumerGroupMemberMetadataKey(NamedTuple):
    """Type 5."""

    group_id: str
    member_id: str


class ConsumerGroupTargetAssignmentMetadataKey(NamedTuple):
    """Type 6."""

    group_id: str


class ConsumerGroupTargetAssignmentMemberKey(NamedTuple):
    """Type 7."""

    group_id: str
    member_id: str


class ConsumerGroupCurrentMemberAssignmentKey(NamedTuple):
    """Type 8."""

    group_id: str
    member_id: str


class ConsumerGroupRegularExpressionKey(NamedTuple):
    """Type 16."""

    group_id: str
    regular_expression: str


@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadataValue:
    """metadata_hash: of the subscribed topics; it is only compared. 0 means no topics."""

    epoch: int
    metadata_hash: int = 0


@dataclass(frozen=True, slots=True)
class PartitionRacks:
    partition: int
    racks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribedTopic:
    topic_id: Uuid
    topic_name: str
    num_partitions: int
    partition_metadata: tuple[PartitionRacks, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupPartitionMetadataValue:
    topics: tuple[SubscribedTopic, ...]


@dataclass(frozen=True, slots=True)
class ClassicProtocol:
    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class ClassicMemberMetadata:
    """What a member of a consumer group said if it speaks the classic protocol. session_timeout_ms: in ms."""

    session_timeout_ms: int
    supported_protocols: tuple[ClassicProtocol, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupMemberMetadataValue:
    """subscribed_topic_names: sorted. classic_member_metadata: None if it speaks the consumer protocol."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic_member_metadata: ClassicMemberMetadata | None = None


@dataclass(frozen=True, slots=True)
class ConsumerGroupTargetAssignmentMetadataValue:
    assignment_epoch: int
    assignment_timestamp: int = 0


@dataclass(frozen=True, slots=True)
class TargetPartitions:
    topic_id: Uuid
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupTargetAssignmentMemberValue:
    topic_partitions: tuple[TargetPartitions, ...]


@dataclass(frozen=True, slots=True)
class AssignedPartitions:
    """assignment_epochs: since which epoch the member has each partition, in their order (KIP-1251). None: unknown."""

    topic_id: Uuid
    partitions: tuple[int, ...]
    assignment_epochs: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class ConsumerGroupCurrentMemberAssignmentValue:
    """state: 0 STABLE, 1 UNREVOKED_PARTITIONS, 2 UNRELEASED_PARTITIONS, 127 UNKNOWN."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: tuple[AssignedPartitions, ...]
    partitions_pending_revocation: tuple[AssignedPartitions, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupRegularExpressionValue:
    """version: the offset of the metadata image that the names were found in. timestamp: in ms."""

    topics: tuple[str, ...]
    version: int
    timestamp: int


GROUP = Layout(ConsumerGroupMetadataValue, Field("epoch", INT), Field("metadata_hash", LONG, tag=0, default=0))

_RACKS = Layout(PartitionRacks, Field("partition", INT), Field("racks", array(TEXT)))
_SUBSCRIBED = Layout(
    SubscribedTopic,
    Field("topic_id", UUID),
    Field("topic_name", TEXT),
    Field("num_partitions", INT),
    Field("partition_metadata", array(_RACKS.kind)),
)
PARTITION_METADATA = Layout(ConsumerGroupPartitionMetadataValue, Field("topics", array(_SUBSCRIBED.kind)))

_PROTOCOL = Layout(ClassicProtocol, Field("name", TEXT), Field("metadata", BYTES))
_CLASSIC = Layout(
    ClassicMemberMetadata, Field("session_timeout_ms", INT), Field("supported_protocols", array(_PROTOCOL.kind))
)
MEMBER = Layout(
    ConsumerGroupMemberMetadataValue,
    Field("instance_id", NULLABLE_TEXT),
    Field("rack_id", NULLABLE_TEXT),
    Field("client_id", TEXT),
    Field("client_host", TEXT),
    Field("subscribed_topic_names", array(TEXT)),
    Field("subscribed_topic_regex", NULLABLE_TEXT),
    Field("rebalance_timeout_ms", INT),
    Field("server_assignor", NULLABLE_TEXT),
    Field("classic_member_metadata", optional_struct(_CLASSIC), tag=0),
)

TARGET = Layout(
    ConsumerGroupTargetAssignmentMetadataValue,
    Field("assignment_epoch", INT),
    Field("assignment_timestamp", LONG, tag=0, default=0),
)

_TARGET_PARTITIONS = Layout(TargetPartitions, Field("topic_id", UUID), Field("partitions", array(INT)))
TARGET_MEMBER = Layout(
    ConsumerGroupTargetAssignmentMemberValue, Field("topic_partitions", array(_TARGET_PARTITIONS.kind))
)

_ASSIGNED = Layout(
    AssignedPartitions,
    Field("topic_id", UUID),
    Field("partitions", array(INT)),
    Field("assignment_epochs", array(INT, nullable=True), tag=0),
)
CURRENT_MEMBER = Layout(
    ConsumerGroupCurrentMemberAssignmentValue,
    Field("member_epoch", INT),
    Field("previous_member_epoch", INT),
    Field("state", BYTE),
    Field("assigned_partitions", array(_ASSIGNED.kind)),
    Field("partitions_pending_revocation", array(_ASSIGNED.kind)),
)

REGULAR_EXPRESSION = Layout(
    ConsumerGroupRegularExpressionValue, Field("topics", array(TEXT)), Field("version", LONG), Field("timestamp", LONG)
)
