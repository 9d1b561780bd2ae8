"""The encoder without compiled code: what `encode_kernels` does, with numpy and Arrow over whole columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorumlog.records.columnar.arrow import MAX_BATCH_BYTES, as_buffer, present_rows
from quorumlog.records.columnar.vector_varints import put_varints, varint_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quorumlog.records.columnar.arrow import Bytes, Column, Lists, Numbers

_NOTHING: Any = pa.scalar(b"", pa.large_binary())
LEAST_BYTES = 3  # of a record beyond its fields: the length and both deltas


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
    rows = len(timestamps)
    fields = 1 + _field_bytes(keys, rows) + _field_bytes(values, rows) + _header_bytes(lists, names, parts, rows)
    least = np.concatenate([[0], np.cumsum(fields + LEAST_BYTES)])  # no row is smaller in any batch
    batches, first = 0, 0
    while first < rows:
        end = max(first + 1, int(np.searchsorted(least, least[first] + max_records_bytes, "right")) - 1)
        window = slice(first, end)
        bodies = fields[window] + varint_bytes(timestamps[window] - timestamps[first])
        bodies += varint_bytes(np.arange(end - first))
        wholes = varint_bytes(bodies) + bodies
        if wholes.max() > MAX_BATCH_BYTES:
            return -1
        totals = np.cumsum(wholes)
        taken = max(1, int(np.searchsorted(totals, max_records_bytes, "right")))
        body_bytes[first : first + taken] = bodies[:taken]
        starts[batches], sizes[batches] = first, totals[taken - 1]
        largest_timestamps[batches] = timestamps[first : first + taken].max()
        batches, first = batches + 1, first + taken
    return batches


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
    count = end - first
    key_lengths, value_lengths = _lengths(keys, first, end), _lengths(values, first, end)
    deltas = timestamps[first:end] - timestamps[first]
    heads = _varint_strings(body_bytes[first:end], None, deltas, np.arange(count), key_lengths)
    between = _varint_strings(value_lengths)
    tails = _tails(lists, names, parts, first, end)
    pieces = [heads, _strings(keys, first, end), between, _strings(values, first, end), tails]
    joined = pc.binary_join_element_wise(
        *[piece for piece in pieces if piece is not None], pa.scalar(b"", pa.large_binary())
    )
    written = np.frombuffer(joined.buffers()[2], np.uint8)[: int(np.frombuffer(joined.buffers()[1], np.int64)[count])]
    out[: len(written)] = written
    return len(written)


def _lengths(column: Column, first: int, end: int) -> Numbers:
    """Bytes of each row; -1 for null."""
    if not len(column.offsets):
        return np.full(end - first, -1, np.int64)
    lengths = np.diff(column.offsets[first : end + 1])
    return np.where(present_rows(column, first, end), lengths, -1) if len(column.validity) else lengths


def _field_bytes(column: Column, rows: int) -> Numbers:
    """Bytes of each key, value or part of a header, with its length before it."""
    lengths = _lengths(column, 0, rows)
    return varint_bytes(lengths) + np.maximum(lengths, 0)


def _bounds(lists: Lists, first: int, end: int) -> tuple[Numbers, Numbers]:
    """(first entry, exclusive end) of each row's list."""
    if not len(lists.offsets):
        none = np.zeros(end - first, np.int64)
        return none, none
    present = present_rows(lists, first, end)
    return lists.offsets[first:end] * present, lists.offsets[first + 1 : end + 1] * present


def _header_bytes(lists: Lists, names: Column, parts: Column, rows: int) -> Numbers:
    """Bytes of each row's headers, with their number before them."""
    starts, ends = _bounds(lists, 0, rows)
    counts = varint_bytes(ends - starts)
    entries = len(names.offsets) - 1
    if entries < 1:
        return counts
    sums = np.concatenate([[0], np.cumsum(_field_bytes(names, entries) + _field_bytes(parts, entries))])
    sizes: Numbers = counts + sums[ends] - sums[starts]
    return sizes


def _varint_strings(*columns: Numbers | None) -> Any:
    """Per row the varints of all columns, one after the other, as an Arrow array of bytes. None: a byte 0."""
    given = next(column for column in columns if column is not None)
    widths = [np.ones(len(given), np.int64) if column is None else varint_bytes(column) for column in columns]
    offsets = np.concatenate([[0], np.cumsum(np.sum(widths, axis=0))])
    out = np.zeros(int(offsets[-1]), np.uint8)
    positions = offsets[:-1].copy()
    for column, width in zip(columns, widths, strict=True):
        if column is not None:
            put_varints(out, positions, column)
        positions += width
    return _large(offsets, out)


def _strings(column: Column, first: int, end: int) -> Any | None:
    """The bytes of the rows as an Arrow array, null as no bytes; None if every row is null."""
    if not len(column.offsets):
        return None
    strings = _large(column.offsets[first : end + 1], column.data)
    if not len(column.validity):
        return strings
    return pc.if_else(pa.array(present_rows(column, first, end)), strings, _NOTHING)


def _large(offsets: Numbers, data: Bytes) -> Any:
    buffers = [None, as_buffer(np.ascontiguousarray(offsets)), as_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def _tails(lists: Lists, names: Column, parts: Column, first: int, end: int) -> Any:
    """Per row the number of its headers and the headers."""
    starts, ends = _bounds(lists, first, end)
    counts = ends - starts
    if not counts.any():
        return _large(np.arange(end - first + 1), np.zeros(end - first, np.uint8))
    filled = counts > 0
    low, high = int(starts[filled].min()), int(ends[filled].max())
    entries = _entries(names, parts, low, high)
    if int(counts.sum()) < high - low:  # a null list may have entries that do not count
        changes = np.zeros(high - low + 1, np.int64)
        changes[starts[filled] - low] += 1
        changes[ends[filled] - low] -= 1
        entries = entries.filter(pa.array(np.cumsum(changes)[:-1] > 0))
    bounds = np.frombuffer(entries.buffers()[1], np.int64)[np.concatenate([[0], np.cumsum(counts)])]
    lists_of_bytes = _large(bounds, np.frombuffer(entries.buffers()[2], np.uint8))
    return pc.binary_join_element_wise(_varint_strings(counts), lists_of_bytes, _NOTHING)


def _entries(names: Column, parts: Column, first: int, end: int) -> Any:
    """The bytes of each header, as an Arrow array that begins at its buffers' beginning."""
    pieces = []
    for column in (names, parts):
        pieces += [_varint_strings(_lengths(column, first, end)), _strings(column, first, end)]
    return pc.binary_join_element_wise(*[piece for piece in pieces if piece is not None], _NOTHING)
