"""One record, and its encoding inside a batch: plain Python, the oracle of the columnar codec.

    length varint, attributes i8, timestamp delta varlong, offset delta varint, key, value, header count varint, headers

Key and value are a varint length (-1 is null) and that many bytes. A header is a name, never null, and a value that may
be null.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from quorumlog.ids import Offset
from quorumlog.records.format.varint import VARLONG_BYTES, Malformed, read_varint, write_varint

if TYPE_CHECKING:
    from quorumlog.records.format.buffers import Buffer

RecordHeaders = tuple[tuple[str, bytes | None], ...]
Fields = tuple[Offset, int, bytes | None, bytes | None, RecordHeaders]  # a Record's, in its order


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a log. An empty key is not a null key; a null value is a tombstone in a compacted topic."""

    offset: Offset
    timestamp_ms: int  # ms since 1970; -1: none
    key: bytes | None
    value: bytes | None
    headers: RecordHeaders = ()  # in order; a name may occur twice


def write_record(out: bytearray, record: Record, base_offset: Offset, base_timestamp: int) -> None:
    """Append `record` to a batch's records."""
    timestamp_delta, offset_delta = record.timestamp_ms - base_timestamp, record.offset - base_offset
    write_fields(out, timestamp_delta, offset_delta, record.key, record.value, record.headers)


def write_fields(
    out: bytearray,
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: RecordHeaders,
) -> None:
    """Append a record to a batch's records."""
    time = _NONE if timestamp_delta == 0 else _varint(timestamp_delta)
    delta = _length(offset_delta)
    key_length = _NULL if key is None else _length(len(key))
    value_length = _NULL if value is None else _length(len(value))
    end = _headers(headers) if headers else _NONE
    key, value = key or b"", value or b""
    lengths = len(time) + len(delta) + len(key_length) + len(value_length)
    size = _length(1 + lengths + len(key) + len(value) + len(end))  # 1: attributes, of which no bit is defined
    out += b"%b\0%b%b%b%b%b%b%b" % (size, time, delta, key_length, key, value_length, value, end)


def _headers(headers: RecordHeaders) -> bytes:
    out = bytearray(_length(len(headers)))
    for name, content in headers:
        for data in (name.encode(), content):
            out += _NULL if data is None else _length(len(data)) + data
    return bytes(out)


def value_alone(value: bytes, offset_delta: int) -> bytes:
    """The same as `write_fields` of a value without key and headers, at the base timestamp, at a third of its cost."""
    delta, length = _length(offset_delta), _length(len(value))
    size = _length(4 + len(delta) + len(length) + len(value))  # attributes, timestamp, null key and header count: 4
    return b"%b\0\0%b\1%b%b\0" % (size, delta, length, value)


@lru_cache(maxsize=16_384)
def _length(count: int) -> bytes:
    """The varint of a length. The same few lengths occur again and again; the cache halves the time per record."""
    return _varint(count)


def _varint(number: int) -> bytes:
    out = bytearray()
    write_varint(out, number)
    return bytes(out)


_NULL, _NONE = _varint(-1), _varint(0)


def read_record(data: Buffer, position: int, base_offset: Offset, base_timestamp: int) -> tuple[Fields, int]:
    """(fields, position after the record). Raises Malformed for invalid bytes; never reads past the record's length."""
    length, position = read_varint(data, position, len(data))
    end = position + length
    if length < 1 or end > len(data):
        raise Malformed(f"a record of {length} bytes, {len(data) - position} are left")
    timestamp_delta, position = read_varint(data, position + 1, end, VARLONG_BYTES)
    offset_delta, position = read_varint(data, position, end)
    key, position = _read_bytes(data, position, end)
    value, position = _read_bytes(data, position, end)
    headers, position = _read_headers(data, position, end)
    if position != end:
        raise Malformed(f"{end - position} bytes after a record's headers")
    timestamp = base_timestamp + timestamp_delta
    if not -(2**63) <= timestamp < 2**63:
        raise Malformed("a timestamp beyond 64 bits")
    return (base_offset + offset_delta, timestamp, key, value, headers), position


def _read_bytes(data: Buffer, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position, end)
    if length == -1:
        return None, position
    if not 0 <= length <= end - position:
        raise Malformed(f"{length} bytes of key, value or header, {end - position} are left")
    return bytes(data[position : position + length]), position + length


def _read_headers(data: Buffer, position: int, end: int) -> tuple[RecordHeaders, int]:
    count, position = read_varint(data, position, end)
    if not 0 <= count <= (end - position) // 2:  # a header takes at least two bytes
        raise Malformed(f"{count} headers in {end - position} bytes")
    headers = []
    for _ in range(count):
        name, position = _read_bytes(data, position, end)
        if name is None:
            raise Malformed("a header without a name")
        value, position = _read_bytes(data, position, end)
        # As in Kafka: a name that is not UTF-8 must not make the rest of the log unreadable.
        headers.append((name.decode(errors="replace"), value))
    return tuple(headers), position
