"""The bytes of a batch, field by field: where each one lies, its bytes in hexadecimal, its name and its meaning."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple

from quorumlog.records import BATCH_OVERHEAD, BatchHeader, Codec
from quorumlog.records.format.varint import Malformed, read_varint
from quorumlog_cli.offline.batches import FoundBatch
from quorumlog_cli.offline.describe import codec_name

BYTES_SHOWN = 32  # of one field; a longer one is cut, and its length is told
_NULL = -1

# Name and bytes of the header's fields, in their order: Kafka's `DefaultRecordBatch`.
_FIELDS = (
    ("baseOffset", 8), ("batchLength", 4), ("partitionLeaderEpoch", 4), ("magic", 1), ("crc", 4), ("attributes", 2),
    ("lastOffsetDelta", 4), ("baseTimestamp", 8), ("maxTimestamp", 8), ("producerId", 8), ("producerEpoch", 2),
    ("baseSequence", 4), ("recordsCount", 4),
)  # fmt: skip


class Field(NamedTuple):
    """position: bytes from the start of the file; for a record inside a compressed batch, of the expanded records."""

    position: int
    data: bytes
    name: str
    meaning: str

    @property
    def hexadecimal(self) -> str:
        shown = self.data[:BYTES_SHOWN].hex(" ")
        return shown if len(self.data) <= BYTES_SHOWN else f"{shown} ... ({len(self.data)} bytes)"


def header_fields(found: FoundBatch) -> Iterator[Field]:
    """Of a batch that is held."""
    header = found.header
    at = header.position
    meanings = _meanings(found)
    for name, width in _FIELDS:
        value = int.from_bytes(found.data[at : at + width], signed=True)
        yield Field(
            found.position + at - header.position, found.data[at : at + width], name, meanings.get(name, str(value))
        )
        at += width


def record_fields(found: FoundBatch, payload: bytes) -> Iterator[Field]:
    """Of every record. payload: the records, decompressed. Raises Malformed where they are not whole."""
    header = found.header
    start = found.position + BATCH_OVERHEAD if header.codec == Codec.NONE else 0
    position = 0
    for number in range(header.count):
        position = yield from _one_record(header, payload, position, start, f"record {number}")
    if position < len(payload):
        yield Field(start + position, payload[position:], "trailing", "bytes after the last record")


class _Cursor:
    """Where the reading of a record is. start: what is added to positions."""

    def __init__(self, data: bytes, at: int, start: int, name: str) -> None:
        self.data, self.at, self.start, self.name = data, at, start, name
        self.value = 0  # of the last number

    def number(self, what: str) -> Field:
        """Raises Malformed."""
        before = self.at
        self.value, self.at = read_varint(self.data, before, len(self.data))
        return self._field(before, self.data[before : self.at], what, str(self.value))

    def piece(self, what: str) -> Iterator[Field]:
        """A length and so many bytes. Raises Malformed."""
        length = self.number(f"{what} length")
        yield length._replace(meaning="null") if self.value == _NULL else length
        if self.value < 0:
            return
        before, self.at = self.at, self.at + self.value
        if self.at > len(self.data):
            raise Malformed(f"{what} of {self.value} bytes, {len(self.data) - before} are left")
        text = self.data[before : self.at]
        yield self._field(before, text, what, _text(text))

    def attributes(self) -> Field:
        self.at += 1
        return self._field(self.at - 1, self.data[self.at - 1 : self.at], "attributes", "no meaning")

    def _field(self, at: int, data: bytes, what: str, meaning: str) -> Field:
        return Field(self.start + at, data, f"{self.name} {what}", meaning)


def _one_record(header: BatchHeader, data: bytes, position: int, start: int, name: str) -> Generator[Field, None, int]:
    """Returns where the record ends."""
    cursor = _Cursor(data, position, start, name)
    yield cursor.number("length")
    yield cursor.attributes()
    delta = cursor.number("timestampDelta")
    yield delta._replace(meaning=f"{cursor.value} (timestamp {_timestamp(header, cursor.value)} ms)")
    delta = cursor.number("offsetDelta")
    yield delta._replace(meaning=f"{cursor.value} (offset {header.base_offset + cursor.value})")
    yield from cursor.piece("key")
    yield from cursor.piece("value")
    yield cursor.number("headerCount")
    for index in range(cursor.value):
        yield from cursor.piece(f"header {index} name")
        yield from cursor.piece(f"header {index} value")
    return cursor.at


def _timestamp(header: BatchHeader, delta: int) -> int:
    return header.max_timestamp if header.is_log_append_time else header.base_timestamp + delta


def _meanings(found: FoundBatch) -> dict[str, str]:
    header = found.header
    flags = [
        word
        for word, holds in (
            ("append time", header.is_log_append_time), ("transactional", header.is_transactional),
            ("control", header.is_control), ("delete horizon", header.has_delete_horizon),
        )
        if holds
    ]  # fmt: skip
    right = "right" if found.crc_ok else f"WRONG, computed {found.crc:#010x}"
    return {
        "baseOffset": f"{header.base_offset} (to {header.last_offset})",
        "batchLength": f"{header.batch_length} (ends at byte {found.position + header.size})",
        "crc": f"{header.crc:#010x} {right}",
        "attributes": ", ".join([f"codec {codec_name(header.codec)}", *flags]),
    }


def _text(data: bytes) -> str:
    shown = data[:BYTES_SHOWN].decode("utf-8", "backslashreplace")
    return repr(shown) if len(data) <= BYTES_SHOWN else f"{shown!r}..."
