"""Records of `__consumer_offsets` that the classic protocol writes: committed offsets, and groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from quorumlog.ids import ZERO_UUID, Epoch, Offset, Uuid
from quorumlog.records.coordinator.layout import (
    BYTES,
    INT,
    LONG,
    NULLABLE_TEXT,
    TEXT,
    UUID,
    Field,
    Layout,
    array,
)

NO_TIMESTAMP = -1
EXPIRE_TAG = 10_000  # in the value of an offset: far above those that Kafka gives out


class OffsetKey(NamedTuple):
    """Types 0 and 1. Type 0 is of old software, and means the same."""

    group: str
    topic: str
    partition: int


class GroupMetadataKey(NamedTuple):
    """Type 2."""

    group: str


@dataclass(frozen=True, slots=True)
class OffsetCommitValue:
    """How far a group has come in a partition. Times in ms since 1970, -1 where there is none.

    No version of Kafka's has both, an expire time and the topic's id. Newer ones that do are ours: Kafka skips the tag,
    and goes by its own retention.
    """

    offset: Offset
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = NO_TIMESTAMP
    leader_epoch: Epoch = -1
    topic_id: Uuid = ZERO_UUID


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """A member of a classic group. Time-outs in ms. subscription, assignment: bytes that only clients understand."""

    member_id: str
    client_id: str
    client_host: str
    session_timeout: int
    subscription: bytes
    assignment: bytes
    rebalance_timeout: int = -1
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupMetadataValue:
    """A classic group in a stable generation, or an empty one."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    members: tuple[MemberMetadata, ...]
    current_state_timestamp: int = NO_TIMESTAMP


OFFSET_COMMIT = Layout(
    OffsetCommitValue,
    Field("offset", LONG),
    Field("leader_epoch", INT, since=3),
    Field("metadata", TEXT),
    Field("commit_timestamp", LONG),
    Field("expire_timestamp", LONG, since=1, until=1),
    Field("topic_id", UUID, since=4, tag=0, default=ZERO_UUID),
    Field("expire_timestamp", LONG, since=4, tag=EXPIRE_TAG, default=NO_TIMESTAMP),
    newest=4,
    flexible_since=4,
)

_MEMBER = Layout(
    MemberMetadata,
    Field("member_id", TEXT),
    Field("group_instance_id", NULLABLE_TEXT, since=3),
    Field("client_id", TEXT),
    Field("client_host", TEXT),
    Field("rebalance_timeout", INT, since=1),
    Field("session_timeout", INT),
    Field("subscription", BYTES),
    Field("assignment", BYTES),
)

GROUP_METADATA = Layout(
    GroupMetadataValue,
    Field("protocol_type", TEXT),
    Field("generation", INT),
    Field("protocol", NULLABLE_TEXT),
    Field("leader", NULLABLE_TEXT),
    Field("current_state_timestamp", LONG, since=2),
    Field("members", array(_MEMBER.kind)),
    newest=4,
    flexible_since=4,
)
