"""Zigzag varints of the record format, one at a time. `columnar/vector_varints.py` reads a column of them.

Stricter than Kafka in one point: bits beyond the type's width are an error and not dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quorumlog.records.format.buffers import Buffer

VARINT_BYTES = 5  # longest int32
VARLONG_BYTES = 10  # longest int64


class Malformed(ValueError):
    """A record that breaks the format. The caller that knows the batch turns it into CorruptRecords with a position."""


def write_varint(out: bytearray, value: int) -> None:
    """Append an int64; an int32 has the same form. Fast for one byte, as most numbers of a record are."""
    if -64 <= value <= 63:
        out.append(value << 1 if value >= 0 else ~(value << 1))
        return
    assert -(2**63) <= value < 2**63
    write_uvarint(out, (value << 1) ^ (value >> 63))


def write_uvarint(out: bytearray, value: int) -> None:
    assert value >= 0
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def read_uvarint(data: Buffer, position: int, end: int, max_bytes: int = VARINT_BYTES) -> tuple[int, int]:
    """(unsigned value, position after it). Never reads at or past `end`. Raises Malformed."""
    value = 0
    for index in range(max_bytes):
        if position >= end:
            raise Malformed("the bytes end inside a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            if value >> (32 if max_bytes == VARINT_BYTES else 64):
                break
            return value, position
    raise Malformed("a number is too long")


def read_varint(data: Buffer, position: int, end: int, max_bytes: int = VARINT_BYTES) -> tuple[int, int]:
    """(signed value, position after it): an int32, or an int64 if max_bytes is VARLONG_BYTES. Raises Malformed."""
    if position < end and (byte := data[position]) < 0x80:  # one byte, as most numbers are: a third of the time
        return (byte >> 1) ^ -(byte & 1), position + 1
    if position + 1 < end and (second := data[position + 1]) < 0x80:
        value = byte & 0x7F | second << 7
        return (value >> 1) ^ -(value & 1), position + 2
    value, position = read_uvarint(data, position, end, max_bytes)
    return (value >> 1) ^ -(value & 1), position
