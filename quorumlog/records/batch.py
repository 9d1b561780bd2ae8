"""Record batch v2 at header level: the 61 bytes and one checksum that a broker touches. No record is decoded here.

Layout: FORMATS 4.1 (Kafka's `DefaultRecordBatch`). The first 17 bytes (base offset, length, leader epoch, magic: up to
the checksum field) lie outside the checksum, so a leader stamps a batch by writing 17 new bytes in front of a view of
the rest: received bytes are never changed (DESIGN §6).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING

from quorumlog.ids import NO_EPOCH, Epoch, Offset
from quorumlog.records.corrupt import CorruptRecords, TruncatedRecords
from quorumlog.records.crc import crc32c

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorumlog.records.buffers import Buffer

MAGIC = 2
LOG_OVERHEAD = 12  # bytes of base offset and length, which the length does not count
BATCH_OVERHEAD = 61  # bytes of a batch before its records
STAMP_BYTES = 17  # base offset 8, length 4, leader epoch 4, magic 1: what a leader writes anew
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

HEADER = Struct(">qiibIhiqqqhii")
STAMP = Struct(">qiib")
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
    """The thirteen fields of a batch header and the place of the batch. Field order is the order of the bytes.

    Never changed once it was read. Not frozen all the same: one is made for every batch that passes, and a frozen
    dataclass of so many fields takes 1.2 us to make instead of 0.2.
    """

    base_offset: Offset
    batch_length: int  # bytes after this field
    leader_epoch: Epoch
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int  # kept by compaction, so that next_offset is stable
    base_timestamp: int  # ms; the delete horizon where has_delete_horizon; -1 where there are no records
    max_timestamp: int  # ms; the append time of every record where is_log_append_time
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # records; below last_offset_delta + 1 after compaction, 0 in a retained empty batch
    position: int  # bytes from the start of the buffer
    size: int  # bytes of the whole batch: LOG_OVERHEAD + batch_length

    @property
    def last_offset(self) -> Offset:
        return self.base_offset + self.last_offset_delta

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
        """A `Codec`, or 5 to 7 in a batch of a version that we do not know."""
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
        """Sequence of the last record, -1 without one. Sequences wrap from 2^31 - 1 to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


def parse_header(buf: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`; the records behind it need not be in `buf`.

    Raises TruncatedRecords where fewer than BATCH_OVERHEAD bytes are left, CorruptRecords where a field is impossible
    in any batch, stored or produced. The checksum is not looked at (`verify_crc`).
    """
    assert position >= 0
    left = len(buf) - position
    if left < BATCH_OVERHEAD:
        raise TruncatedRecords(position, f"a batch header needs {BATCH_OVERHEAD} bytes, {left} are left")
    fields: tuple[int, ...] = HEADER.unpack_from(buf, position)
    header = BatchHeader(*fields, position, fields[1] + LOG_OVERHEAD)  # type: ignore[call-arg]  # 13 fields
    if reason := _impossible(header):
        raise CorruptRecords(position, reason)
    return header


def _impossible(header: BatchHeader) -> str:
    """Why no batch has such a header; empty where one may. The magic is first: it decides what the rest means."""
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

    partial_tail: end quietly where the buffer ends inside a batch (a fetch answer may be cut anywhere). Otherwise
    TruncatedRecords; CorruptRecords for an impossible header in either case, after the good batches before it.
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


def headers(buf: Buffer, *, partial_tail: bool = False) -> list[BatchHeader]:
    """`iter_headers` as a list: all of them, or the error."""
    return list(iter_headers(buf, partial_tail=partial_tail))


def verify_crc(buf: Buffer, header: BatchHeader) -> None:
    """Raises CorruptRecords unless the batch's bytes have the checksum that its header states."""
    assert header.end <= len(buf), "a header of another buffer"
    got = crc32c(memoryview(buf)[header.position + CRC_START : header.end])
    if got != header.crc:
        raise CorruptRecords(header.position, f"checksum is {got:#010x}, the header says {header.crc:#010x}")


def stamp(buf: Buffer, header: BatchHeader, base_offset: Offset, leader_epoch: Epoch) -> tuple[bytes, memoryview]:
    """The batch as the leader stores it: 17 new bytes, and a view of the received bytes behind them.

    The two, one after the other, are a valid batch at base_offset. `buf` is not changed and must outlive the view.
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
    """The BATCH_OVERHEAD bytes, checksum included, that make a batch of `records` behind them.

    records: as they are stored (compressed already, where they shall be).
    """
    covered = COVERED.pack(
        attributes, last_offset_delta, base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count
    )
    crc = crc32c(records, crc32c(covered))
    start = STAMP.pack(base_offset, BATCH_OVERHEAD - LOG_OVERHEAD + len(records), leader_epoch, MAGIC)
    return b"".join((start, CRC_FIELD.pack(crc), covered))


def seal(records: Buffer, **fields: int) -> bytes:
    """A whole batch: `header_bytes` of the same fields, and the records behind it."""
    return b"".join((header_bytes(records, **fields), records))


def with_append_time(buf: Buffer, header: BatchHeader, timestamp_ms: int) -> bytes:
    """A copy of the batch whose records all report `timestamp_ms`, for `message.timestamp.type=LogAppendTime`."""
    return seal(
        memoryview(buf)[header.position + BATCH_OVERHEAD : header.end],
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        attributes=header.attributes | LOG_APPEND_TIME,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp,
        max_timestamp=timestamp_ms,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        count=header.count,
    )
