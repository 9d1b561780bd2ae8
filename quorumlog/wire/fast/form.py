"""The readers and writers of a fast path, what they share, and the errors that leave a message to the schema."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from quorumlog.ids import ZERO_UUID
from quorumlog.slices import UNITS_A_SLICE
from quorumlog.wire.format.cursor import MAX_ELEMENTS
from quorumlog.wire.format.frame_writer import FrameWriter, write_uvarint

UUID_BYTES = 16
UVARINT_MAX_BITS = 28  # four bytes: larger numbers than a frame has bytes


class Topic(Protocol):
    """The fields that the topics of all these messages have in common."""

    @property
    def name(self) -> str: ...
    @property
    def topic_id(self) -> bytes: ...
    @property
    def partitions(self) -> tuple[Any, ...]: ...


class Unusual(Exception):
    """The fast path does not take the message; the schema decides whether it is right."""


NEEDS_SCHEMA = (Unusual, IndexError, struct.error, UnicodeDecodeError)


class FastPath(NamedTuple):
    """All of them may raise any of NEEDS_SCHEMA; a writer may have written a part of the message before.

    Arguments of a reader: data, a position in it, and the version. The reader of a response gets the request before the
    version, and must reach the end of `data`.
    """

    oldest: int  # version, inclusive
    read_request: Callable[[memoryview, int, int], Any]
    write_request: Callable[[FrameWriter, Any, int], None]
    read_response: Callable[[memoryview, int, Any, int], Any]
    write_response: Callable[[FrameWriter, Any, int], None]


# Readers slice without checking the end of the data. A slice past the end is too short, but every field of variable
# length is followed by a byte of tags, and reading that byte raises IndexError then.


def uvarint(data: memoryview, position: int) -> tuple[int, int]:
    """The value, and the position after it."""
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
    """The number of elements of an array that is not null, and the position after it."""
    size = data[position]
    position += 1
    if size > 0x7F:
        size, position = uvarint(data, position - 1)
    if size == 0 or size > MAX_ELEMENTS:
        raise Unusual
    return size - 1, position


def text(data: memoryview, position: int) -> tuple[str, int]:
    """A string that is not null, and the position after it."""
    size = data[position]
    position += 1
    if size > 0x7F:
        size, position = uvarint(data, position - 1)
    if size == 0:
        raise Unusual
    end = position + size - 1
    return str(data[position:end], "utf-8"), end


def nullable_text(data: memoryview, position: int) -> tuple[str | None, int]:
    return text(data, position) if data[position] else (None, position + 1)


def blob(data: memoryview, position: int) -> tuple[bytes, int]:
    """Bytes that are not null, and the position after them."""
    size, position = uvarint(data, position)
    if size == 0:
        raise Unusual
    end = position + size - 1
    return bytes(data[position:end]), end


def topic_head(data: memoryview, position: int, by_id: bool) -> tuple[str, bytes, int, int]:
    """A topic's name and id (one is empty), the number of its partitions, and the position of the first."""
    name, topic_id = "", b""
    if by_id:
        topic_id = bytes(data[position : position + UUID_BYTES])
        position += UUID_BYTES
    else:
        name, position = text(data, position)
    partitions, position = count(data, position)
    return name, topic_id, partitions, position


def no_tags(data: memoryview, position: int) -> int:
    """The position after an empty list of tags."""
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


def write_nullable_text(out: bytearray, value: str | None) -> None:
    if value is None:
        out.append(0)
    else:
        write_text(out, value)


def write_blob(writer: FrameWriter, value: bytes) -> None:
    write_uvarint(writer.tail, len(value) + 1)
    writer.attach(value)


def bounded(elements: int) -> int:
    """Elements of a message whose fast path takes one slice: the schema reads and writes more of them, in slices."""
    if elements > UNITS_A_SLICE:
        raise Unusual
    return elements


def known_id(topic_id: bytes) -> bytes:
    """Empty where the message has none."""
    return b"" if topic_id == ZERO_UUID else topic_id
