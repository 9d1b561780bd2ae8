"""What `group` and `transaction` print."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from quorumlog_cli.documents.common import TopicPartition


class GroupListed(TypedDict):
    group: str
    type: str
    protocol_type: str
    state: str


class GroupOffset(TypedDict):
    """lag: distance of offsets. records: readable ones that are not committed; null: not counted."""

    group: str
    topic: str
    partition: int
    current_offset: int | None
    log_end_offset: int | None
    lag: int | None
    consumer_id: str | None
    host: str | None
    client_id: str | None
    leader_epoch: int | None
    records: int | None
    behind_ms: int | None
    is_estimate: bool


class GroupMember(TypedDict):
    """With --members. assignment: topics with their partitions."""

    group: str
    consumer_id: str
    host: str
    client_id: str
    partitions: int
    assignment: dict[str, list[int]]
    instance_id: str | None
    current_epoch: int | None
    target_epoch: int | None
    target_assignment: dict[str, list[int]] | None
    upgraded: bool | None


class GroupState(TypedDict):
    """With --state."""

    group: str
    coordinator: int
    address: str | None
    assignment_strategy: str | None
    state: str
    members: int
    group_epoch: int | None
    target_assignment_epoch: int | None


class GroupDeleted(TypedDict):
    group: str
    deleted: bool
    error: str | None


class OffsetsDeleted(TypedDict):
    topic: str
    partition: int
    deleted: bool
    error: str | None


class TopicLag(TypedDict):
    topic: str
    total: int
    max: int
    distance: int
    behind_ms: int | None
    is_estimate: bool
    is_read: Annotated[bool, "whether a member reads it"]


class GroupLag(TypedDict):
    """The last three with --eta. counted_in: records or offsets."""

    group: str
    state: str
    members: int
    counted_in: str
    total: int
    max: int
    distance: int
    behind_ms: int | None
    is_estimate: bool
    topics: list[TopicLag]
    in_per_second: NotRequired[float | None]
    out_per_second: NotRequired[float | None]
    clear_in_ms: NotRequired[int | None]


class OffsetReset(TypedDict):
    group: str
    topic: str
    partition: int
    new_offset: int


class TransactionListed(TypedDict):
    transactional_id: str
    coordinator: int
    producer_id: int
    state: str
    joint_group: str | None


class Transaction(TypedDict):
    coordinator: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_time_ms: int | None
    duration_ms: int | None
    partitions: list[TopicPartition]
    joint_group: str | None


class PartitionProducer(TypedDict):
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    last_sequence: int | None
    last_timestamp_ms: int | None
    transaction_start_offset: int | None


class Hanging(TypedDict):
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    start_offset: int
    last_timestamp_ms: int
    duration_ms: int
    transactional_id: str | None


class Aborted(TypedDict):
    """With --topic."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    aborted: bool


class Fenced(TypedDict):
    """With a transactional id."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    fenced: bool
