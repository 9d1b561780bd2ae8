"""What a plain reader and writer is, and what leaves a message to the schema's walk."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from quorumlog.ids import ZERO_UUID
from quorumlog.wire.cursor import MAX_ELEMENTS
from quorumlog.wire.parts import Parts, write_uvarint

UUID_BYTES = 16
UVARINT_MAX_BITS = 28  # in four bytes: more than a frame may have


class Topic(Protocol):
    """What the topics of all four messages have in common."""

    @property
    def name(self) -> str: ...
    @property
    def topic_id(self) -> bytes: ...
    @property
    def partitions(self) -> tuple[Any, ...]: ...


class Unusual(Exception):
    """Right or not: the walk decides."""


NOT_PLAIN = (Unusual, IndexError, struct.error, UnicodeDecodeError)


class Plain(NamedTuple):
    """All may raise any of NOT_PLAIN; a writer has then written some of it.

    A reader gets data, a position in it, and the version; that of an answer gets the request before the version, and
    reads up to the end of `data`.
    """

    oldest: int  # version, inclusive
    read_request: Callable[[memoryview, int, int], Any]
    write_request: Callable[[Parts, Any, int], None]
    read_response: Callable[[memoryview, int, Any, int], Any]
    write_response: Callable[[Parts, Any, int], None]


# Readers slice without a look at the end: a slice beyond it is too short, but every field of variable length is
# followed by a byte of tags, and that is not there then: IndexError.


def uvarint(data: memoryview, position: int) -> tuple[int, int]:
    """The value, and the position behind it."""
    value = data[position] & 0x7F
    shift = 7
    while data[position] > 0x7F:
        if shift == UVARINT_MAX_BITS:
            raise Unusual
        position += 1
        value |= (data[position] & 0x7F) << shift
        shift += 7
    return value, position + 1


def count(data: memoryview, position: int) -> tuple[int, int]:
    """Elements of an array that is not null, and the position behind the count."""
    size = data[position]
    position += 1
    if size > 0x7F:
        size, position = uvarint(data, position - 1)
    if size == 0 or size > MAX_ELEMENTS:
        raise Unusual
    return size - 1, position


def text(data: memoryview, position: int) -> tuple[str, int]:
    """A text that is not null, and the position behind it."""
    size, position = uvarint(data, position)
    if size == 0:
        raise Unusual
    end = position + size - 1
    return str(data[position:end], "utf-8"), end


def topic_head(data: memoryview, position: int, by_id: bool) -> tuple[str, bytes, int, int]:
    """A topic's name or id (the other is empty), how many partitions it has, and the position of the first."""
    name, topic_id = "", b""
    if by_id:
        topic_id = bytes(data[position : position + UUID_BYTES])
        position += UUID_BYTES
    else:
        name, position = text(data, position)
    partitions, position = count(data, position)
    return name, topic_id, partitions, position


def no_tags(data: memoryview, position: int) -> int:
    """The position behind the empty list of tags that stands there."""
    if data[position]:
        raise Unusual
    return position + 1


def write_topic_head(out: bytearray, topic: Topic, by_id: bool) -> None:
    if by_id:
        out += topic.topic_id or ZERO_UUID
    else:
        write_text(out, topic.name)
    write_uvarint(out, len(topic.partitions) + 1)


def write_text(out: bytearray, value: str) -> None:
    data = value.encode("utf-8")
    write_uvarint(out, len(data) + 1)
    out += data
