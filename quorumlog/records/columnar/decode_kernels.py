"""The records of batches to columns, in two passes: `scan` checks every byte and finds fields, `gather` copies them.

On every input `scan` accepts what `quorumlog.records.format.record.read_record`, its oracle, accepts. Only `scan` reads
untrusted bytes.
Positions are bytes from the start of the payload that all batches of a call share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from quorumlog.records.columnar.compiled import copy_bytes, inlined, kernel
from quorumlog.records.columnar.found import (
    BAD_OFFSET,
    BAD_RECORD,
    BAD_TIMESTAMP,
    GOOD,
    LEFT_OVER,
    MAX_INT64,
    NOT_APPEND_TIME,
    VARINT_BITS,
    VARLONG_BITS,
    Batches,
    Rows,
    Totals,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quorumlog.records.columnar.arrow import Bytes


class Found(NamedTuple):
    """One record. Lengths are -1 for null."""

    end: int  # exclusive; -1 if the bytes are not a record
    timestamp_delta: int
    offset_delta: int
    key_start: int
    key_length: int
    value_start: int
    value_length: int
    header_start: int  # of the first header, after their count
    header_count: int
    header_bytes: int  # of names and values together


@inlined
def get_varint(data: Bytes, position: int, end: int, bits: int) -> tuple[int, int]:
    """(value, position after it) of a number of 32 or 64 bits that ends before `end`; position -1 if there is none.

    A position of -1 (an earlier read failed) stays -1, so that callers can check once after several reads.
    """
    value = np.uint64(0)
    shift = 0
    while 0 <= position < end and shift < bits:
        byte = np.int64(data[position])
        position += 1
        left = bits - shift
        if left < 7 and (byte & 0x7F) >> left:
            return 0, -1  # bits beyond the width
        value |= np.uint64(byte & 0x7F) << np.uint64(shift)
        shift += 7
        if byte < 0x80:
            return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), position  # type: ignore[return-value]
    return 0, -1


@inlined
def get_field(data: Bytes, position: int, end: int) -> tuple[int, int]:
    """(length, start) of a field whose bytes are before `end`; length -1 for null, start -1 if there is no such field.

    The next field begins at start + max(length, 0).
    """
    length, position = get_varint(data, position, end, VARINT_BITS)
    if position < 0 or length < -1 or length > end - position:
        return 0, -1
    return length, position


@inlined
def walk_headers(data: Bytes, position: int, end: int, count: int) -> tuple[int, int]:
    """(bytes of names and values, position after the headers); position -1 if the bytes are not headers."""
    total = 0
    for _ in range(count):
        length, position = get_field(data, position, end)
        if position < 0 or length < 0:
            return 0, -1
        total += length
        length, position = get_field(data, position + length, end)
        if position < 0:
            return 0, -1
        total += max(length, 0)
        position += max(length, 0)
    return total, position


@inlined
def find_record(data: Bytes, position: int, payload_end: int) -> Found:
    """The record at `position`, completely checked; its `end` is -1 if the bytes are not a record."""
    length, position = get_varint(data, position, payload_end, VARINT_BITS)
    if position < 0 or length < 1 or length > payload_end - position:
        return Found(-1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    end = position + length
    timestamp_delta, position = get_varint(data, position + 1, end, VARLONG_BITS)
    offset_delta, position = get_varint(data, position, end, VARINT_BITS)
    key_length, key_start = get_field(data, position, end)
    if key_start < 0:
        return Found(-1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    value_length, value_start = get_field(data, key_start + max(key_length, 0), end)
    if value_start < 0:
        return Found(-1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    count, header_start = get_varint(data, value_start + max(value_length, 0), end, VARINT_BITS)
    if header_start < 0 or count < 0 or count > (end - header_start) // 2:
        return Found(-1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    size, position = walk_headers(data, header_start, end, count)
    if position != end:
        return Found(-1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    return Found(
        end, timestamp_delta, offset_delta, key_start, key_length, value_start, value_length, header_start, count, size
    )


@inlined
def sum_fits(left: int, right: int) -> bool:
    """True if left + right fits an int64."""
    return left <= MAX_INT64 - right if right >= 0 else left >= -MAX_INT64 - 1 - right


@inlined
def put_row(rows: Rows, row: int, offset: int, timestamp: int, start: int, found: Found) -> None:
    rows.sizes[row] = found.end - start
    rows.offsets[row], rows.timestamps[row] = offset, timestamp
    rows.key_starts[row], rows.key_lengths[row] = found.key_start, found.key_length
    rows.value_starts[row], rows.value_lengths[row] = found.value_start, found.value_length
    rows.header_starts[row], rows.header_counts[row] = found.header_start, found.header_count


@kernel
def scan(data: Bytes, batches: Batches, from_offset: int, to_offset: int, rows: Rows) -> Totals:
    """Check every record of the batches; fill `rows` with those from from_offset to to_offset (exclusive)."""
    row, key_bytes, value_bytes, null_keys, null_values, entries, header_bytes = 0, 0, 0, 0, 0, 0, 0
    for batch in range(len(batches.starts)):
        position, payload_end = batches.starts[batch], batches.ends[batch]
        base_offset, base_timestamp = batches.base_offsets[batch], batches.base_timestamps[batch]
        last_offset, append_timestamp = batches.last_offsets[batch], batches.append_timestamps[batch]
        previous = base_offset - 1
        for _ in range(batches.counts[batch]):
            found = find_record(data, position, payload_end)
            if found.end < 0:
                return Totals(0, 0, 0, 0, 0, 0, 0, BAD_RECORD, batch)
            if not sum_fits(base_timestamp, found.timestamp_delta):
                return Totals(0, 0, 0, 0, 0, 0, 0, BAD_TIMESTAMP, batch)
            offset = base_offset + found.offset_delta
            if offset <= previous or offset > last_offset:
                return Totals(0, 0, 0, 0, 0, 0, 0, BAD_OFFSET, batch)
            start, position, previous = position, found.end, offset
            if offset < from_offset or offset >= to_offset:
                continue
            own = append_timestamp == NOT_APPEND_TIME
            time = base_timestamp + found.timestamp_delta if own else append_timestamp
            put_row(rows, row, offset, time, start, found)
            key_bytes += max(found.key_length, 0)
            value_bytes += max(found.value_length, 0)
            null_keys += found.key_length < 0
            null_values += found.value_length < 0
            entries += found.header_count
            header_bytes += found.header_bytes
            row += 1
        if position != payload_end:
            return Totals(0, 0, 0, 0, 0, 0, 0, LEFT_OVER, batch)
    return Totals(row, key_bytes, value_bytes, null_keys, null_values, entries, header_bytes, GOOD, 0)


@kernel
def gather(
    data: Bytes,
    starts: NDArray[np.int64],
    lengths: NDArray[np.int32],
    rows: int,
    offsets: NDArray[np.int32],
    out: Bytes,
    valid: Bytes,
) -> None:
    """Copy `rows` fields, one after the other, into `out`.

    offsets: rows + 1. valid: a byte per row, or empty if no row is null.
    """
    position = 0
    for row in range(rows):
        offsets[row] = position
        length = lengths[row]
        if len(valid) > 0:
            valid[row] = length >= 0
        if length > 0:
            copy_bytes(out, position, data, starts[row], length)
            position += length
    offsets[rows] = position


@kernel
def find_headers(
    data: Bytes,
    end: int,
    starts: NDArray[np.int64],
    counts: NDArray[np.int32],
    rows: int,
    list_offsets: NDArray[np.int32],
    name_starts: NDArray[np.int64],
    name_lengths: NDArray[np.int32],
    value_starts: NDArray[np.int64],
    value_lengths: NDArray[np.int32],
) -> None:
    """The positions of the rows' headers, entry by entry. `scan` has checked them; `end` is the payload's end."""
    entry = 0
    for row in range(rows):
        list_offsets[row] = entry
        position = starts[row]
        for _ in range(counts[row]):
            length, position = get_field(data, position, end)
            name_starts[entry], name_lengths[entry] = position, length
            position += length
            length, position = get_field(data, position, end)
            value_starts[entry], value_lengths[entry] = position, length
            position += max(length, 0)
            entry += 1
    list_offsets[rows] = entry
