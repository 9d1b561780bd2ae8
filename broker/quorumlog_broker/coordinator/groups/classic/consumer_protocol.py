"""What clients of the classic protocol put into their metadata: Kafka's ConsumerProtocolSubscription and -Assignment.

The coordinator reads and writes them only for groups that change their protocol, or have members of both. Each version
adds fields at the end; what is behind the known ones is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from quorumlog.records.coordinator.fields import FieldReader, FieldWriter
from quorumlog.records.format.corrupt import CorruptRecords
from quorumlog.records.format.flexible import INT16, INT32

NEWEST = 3
Named = tuple[tuple[str, tuple[int, ...]], ...]
"""(topic, indexes)"""


class Subscription(NamedTuple):
    """owned: empty before version 1. rack: None before version 3."""

    version: int
    topics: tuple[str, ...]
    owned: Named = ()
    rack: str | None = None


class Assigned(NamedTuple):
    """user_data: of an assignor of the client's own."""

    partitions: Named
    user_data: bytes = b""


def read_topics(data: bytes) -> tuple[str, ...]:
    """Of a subscription: the part that all versions share. Raises CorruptRecords."""
    reader = FieldReader(data)
    _version(reader)
    return reader.items(reader.text)


def read_subscription(data: bytes) -> Subscription:
    """Raises CorruptRecords."""
    reader = FieldReader(data)
    version = _version(reader)
    topics = reader.items(reader.text)
    reader.nullable_blob()  # data of its assignor
    owned = _partitions(reader) if version >= 1 else ()
    if version >= 2:
        reader.number(INT32)  # the generation of `owned`
    rack = reader.nullable_text() if version >= 3 else None
    return Subscription(min(version, NEWEST), topics, owned, rack)


def read_assignment(data: bytes) -> Assigned:
    """Raises CorruptRecords. No bytes: nothing is assigned."""
    if not data:
        return Assigned(())
    reader = FieldReader(data)
    _version(reader)
    return Assigned(_partitions(reader), reader.nullable_blob() or b"")


def write_assignment(version: int, partitions: Mapping[str, Sequence[int]]) -> bytes:
    writer = FieldWriter(flexible=False)

    def write_topic(one: tuple[str, Sequence[int]]) -> None:
        writer.text(one[0])
        writer.items(one[1], lambda index: writer.number(INT32, index))

    writer.number(INT16, version)
    writer.items(sorted(partitions.items()), write_topic)
    writer.number(INT32, -1)  # no data of an assignor
    return writer.done()


def _version(reader: FieldReader) -> int:
    version = int(reader.number(INT16))
    if version < 0:
        raise CorruptRecords(0, "a negative version")
    return version


def _partitions(reader: FieldReader) -> Named:
    return reader.items(lambda: (reader.text(), reader.items(lambda: int(reader.number(INT32)))))
