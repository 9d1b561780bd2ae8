"""Columns to the records of batches, in two passes: `plan` cuts the rows into batches, `fill` writes them.

names and parts are the names and values of headers, entry by entry; `lists` says which entries belong to a row. Helpers
take arrays instead of Columns, because parts of a tuple stay in registers only if the kernel itself unpacks it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorumlog.records.columnar.arrow import MAX_BATCH_BYTES
from quorumlog.records.columnar.compiled import copy_bytes, inlined, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quorumlog.records.columnar.arrow import Bytes, Column, Lists, Numbers


@inlined
def varint_bytes(value: int) -> int:
    """Bytes that an int64 takes."""
    zigzag = np.uint64((value << 1) ^ (value >> 63))
    size = 1
    while zigzag > np.uint64(0x7F):
        zigzag >>= np.uint64(7)
        size += 1
    return size


@inlined
def put_varint(out: Bytes, position: int, value: int) -> int:
    """Write an int64. Returns the position after it."""
    zigzag = np.uint64((value << 1) ^ (value >> 63))
    while zigzag > np.uint64(0x7F):
        out[position] = np.uint8(zigzag & np.uint64(0x7F) | np.uint64(0x80))
        zigzag >>= np.uint64(7)
        position += 1
    out[position] = np.uint8(zigzag)
    return position + 1


@inlined
def present(offsets: Numbers, validity: Bytes, bit: int) -> bool:
    """False if the row is null. No offsets: all rows are null. No bitmap: no row is null."""
    return len(offsets) > 0 and (len(validity) == 0 or (validity[bit >> 3] >> (bit & 7)) & 1 == 1)


@inlined
def field_bytes(offsets: Numbers, validity: Bytes, first_bit: int, row: int) -> int:
    """Bytes of a key, value or header part, including its length prefix."""
    if not present(offsets, validity, first_bit + row):
        return 1
    length: int = offsets[row + 1] - offsets[row]
    return varint_bytes(length) + length


@inlined
def put_field(
    out: Bytes, position: int, offsets: Numbers, data: Bytes, validity: Bytes, first_bit: int, row: int
) -> int:
    if not present(offsets, validity, first_bit + row):
        return put_varint(out, position, -1)
    length: int = offsets[row + 1] - offsets[row]
    position = put_varint(out, position, length)
    copy_bytes(out, position, data, offsets[row], length)
    return position + length


@inlined
def list_bounds(offsets: Numbers, validity: Bytes, first_bit: int, row: int) -> tuple[int, int]:
    """First entry and exclusive end of a row's list."""
    if not present(offsets, validity, first_bit + row):
        return 0, 0
    return offsets[row], offsets[row + 1]


@kernel
def plan(
    keys: Column,
    values: Column,
    timestamps: Numbers,
    lists: Lists,
    names: Column,
    parts: Column,
    max_records_bytes: int,
    body_bytes: NDArray[np.int64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    largest_timestamps: NDArray[np.int64],
) -> int:
    """Cut rows into batches of at most max_records_bytes each, or of one record. Returns the number of batches.

    Fills body_bytes (per row: its record without the length before it) and, per batch, its first row, the bytes of its
    records and its largest timestamp. Returns -1 if a record has more than MAX_BATCH_BYTES.
    """
    batches, first, size, largest = 0, 0, 0, np.int64(0)
    for row in range(len(timestamps)):
        first_entry, end_entry = list_bounds(lists.offsets, lists.validity, lists.first_bit, row)
        fields = 1 + varint_bytes(end_entry - first_entry)
        fields += field_bytes(keys.offsets, keys.validity, keys.first_bit, row)
        fields += field_bytes(values.offsets, values.validity, values.first_bit, row)
        for entry in range(first_entry, end_entry):
            fields += field_bytes(names.offsets, names.validity, names.first_bit, entry)
            fields += field_bytes(parts.offsets, parts.validity, parts.first_bit, entry)
        body = fields + varint_bytes(timestamps[row] - timestamps[first]) + varint_bytes(row - first)
        whole = varint_bytes(body) + body
        if row > first and size + whole > max_records_bytes:
            starts[batches], sizes[batches], largest_timestamps[batches] = first, size, largest
            batches += 1
            first, size = row, 0
            body = fields + 2  # both deltas are 0, one byte each
            whole = varint_bytes(body) + body
        if whole > MAX_BATCH_BYTES:
            return -1
        body_bytes[row] = body
        largest = timestamps[row] if row == first else max(largest, timestamps[row])
        size += whole
    if len(timestamps) > 0:
        starts[batches], sizes[batches], largest_timestamps[batches] = first, size, largest
        batches += 1
    return batches


@kernel
def fill(
    keys: Column,
    values: Column,
    timestamps: Numbers,
    lists: Lists,
    names: Column,
    parts: Column,
    body_bytes: NDArray[np.int64],
    first: int,
    end: int,
    out: Bytes,
) -> int:
    """Write the rows first to end (exclusive) as the records of one batch. Returns their size in bytes."""
    position = 0
    for row in range(first, end):
        position = put_varint(out, position, body_bytes[row])
        out[position] = 0
        position = put_varint(out, position + 1, timestamps[row] - timestamps[first])
        position = put_varint(out, position, row - first)
        position = put_field(out, position, keys.offsets, keys.data, keys.validity, keys.first_bit, row)
        position = put_field(out, position, values.offsets, values.data, values.validity, values.first_bit, row)
        first_entry, end_entry = list_bounds(lists.offsets, lists.validity, lists.first_bit, row)
        position = put_varint(out, position, end_entry - first_entry)
        for entry in range(first_entry, end_entry):
            position = put_field(out, position, names.offsets, names.data, names.validity, names.first_bit, entry)
            position = put_field(out, position, parts.offsets, parts.data, parts.validity, parts.first_bit, entry)
    return position
