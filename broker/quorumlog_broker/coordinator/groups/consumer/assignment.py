"""Partitions in the forms that are needed: flat for the arithmetic of sets, by topic in records and messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from quorumlog.ids import Epoch, Uuid
from quorumlog.messages.groups import TopicIdPartitions
from quorumlog.records.coordinator.consumer_groups import AssignedPartitions, TargetPartitions

Partition = tuple[Uuid, int]
"""(topic id, index)"""

Target = tuple[TargetPartitions, ...]
"""What a member shall own, in the order of topic ids and indexes."""


class OfTopic(Protocol):
    """Records and messages have this form."""

    @property
    def topic_id(self) -> Uuid: ...

    @property
    def partitions(self) -> tuple[int, ...]: ...


def flat(topics: Iterable[OfTopic]) -> set[Partition]:
    return {(topic.topic_id, index) for topic in topics for index in topic.partitions}


def by_topic(partitions: Iterable[Partition]) -> dict[Uuid, list[int]]:
    """In the order of topic ids and indexes."""
    found: dict[Uuid, list[int]] = {}
    for topic_id, index in sorted(partitions):
        found.setdefault(topic_id, []).append(index)
    return found


def to_target(partitions: Mapping[Uuid, Iterable[int]]) -> Target:
    return tuple(
        TargetPartitions(topic_id, tuple(sorted(indexes)))
        for topic_id, indexes in sorted(partitions.items())
        if indexes
    )


def to_message(partitions: Iterable[Partition]) -> tuple[TopicIdPartitions, ...]:
    return tuple(
        TopicIdPartitions(topic_id=topic_id, partitions=tuple(indexes))
        for topic_id, indexes in by_topic(partitions).items()
    )


def with_epochs(topics: Iterable[AssignedPartitions], unknown: Epoch) -> dict[Partition, Epoch]:
    """Since which epoch the member has each partition. unknown: where the record does not say."""
    found: dict[Partition, Epoch] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = (unknown,) * len(topic.partitions)
        for index, epoch in zip(topic.partitions, epochs, strict=True):
            found[topic.topic_id, index] = epoch
    return found


def to_assigned(partitions: Mapping[Partition, Epoch]) -> tuple[AssignedPartitions, ...]:
    return tuple(
        AssignedPartitions(topic_id, tuple(indexes), tuple(partitions[topic_id, index] for index in indexes))
        for topic_id, indexes in by_topic(partitions).items()
    )
