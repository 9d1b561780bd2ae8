"""Encodes and decodes batches record by record: for small batches, and as the oracle of the columnar codec."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_EPOCH, Epoch, Offset
from quorumlog.records.format.batch import (
    BATCH_OVERHEAD,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    MAGIC,
    MIN_RECORD_BYTES,
    NO_PRODUCER,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    Codec,
    seal,
)
from quorumlog.records.format.compression import DEFAULT_MAX_DECOMPRESSED_BYTES, BadCompression, compress, decompress
from quorumlog.records.format.corrupt import CorruptRecords
from quorumlog.records.format.legacy import decode_entry
from quorumlog.records.format.record import Fields, Record, read_record, write_record
from quorumlog.records.format.varint import Malformed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from quorumlog.records.format.buffers import Buffer

MAX_TIMESTAMP_MS = 2**63 - 2  # so that the difference of any two timestamps, -1 included, fits in 64 bits


def attributes_of(codec: Codec, *, transactional: bool = False, control: bool = False) -> int:
    return codec | (TRANSACTIONAL if transactional else 0) | (CONTROL if control else 0)


def encode_batch(
    records: Sequence[Record],
    *,
    base_offset: Offset = 0,
    codec: Codec = Codec.NONE,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: Epoch = NO_EPOCH,
    transactional: bool = False,
    control: bool = False,
    append_time_ms: int | None = None,
    delete_horizon_ms: int | None = None,
    last_offset_delta: int | None = None,
    max_timestamp_ms: int | None = None,
) -> bytes:
    """One batch of `records`, whose offsets are absolute, strictly increasing and not below `base_offset`.

    append_time_ms: the timestamp of every record (LogAppendTime), in place of its own.
    delete_horizon_ms: when compaction may drop the batch's tombstones and markers.
    last_offset_delta, max_timestamp_ms: those of the batch before compaction; by default those of `records`, which then
    must not be empty. Raises ApiError INVALID_TIMESTAMP for a timestamp below -1.
    """
    assert records or last_offset_delta is not None, "an empty batch must state its last offset"
    delta = records[-1].offset - base_offset if last_offset_delta is None else last_offset_delta
    _check_order(records, base_offset, delta)
    first_timestamp = _check_timestamps(records)
    base_timestamp = first_timestamp if delete_horizon_ms is None else delete_horizon_ms
    largest = max((record.timestamp_ms for record in records), default=NO_TIMESTAMP)
    attributes = attributes_of(codec, transactional=transactional, control=control)
    attributes |= (LOG_APPEND_TIME if append_time_ms is not None else 0) | (
        DELETE_HORIZON if delete_horizon_ms is not None else 0
    )
    out = bytearray()
    for record in records:
        write_record(out, record, base_offset, base_timestamp)
    return seal(
        compress(codec, out) if records else b"",
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=attributes,
        last_offset_delta=delta,
        base_timestamp=base_timestamp,
        max_timestamp=next((t for t in (append_time_ms, max_timestamp_ms) if t is not None), largest),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        count=len(records),
    )


def _check_order(records: Sequence[Record], base_offset: Offset, last_offset_delta: int) -> None:
    previous = base_offset - 1
    for record in records:
        assert record.offset > previous, f"offset {record.offset} after {previous}"
        previous = record.offset
    assert previous <= base_offset + last_offset_delta, f"offset {previous} is after the batch's last offset"


def _check_timestamps(records: Sequence[Record]) -> int:
    """The first record's timestamp, -1 without records."""
    for record in records:
        check_timestamps(record.timestamp_ms, record.timestamp_ms)
    return records[0].timestamp_ms if records else NO_TIMESTAMP


def check_timestamps(lowest: int, highest: int) -> None:
    """Raises ApiError INVALID_TIMESTAMP unless every timestamp in this range (inclusive) is valid for a record."""
    if lowest < NO_TIMESTAMP or highest > MAX_TIMESTAMP_MS:
        raise ApiError(ErrorCode.INVALID_TIMESTAMP, f"timestamps from {lowest} to {highest} ms")


def records_payload(
    buf: Buffer, header: BatchHeader, max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
) -> Buffer:
    """The batch's records, decompressed; a view of `buf` if they are stored uncompressed.

    Raises CorruptRecords if they cannot be decompressed within the limit, or are too few bytes for the stated count.
    """
    stored = memoryview(buf)[header.position + BATCH_OVERHEAD : header.end]
    limit = max(max_decompressed_bytes, len(stored)) if header.codec == Codec.NONE else max_decompressed_bytes
    try:
        payload = decompress(header.codec, stored, limit) if header.count or len(stored) else stored
    except BadCompression as error:
        raise CorruptRecords(header.position, str(error)) from error
    if header.count * MIN_RECORD_BYTES > len(payload):
        raise CorruptRecords(header.position, f"{header.count} records in {len(payload)} bytes")
    return payload


def decode_batch(
    buf: Buffer, header: BatchHeader, *, max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
) -> list[Record]:
    """The records of one batch in `buf`. Control records are included (decode them with `control.decode_control`).

    Any bytes give either records or CorruptRecords. The caller verifies the checksum (`verify_crc`).
    """
    return [Record(*fields) for fields in decode_fields(buf, header, max_decompressed_bytes=max_decompressed_bytes)]


def decode_fields(
    buf: Buffer, header: BatchHeader, *, max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
) -> list[Fields]:
    """`decode_batch` without Record objects: the fields as tuples."""
    if header.magic < MAGIC:
        return decode_entry(buf, header, max_decompressed_bytes)
    payload = _payload(buf, header, max_decompressed_bytes)
    try:
        found = list(_read_records(payload, header))
    except Malformed as error:
        raise CorruptRecords(header.position, str(error)) from error
    if not header.is_log_append_time:
        return found
    return [(offset, header.max_timestamp, key, value, headers) for offset, _, key, value, headers in found]


def iter_batch(
    buf: Buffer, header: BatchHeader, *, max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
) -> Iterator[Record]:
    """`decode_batch` one record at a time, so that a caller may pause between two. Damage is raised where it lies."""
    if header.magic < MAGIC:
        yield from (Record(*fields) for fields in decode_entry(buf, header, max_decompressed_bytes))
        return
    payload = _payload(buf, header, max_decompressed_bytes)
    try:
        for offset, timestamp_ms, key, value, headers in _read_records(payload, header):
            yield Record(
                offset, header.max_timestamp if header.is_log_append_time else timestamp_ms, key, value, headers
            )
    except Malformed as error:
        raise CorruptRecords(header.position, str(error)) from error


def _payload(buf: Buffer, header: BatchHeader, max_decompressed_bytes: int) -> bytes:
    assert header.end <= len(buf), "the header belongs to another buffer"
    return bytes(records_payload(buf, header, max_decompressed_bytes))


def _read_records(payload: bytes, header: BatchHeader) -> Iterator[Fields]:
    position, previous = 0, header.base_offset - 1
    for _ in range(header.count):
        fields, position = read_record(payload, position, header.base_offset, header.base_timestamp)
        if not previous < fields[0] <= header.last_offset:
            raise Malformed(f"offset {fields[0]} after {previous}, the batch ends at {header.last_offset}")
        previous = fields[0]
        yield fields
    if position != len(payload):
        raise Malformed(f"{len(payload) - position} bytes after the last record")
