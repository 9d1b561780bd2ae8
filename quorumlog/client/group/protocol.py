"""What consumers of a classic group tell each other in the bytes of JoinGroup and SyncGroup.

Kafka's ConsumerProtocolSubscription and ConsumerProtocolAssignment, versions 0 to 3. All versions share a prefix; a
reader takes what it knows and ignores the rest, so members of different age understand each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quorumlog.records import CorruptRecords
from quorumlog.records.coordinator.fields import FieldReader, FieldWriter
from quorumlog.records.format.flexible import INT16, INT32

Partitions = dict[str, tuple[int, ...]]
"""Partition numbers by topic."""

VERSION = 3
NO_GENERATION = -1


class Subscription(NamedTuple):
    """What a member says when it joins.

    owned: partitions that it has, in topics of any subscription. generation: in which it got them; -1: none, or it does
    not say. user_data: of the assignor.
    """

    topics: tuple[str, ...]
    owned: frozenset[tuple[str, int]] = frozenset()
    generation: int = NO_GENERATION
    user_data: bytes = b""
    rack: str | None = None


def write_subscription(subscription: Subscription) -> bytes:
    writer = FieldWriter(flexible=False)
    writer.number(INT16, VERSION)
    writer.items(subscription.topics, writer.text)
    writer.nullable_blob(subscription.user_data or None)
    _write_partitions(writer, by_topic(subscription.owned))
    writer.number(INT32, subscription.generation)
    writer.nullable_text(subscription.rack)
    return writer.done()


def read_subscription(data: bytes) -> Subscription:
    """Raises CorruptRecords."""
    reader = FieldReader(data)
    version = _version(reader)
    topics = reader.items(reader.text)
    user_data = reader.nullable_blob() or b""
    owned = _read_partitions(reader) if version >= 1 else {}
    generation = reader.number(INT32) if version >= 2 else NO_GENERATION
    rack = reader.nullable_text() if version >= 3 else None
    return Subscription(topics, flat(owned), generation, user_data, rack)


def write_assignment(partitions: Mapping[str, tuple[int, ...]]) -> bytes:
    writer = FieldWriter(flexible=False)
    writer.number(INT16, VERSION)
    _write_partitions(writer, partitions)
    writer.nullable_blob(None)
    return writer.done()


def read_assignment(data: bytes) -> Partitions:
    """What a member shall read; empty bytes: nothing. Raises CorruptRecords."""
    if not data:
        return {}
    reader = FieldReader(data)
    _version(reader)
    return _read_partitions(reader)


class Kept(NamedTuple):
    """What a member had last, in the bytes of the assignor `sticky`: an eager member owns nothing while it joins."""

    partitions: frozenset[tuple[str, int]] = frozenset()
    generation: int = NO_GENERATION


def write_kept(kept: Kept) -> bytes:
    """Kafka's StickyAssignorUserData, version 1; nothing for a member that had nothing."""
    if not kept.partitions:
        return b""
    writer = FieldWriter(flexible=False)
    _write_partitions(writer, by_topic(kept.partitions))
    writer.number(INT32, kept.generation)
    return writer.done()


def read_kept(data: bytes) -> Kept:
    """Version 0 does not say the generation. What cannot be read is nothing, as in Kafka: the member keeps less."""
    if not data:
        return Kept()
    reader = FieldReader(data)
    try:
        partitions = flat(_read_partitions(reader))
        return Kept(partitions, reader.number(INT32) if reader.left else NO_GENERATION)
    except CorruptRecords:
        return Kept()


def by_topic(partitions: Iterable[tuple[str, int]]) -> Partitions:
    """Both topics and numbers in order."""
    found: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        found.setdefault(topic, []).append(index)
    return {topic: tuple(indexes) for topic, indexes in found.items()}


def flat(partitions: Mapping[str, Iterable[int]]) -> frozenset[tuple[str, int]]:
    return frozenset((topic, index) for topic, indexes in partitions.items() for index in indexes)


def _version(reader: FieldReader) -> int:
    version = reader.number(INT16)
    if version < 0:
        raise CorruptRecords(0, "a negative version")
    return version


def _read_partitions(reader: FieldReader) -> Partitions:
    def one() -> tuple[str, tuple[int, ...]]:
        return reader.text(), reader.items(lambda: reader.number(INT32))

    return dict(reader.items(one))


def _write_partitions(writer: FieldWriter, partitions: Mapping[str, tuple[int, ...]]) -> None:
    def one(topic: str) -> None:
        writer.text(topic)
        writer.items(partitions[topic], lambda index: writer.number(INT32, index))

    writer.items(list(partitions), one)
