"""Record batch v2 at header level: a broker handles the 61 bytes of the header and the checksum, and decodes no record.

Layout: Kafka's `DefaultRecordBatch`. The checksum does not cover the first 17 bytes (base offset, length,
leader epoch, magic). A leader therefore stamps a batch by writing 17 new bytes in front of a view of the rest, and the
received bytes never change (decision 92). Where a covered field must change (the largest timestamp, the append time,
the codec), a new batch is made, whose checksum is computed anew; that of the received one was verified before.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING

from quorumlog.ids import NO_EPOCH, Epoch, Offset
from quorumlog.records.format.corrupt import CorruptRecords, TruncatedRecords
from quorumlog.records.format.crc import crc32c

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorumlog.records.format.buffers import Buffer

MAGIC = 2
LOG_OVERHEAD = 12  # bytes of base offset and length; the length field does not count them
BATCH_OVERHEAD = 61  # bytes of a batch before its records
STAMP_BYTES = 17  # base offset 8, length 4, leader epoch 4, magic 1: rewritten by the leader
CRC_POSITION = 17
CRC_START = 21  # the checksum covers from the attributes to the end
MIN_RECORD_BYTES = 7  # length, attributes, two deltas, key length, value length, header count
MAX_OFFSET = 2**63 - 1
NO_PRODUCER = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
KNOWN_ATTRIBUTES = 0x7F  # the others have no meaning, and are 0 where a leader writes the attributes

HEADER = Struct(">qiibIhiqqqhii")
STAMP = Struct(">qiib")
LENGTH, LENGTH_AT = Struct(">i"), 8
COVERED = Struct(">hiqqqhii")  # the header's fields from CRC_START on
CRC_FIELD = Struct(">I")

assert HEADER.size == BATCH_OVERHEAD and STAMP.size == STAMP_BYTES and COVERED.size == BATCH_OVERHEAD - CRC_START


class Codec(IntEnum):
    """Compression of a batch's records: bits 0-2 of the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


@dataclass(slots=True)
class BatchHeader:
    """The thirteen fields of a batch header, in the order of the bytes, and the batch's position in the buffer.

    Never changed after it was read, but not declared frozen: one is made for every batch, and a frozen dataclass of so
    many fields takes 1.2 us to make instead of 0.2.
    """

    base_offset: Offset
    batch_length: int  # bytes after this field
    leader_epoch: Epoch
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int  # kept by compaction, so that next_offset is stable
    base_timestamp: int  # ms; the delete horizon if has_delete_horizon; -1 without records
    max_timestamp: int  # ms; the append time of every record if is_log_append_time
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # records; below last_offset_delta + 1 after compaction, 0 in a retained empty batch
    position: int  # bytes from the start of the buffer
    size: int  # bytes of the whole batch: LOG_OVERHEAD + batch_length

    @property
    def last_offset(self) -> Offset:
        return self.base_offset + self.last_offset_delta

    def lowest_offset(self, previous: Offset) -> Offset:
        """No record lies before it. previous: where the batch before it ends, exclusive.

        An entry of format 0 or 1 names its last offset only, and may begin there.
        """
        return previous if self.magic < MAGIC else self.base_offset

    @property
    def next_offset(self) -> Offset:
        """Exclusive end of the batch's offsets."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def end(self) -> int:
        """Exclusive end of the batch's bytes in the buffer."""
        return self.position + self.size

    @property
    def codec(self) -> int:
        """A `Codec`, or 5 to 7 in a batch of an unknown version."""
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def has_delete_horizon(self) -> bool:
        return bool(self.attributes & DELETE_HORIZON)

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record; -1 without sequence. Sequences wrap from 2^31 - 1 to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


def parse_header(buf: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`. The records after it need not be in `buf`.

    Raises TruncatedRecords if fewer than BATCH_OVERHEAD bytes are left, CorruptRecords if a field is impossible in any
    stored or produced batch. Does not verify the checksum (`verify_crc` does). An entry of magic 0 or 1 gives the
    header that `legacy.py` describes: a producer may not send one (`produced.py`), an old log may hold it.
    """
    assert position >= 0
    left = len(buf) - position
    if left < BATCH_OVERHEAD:
        if left >= STAMP_BYTES and buf[position + STAMP_BYTES - 1] < MAGIC:
            return _parse_old(buf, position)
        raise TruncatedRecords(position, f"a batch header needs {BATCH_OVERHEAD} bytes, {left} are left")
    fields: tuple[int, ...] = HEADER.unpack_from(buf, position)
    header = BatchHeader(*fields, position, fields[1] + LOG_OVERHEAD)  # type: ignore[call-arg]  # 13 fields
    if 0 <= header.magic < MAGIC:
        return _parse_old(buf, position)
    if reason := _impossible(header):
        raise CorruptRecords(position, reason)
    return header


def _parse_old(buf: Buffer, position: int) -> BatchHeader:
    from quorumlog.records.format.legacy import parse_entry

    return parse_entry(buf, position)


def _impossible(header: BatchHeader) -> str:
    """Why no batch can have this header; "" if one can. The magic is checked first: it decides what the rest means."""
    if header.magic != MAGIC:
        return f"magic is {header.magic}, not {MAGIC}"
    if header.batch_length < BATCH_OVERHEAD - LOG_OVERHEAD:
        return f"length {header.batch_length} is below the {BATCH_OVERHEAD - LOG_OVERHEAD} of an empty batch"
    if header.base_offset < 0 or header.last_offset_delta < 0 or header.last_offset >= MAX_OFFSET:
        return f"offsets {header.base_offset} + {header.last_offset_delta} are not a range of offsets"
    if not 0 <= header.count <= header.last_offset_delta + 1:
        return f"{header.count} records cannot have {header.last_offset_delta + 1} offsets"
    return ""


def iter_headers(buf: Buffer, *, partial_tail: bool = False) -> Iterator[BatchHeader]:
    """Headers of the batches that fill `buf`, in order.

    partial_tail: stop without an error if the buffer ends inside a batch (a fetch response may be cut anywhere);
    otherwise this raises TruncatedRecords. An impossible header raises CorruptRecords in either case, after the good
    batches before it.
    """
    position = 0
    while position < len(buf):
        try:
            header = parse_header(buf, position)
            if header.end > len(buf):
                raise TruncatedRecords(position, f"a batch of {header.size} bytes, {len(buf) - position} are left")
        except TruncatedRecords:
            if partial_tail:
                return
            raise
        yield header
        position = header.end


def last_header(buf: Buffer) -> BatchHeader | None:
    """Of the last whole batch in `buf`; None if there is none. Only its header is read, of the others their lengths.

    Raises CorruptRecords for an impossible header, or an impossible length of a batch before it.
    """
    position, last = 0, -1
    while position + LOG_OVERHEAD <= len(buf):
        (length,) = LENGTH.unpack_from(buf, position + LENGTH_AT)
        if length <= 0:
            raise CorruptRecords(position, f"a batch of {length} bytes")
        if position + LOG_OVERHEAD + length > len(buf):
            break
        last, position = position, position + LOG_OVERHEAD + length
    return None if last < 0 else parse_header(buf, last)


def headers(buf: Buffer, *, partial_tail: bool = False) -> list[BatchHeader]:
    """`iter_headers` as a list: all headers, or the error."""
    return list(iter_headers(buf, partial_tail=partial_tail))


def verify_crc(buf: Buffer, header: BatchHeader) -> None:
    """Raises CorruptRecords unless the batch's bytes match the checksum in its header."""
    assert header.end <= len(buf), "the header belongs to another buffer"
    if header.magic < MAGIC:
        from quorumlog.records.format.legacy import verify_entry

        return verify_entry(buf, header)
    got = crc32c(memoryview(buf)[header.position + CRC_START : header.end])
    if got != header.crc:
        raise CorruptRecords(header.position, f"checksum is {got:#010x}, the header says {header.crc:#010x}")


def stamp(buf: Buffer, header: BatchHeader, base_offset: Offset, leader_epoch: Epoch) -> tuple[bytes, memoryview]:
    """The batch as the leader stores it: 17 new bytes, and a view of the received bytes that follow.

    Joined, the two are a valid batch at base_offset. `buf` is not changed and must outlive the view.
    """
    assert base_offset >= 0 and leader_epoch >= NO_EPOCH
    start = STAMP.pack(base_offset, header.batch_length, leader_epoch, header.magic)
    return start, memoryview(buf)[header.position + STAMP_BYTES : header.end]


def header_bytes(
    records: Buffer,
    *,
    base_offset: Offset,
    leader_epoch: Epoch,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    count: int,
) -> bytes:
    """The BATCH_OVERHEAD header bytes, checksum included, that make `records` a batch.

    records: as they are stored, that is, already compressed if `attributes` says so.
    """
    covered = COVERED.pack(
        attributes, last_offset_delta, base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count
    )
    crc = crc32c(records, crc32c(covered))
    start = STAMP.pack(base_offset, BATCH_OVERHEAD - LOG_OVERHEAD + len(records), leader_epoch, MAGIC)
    return b"".join((start, CRC_FIELD.pack(crc), covered))


def seal(records: Buffer, **fields: int) -> bytes:
    """A whole batch: `header_bytes` of these fields, followed by the records."""
    return b"".join((header_bytes(records, **fields), records))


def with_append_time(buf: Buffer, header: BatchHeader, timestamp_ms: int) -> bytes:
    """A copy of the batch in which all records have `timestamp_ms`, for `message.timestamp.type=LogAppendTime`."""
    stored = memoryview(buf)[header.position + BATCH_OVERHEAD : header.end]
    return _sealed_as(header, stored, header.attributes | LOG_APPEND_TIME, timestamp_ms)


def with_largest_timestamp(buf: Buffer, header: BatchHeader, timestamp_ms: int) -> bytes:
    """A copy of the batch whose header says that records have times of their own, timestamp_ms being the largest."""
    stored = memoryview(buf)[header.position + BATCH_OVERHEAD : header.end]
    return _sealed_as(header, stored, header.attributes & ~LOG_APPEND_TIME, timestamp_ms)


def with_payload(header: BatchHeader, codec: Codec, stored: Buffer) -> bytes:
    """The batch with its records in another form. stored: compressed by `codec`."""
    return _sealed_as(header, stored, header.attributes & ~CODEC_MASK | codec, header.max_timestamp)


def _sealed_as(header: BatchHeader, stored: Buffer, attributes: int, max_timestamp: int) -> bytes:
    return seal(
        stored,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        attributes=attributes & KNOWN_ATTRIBUTES,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        count=header.count,
    )
