"""How Kafka's types of variable length are read and written, in the older form and in the compact one."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from quorumlog.wire.format.cursor import Cursor, Malformed
from quorumlog.wire.format.frame_writer import FrameWriter, write_uvarint

# Letter of `struct` for each type of fixed width. Times are in milliseconds; a uuid is its 16 bytes.
FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "float64": "d",
    "error_code": "h",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
    "uuid": "16s",
}


class Lengths(NamedTuple):
    """How lengths and counts are read and written; -1 is null."""

    read: Callable[[Cursor], int]
    write: Callable[[bytearray, int], None]
    least_bytes: int


def _read_compact(cursor: Cursor) -> int:
    return cursor.uvarint() - 1


def _write_compact(out: bytearray, length: int) -> None:
    write_uvarint(out, length + 1)


def _fixed_lengths(letter: str) -> Lengths:
    packed = struct.Struct(f">{letter}")

    def read(cursor: Cursor) -> int:
        length: int = packed.unpack_from(cursor.data, cursor.skip(packed.size))[0]
        if length < -1:
            raise Malformed(f"length {length} before byte {cursor.position}")
        return length

    def write(out: bytearray, length: int) -> None:
        out += packed.pack(length)

    return Lengths(read, write, packed.size)


COMPACT = Lengths(_read_compact, _write_compact, 1)
SHORT, LONG = _fixed_lengths("h"), _fixed_lengths("i")


def text(lengths: Lengths, nullable: bool) -> tuple[Callable[[Cursor], Any], Callable[[FrameWriter, Any], None]]:
    def read(cursor: Cursor) -> Any:
        length = lengths.read(cursor)
        if length < 0:
            return _null(cursor, nullable)
        return cursor.text(length)

    def write(writer: FrameWriter, value: str | None) -> None:
        if value is None:
            lengths.write(writer.tail, -1 if nullable else 0)
            return
        data = value.encode("utf-8")
        lengths.write(writer.tail, len(data))
        writer.tail += data

    return read, write


def blob(
    lengths: Lengths, nullable: bool, as_view: bool
) -> tuple[Callable[[Cursor], Any], Callable[[FrameWriter, Any], None]]:
    """as_view: the value is a view of its frame (records), not a copy."""

    def read(cursor: Cursor) -> Any:
        length = lengths.read(cursor)
        if length < 0:
            return _null(cursor, nullable)
        view = cursor.view(length)
        return view if as_view else bytes(view)

    def write(writer: FrameWriter, value: Any) -> None:
        if value is None:
            lengths.write(writer.tail, -1 if nullable else 0)
            return
        lengths.write(writer.tail, len(value))
        writer.attach(value)

    return read, write


def _null(cursor: Cursor, nullable: bool) -> Any:
    """None if the field may be null. Raises Malformed."""
    if not nullable:
        raise Malformed(f"null before byte {cursor.position}, in a field that must have a value")
