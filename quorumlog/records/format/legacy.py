"""Message formats 0 and 1, which Kafka wrote before 0.11: read where a log or a fetch answer has them, never written.

An entry (`LegacyRecord`): offset i64, size i32, CRC-32 u32 of all that follows it, magic i8, attributes i8, [timestamp
i64 in format 1], key and value, each an i32 length (-1: null) and bytes. A compressed entry is a wrapper: its value is
a set of entries. Inner offsets are absolute in format 0; in format 1 they are relative, and the wrapper has the offset
of its last inner entry (KIP-31). Where a wrapper of format 1 says LogAppendTime, its timestamp is every record's
(KIP-32).

An entry has the header of a batch (`parse_entry`), so that a log is walked, served and replicated with both kinds
beside each other: it is stored and served as it is, as Kafka 4 does (KIP-724 took away the writing only). Its header
says one offset, the last one, because only decompression finds the first one of a wrapper; readers see a gap before it.
"""

from __future__ import annotations

from itertools import pairwise
from struct import Struct, error
from typing import TYPE_CHECKING
from zlib import crc32

from quorumlog.ids import NO_EPOCH
from quorumlog.records.format.batch import (
    CODEC_MASK,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    MAX_OFFSET,
    NO_PRODUCER,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    Codec,
    seal,
)
from quorumlog.records.format.compression import DEFAULT_MAX_DECOMPRESSED_BYTES, BadCompression, compress, decompress
from quorumlog.records.format.corrupt import CorruptRecords, TruncatedRecords
from quorumlog.records.format.record import Fields, write_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorumlog.records.format.buffers import Buffer

SMALLEST = (14, 22)  # sizes after the size field, by magic: an entry with a null key and a null value
CHECKED_FROM = 16  # the checksum covers from the magic on

_ENTRY = Struct(">qiIbb")  # offset, size, checksum, magic, attributes
_TIMESTAMP = Struct(">q")
_LENGTH = Struct(">i")


def parse_entry(buf: Buffer, position: int) -> BatchHeader:
    """The header of the entry at `position`, whose magic is 0 or 1. What follows its timestamp need not be in `buf`.

    count is 1, also for a wrapper. Raises TruncatedRecords, CorruptRecords.
    """
    left = len(buf) - position
    if left < _ENTRY.size + _TIMESTAMP.size:
        return _parse_short(buf, position, left)
    return _parse(buf, position)


def _parse_short(buf: Buffer, position: int, left: int) -> BatchHeader:
    """An entry of format 0 may be shorter than what a header of format 1 needs."""
    if left >= _ENTRY.size and buf[position + CHECKED_FROM] == 0:
        return _parse(buf, position)
    raise TruncatedRecords(position, f"an entry of format 0 or 1 needs more than the {left} bytes that are left")


def _parse(buf: Buffer, position: int) -> BatchHeader:
    offset, size, crc, magic, attributes = _ENTRY.unpack_from(buf, position)
    assert 0 <= magic < MAGIC
    if size < SMALLEST[magic]:
        raise CorruptRecords(position, f"length {size} is below the {SMALLEST[magic]} of an empty entry")
    if not 0 <= offset < MAX_OFFSET:
        raise CorruptRecords(position, f"{offset} is not an offset")
    timestamp = _TIMESTAMP.unpack_from(buf, position + _ENTRY.size)[0] if magic else NO_TIMESTAMP
    kept = attributes & (CODEC_MASK | LOG_APPEND_TIME if magic else CODEC_MASK)
    return BatchHeader(
        offset, size, NO_EPOCH, magic, crc, kept, 0, timestamp, timestamp,
        NO_PRODUCER, -1, NO_SEQUENCE, 1, position, LOG_OVERHEAD + size,
    )  # fmt: skip


def verify_entry(buf: Buffer, header: BatchHeader) -> None:
    """Raises CorruptRecords unless the entry's bytes match its checksum."""
    got = crc32(memoryview(buf)[header.position + CHECKED_FROM : header.end])
    if got != header.crc:
        raise CorruptRecords(header.position, f"checksum is {got:#010x}, the entry says {header.crc:#010x}")


def decode_entry(buf: Buffer, header: BatchHeader, max_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES) -> list[Fields]:
    """The records of an entry, those of a wrapper in the order of their offsets. Raises CorruptRecords."""
    try:
        return _decode(bytes(memoryview(buf)[header.position : header.end]), header, max_bytes)
    except (BadCompression, error) as problem:
        raise CorruptRecords(header.position, str(problem)) from problem
    except CorruptRecords as problem:
        raise CorruptRecords(header.position, problem.reason) from problem


def _decode(entry: bytes, header: BatchHeader, max_bytes: int) -> list[Fields]:
    key, value = _key_and_value(entry, header)
    if header.codec == Codec.NONE:
        return [(header.base_offset, header.max_timestamp, key, value, ())]
    if value is None:
        raise CorruptRecords(0, "a compressed entry without a value")
    if header.codec == Codec.LZ4 and header.magic == 0:
        value = mended_frame(value)
    inner = list(_inner_entries(bytes(decompress(header.codec, value, max_bytes)), header))
    base = 0 if header.magic == 0 else header.base_offset - inner[-1][0]
    found: list[Fields] = [
        (base + offset, header.max_timestamp if header.is_log_append_time else timestamp, inner_key, inner_value, ())
        for offset, timestamp, inner_key, inner_value, _ in inner
    ]
    in_order = all(before[0] < after[0] for before, after in pairwise(found))
    if not in_order or found[0][0] < 0 or found[-1][0] != header.base_offset:
        raise CorruptRecords(0, f"inner offsets {found[0][0]} to {found[-1][0]} in a wrapper of {header.base_offset}")
    return found


def _inner_entries(data: bytes, wrapper: BatchHeader) -> Iterator[Fields]:
    """At least one. Raises CorruptRecords."""
    position = 0
    while position < len(data) or not position:
        if len(data) - position <= CHECKED_FROM or data[position + CHECKED_FROM] != wrapper.magic:
            raise CorruptRecords(position, f"an inner entry that is not of format {wrapper.magic}")
        header = parse_entry(data, position)
        if header.end > len(data):
            raise CorruptRecords(position, f"an inner entry of {header.size} bytes, {len(data) - position} are left")
        verify_entry(data, header)
        if header.codec != Codec.NONE:
            raise CorruptRecords(position, "an inner entry that is compressed itself")
        key, value = _key_and_value(data[position : header.end], header)
        yield header.base_offset, header.max_timestamp, key, value, ()
        position = header.end


def _key_and_value(entry: bytes, header: BatchHeader) -> tuple[bytes | None, bytes | None]:
    """entry: its bytes alone. Raises CorruptRecords, struct.error."""
    position = _ENTRY.size + (_TIMESTAMP.size if header.magic else 0)
    key, position = _nullable(entry, position)
    value, position = _nullable(entry, position)
    if position != len(entry):
        raise CorruptRecords(0, f"{len(entry) - position} bytes after an entry's value")
    return key, value


def _nullable(entry: bytes, position: int) -> tuple[bytes | None, int]:
    (length,) = _LENGTH.unpack_from(entry, position)
    position += _LENGTH.size
    if length == -1:
        return None, position
    if not 0 <= length <= len(entry) - position:
        raise CorruptRecords(0, f"{length} bytes of key or value, {len(entry) - position} are left")
    return entry[position : position + length], position + length


def as_batch(buf: Buffer, header: BatchHeader, max_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES) -> bytes:
    """The records of an entry as a batch of format 2, in the entry's codec. Raises CorruptRecords.

    Offsets, timestamps and the timestamp type stay; a record of format 0 has no timestamp, which is -1.
    """
    records = decode_entry(buf, header, max_bytes)
    base, first = records[0][0], records[0][1]
    out = bytearray()
    for offset, timestamp, key, value, names in records:
        write_fields(out, timestamp - first, offset - base, key, value, names)
    return seal(
        compress(header.codec, out),
        base_offset=base,
        leader_epoch=NO_EPOCH,
        attributes=header.attributes,
        last_offset_delta=records[-1][0] - base,
        base_timestamp=first,
        max_timestamp=max(record[1] for record in records),
        producer_id=NO_PRODUCER,
        producer_epoch=-1,
        base_sequence=NO_SEQUENCE,
        count=len(records),
    )


def in_format_2(
    buf: Buffer,
    found: Iterable[BatchHeader],
    *,
    check_crc: bool = False,
    max_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> bytes:
    """These batches of `buf`, those of formats 0 and 1 turned into format 2. Raises CorruptRecords."""
    view = memoryview(buf)
    parts: list[Buffer] = []
    for header in found:
        if header.magic < MAGIC:
            if check_crc:
                verify_entry(buf, header)
            parts.append(as_batch(buf, header, max_bytes))
        else:
            parts.append(view[header.position : header.end])
    return b"".join(parts)


# The lz4 frames of format 0, whose header checksum Kafka computed over too many bytes (KIP-57). A frame: magic u32,
# flags, block size, [content size u64], header checksum, blocks. The checksum is the second byte of xxHash32 of what
# lies between the magic and itself; Kafka's old one was computed with the magic, and libraries refuse it. Source of
# both formats: the LZ4 frame description and the xxHash specification.
_MAGIC_BYTES = 4
_HAS_CONTENT_SIZE = 0x08  # of the flags
_P1, _P2, _P3, _P4, _P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
_MASK = 0xFFFFFFFF


def mended_frame(frame: bytes) -> bytes:
    """The frame with the checksum that its header should have. Raises BadCompression if it is too short for one."""
    if len(frame) < _MAGIC_BYTES + 3:
        raise BadCompression("lz4: the data is truncated")
    at = _MAGIC_BYTES + 2 + (8 if frame[_MAGIC_BYTES] & _HAS_CONTENT_SIZE else 0)
    if len(frame) <= at:
        raise BadCompression("lz4: the data is truncated")
    return frame[:at] + bytes([xxh32_of_few(frame[_MAGIC_BYTES:at]) >> 8 & 0xFF]) + frame[at + 1 :]


def xxh32_of_few(data: bytes) -> int:
    """xxHash32, seed 0, of fewer than 16 bytes."""
    assert len(data) < 16
    value = (_P5 + len(data)) & _MASK
    position = 0
    while len(data) - position >= 4:
        value = (value + int.from_bytes(data[position : position + 4], "little") * _P3) & _MASK
        value = _rotated(value, 17) * _P4 & _MASK
        position += 4
    for byte in data[position:]:
        value = _rotated((value + byte * _P5) & _MASK, 11) * _P1 & _MASK
    value = (value ^ value >> 15) * _P2 & _MASK
    value = (value ^ value >> 13) * _P3 & _MASK
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK
