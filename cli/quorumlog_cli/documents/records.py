"""What `produce` and `consume` print, and `topic`."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict


class FirstPlace(TypedDict):
    partition: int
    offset: int


class Produced(TypedDict):
    topic: str
    acknowledged: int
    failed: int
    may_be_duplicated: int
    first: FirstPlace | None


class Header(TypedDict):
    """value_base64 in place of value: it is no UTF-8."""

    name: str
    value: NotRequired[str | None]
    value_base64: NotRequired[str]


class Consumed(TypedDict):
    """key_base64, value_base64 in place of key, value: they are no UTF-8."""

    topic: str
    partition: int
    offset: int
    timestamp: Annotated[int, "milliseconds since 1970"]
    key: NotRequired[str | None]
    key_base64: NotRequired[str]
    value: NotRequired[str | None]
    value_base64: NotRequired[str]
    headers: list[Header]


class TopicCreated(TypedDict):
    topic: str
    topic_id: str | None
    partitions: int
    replication_factor: int
    created: bool


class TopicOfFile(TopicCreated):
    """With -f FILE."""

    differences: Annotated[list[str], "between the file and a topic that exists"]


class TopicRow(TypedDict):
    topic: str
    topic_id: str
    partitions: int
    replication_factor: int
    state: str


class DescribedPartition(TypedDict):
    """end_offset: exclusive; null, as first_offset, where the partition has no leader."""

    partition: int
    leader: int | None
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    eligible_leaders: list[int]
    last_known_leader: int | None
    recovering: bool
    first_offset: int | None
    end_offset: int | None


class Topic(TypedDict):
    """configs: null if we may not see them."""

    topic: str
    topic_id: str
    partitions: list[DescribedPartition]
    replication_factor: int
    state: str
    configs: dict[str, str | None] | None


class TopicsDeleted(TypedDict):
    deleted: list[str]
    failed: dict[str, str]


class TopicAltered(TypedDict):
    topic: str
    partitions: int | None
    configs: dict[str, str]
    altered: bool


class PartitionOffsets(TypedDict):
    partition: int
    first_offset: int
    end_offset: int
    offsets: int
    records: NotRequired[int]
    offset_at: NotRequired[int | None]


class Truncated(TypedDict):
    partition: int
    first_offset: int
