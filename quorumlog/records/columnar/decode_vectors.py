"""The decoder without compiled code: what `decode_kernels` does, with numpy and Arrow over whole columns.

Only the way from one record to the next takes a step of Python per record. It takes about five times as long as the
compiled form, and needs no second of compiling before its first row.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from quorumlog.records.columnar.arrow import as_buffer
from quorumlog.records.columnar.found import (
    BAD_OFFSET,
    BAD_RECORD,
    BAD_TIMESTAMP,
    GOOD,
    LEFT_OVER,
    NOT_APPEND_TIME,
    VARINT_BITS,
    VARLONG_BITS,
    Batches,
    Rows,
    Totals,
)
from quorumlog.records.columnar.vector_varints import get_varints
from quorumlog.records.format.varint import Malformed, read_varint

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quorumlog.records.columnar.arrow import Bytes, Numbers


# Bytes from one record to the next by the first byte of its length; 0 if that takes more bytes or is not positive.
_STEPS = [1 + (byte >> 1) if byte < 0x80 and byte > 1 and not byte & 1 else 0 for byte in range(256)]


class _Walk(NamedTuple):
    """The records up to the first whose length is wrong. fault, batch: why the walk ended; GOOD if it did not."""

    begins: Numbers
    starts: Numbers  # after the length
    ends: Numbers
    batches: NDArray[np.intp]  # of each record
    fault: int
    batch: int


class _Fields(NamedTuple):
    """Fields of all records. A start of -1 stands for a field that is not there; a length of -1 for null."""

    timestamp_deltas: Numbers
    offset_deltas: Numbers
    key_starts: Numbers
    key_lengths: Numbers
    value_starts: Numbers
    value_lengths: Numbers
    header_starts: Numbers
    header_counts: Numbers
    header_bytes: Numbers


def scan(data: Bytes, batches: Batches, from_offset: int, to_offset: int, rows: Rows) -> Totals:
    """Check every record of the batches; fill `rows` with those from from_offset to to_offset (exclusive)."""
    walk = _walk(data, batches)
    if not len(walk.starts):
        return Totals(0, 0, 0, 0, 0, 0, 0, walk.fault, walk.batch)
    fields = _fields(data, walk)
    offsets = batches.base_offsets[walk.batches] + fields.offset_deltas
    faults = _faults(batches, walk, fields, offsets)
    if faults.any():
        first = int((faults != GOOD).argmax())
        return Totals(0, 0, 0, 0, 0, 0, 0, int(faults[first]), int(walk.batches[first]))
    if walk.fault != GOOD:
        return Totals(0, 0, 0, 0, 0, 0, 0, walk.fault, walk.batch)
    return _filled(rows, batches, walk, fields, offsets, (offsets >= from_offset) & (offsets < to_offset))


def gather(
    data: Bytes,
    starts: NDArray[np.int64],
    lengths: NDArray[np.int32],
    rows: int,
    offsets: NDArray[np.int32],
    out: Bytes,
    valid: Bytes,
) -> None:
    """Copy `rows` fields, whose starts rise, one after the other into `out`.

    offsets: rows + 1. valid: a byte per row, or empty if no row is null.
    """
    starts, lengths = starts[:rows], lengths[:rows]
    sizes = np.maximum(lengths, 0)
    offsets[0] = 0
    np.cumsum(sizes, out=offsets[1:])
    if len(valid):
        valid[:] = lengths >= 0
    if not len(out):
        return
    # An array over the payload itself, of each field and of what lies between two: Arrow copies every second element.
    bounds = np.empty(2 * rows, np.int64)
    bounds[0::2], bounds[1::2] = starts, starts + sizes
    buffers = [None, as_buffer(bounds), as_buffer(data)]
    spans: Any = pa.Array.from_buffers(pa.large_binary(), 2 * rows - 1, buffers)
    copied = spans.take(pa.array(np.arange(0, 2 * rows, 2)))
    out[:] = np.frombuffer(copied.buffers()[2], np.uint8, len(out))


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
    list_offsets[0] = 0
    np.cumsum(counts[:rows], out=list_offsets[1:])
    raw, entry = memoryview(data.data), 0
    for row in np.flatnonzero(counts[:rows]).tolist():
        position = int(starts[row])
        for _ in range(int(counts[row])):
            length, position = read_varint(raw, position, end)
            name_starts[entry], name_lengths[entry] = position, length
            length, position = read_varint(raw, position + length, end)
            value_starts[entry], value_lengths[entry] = position, length
            position += max(length, 0)
            entry += 1


def _walk(data: Bytes, batches: Batches) -> _Walk:
    """Follow the lengths of the records through all batches, as far as they can be followed."""
    raw = b"".join((data.data, bytes(2)))  # a length may be looked for at the very end
    ends = array("q")
    counts: list[int] = []
    fault, faulty = GOOD, 0
    spans = zip(batches.starts.tolist(), batches.ends.tolist(), batches.counts.tolist(), strict=True)
    for batch, (start, end, count) in enumerate(spans):
        before = len(ends)
        fault = _walk_batch(raw, start, end, count, ends)
        counts.append(len(ends) - before)
        if fault != GOOD:
            faulty = batch
            break
    return _walked(data, batches, np.frombuffer(ends, np.int64), np.array(counts, np.int64), fault, faulty)


def _walk_batch(raw: bytes, position: int, end: int, count: int, ends: array[int]) -> int:
    """Append where each record ends. Returns GOOD, BAD_RECORD or LEFT_OVER."""
    append = ends.append
    for _ in range(count):
        byte = raw[position]
        step = _STEPS[byte]
        if step:
            position += step
        elif byte >= 0x80 and not byte & 1 and (high := raw[position + 1]) < 0x80:  # two bytes, as most are
            position += 2 + (high << 6 | (byte & 0x7F) >> 1)
        else:
            position = _after_record(raw, position, end)
        if position > end:
            return BAD_RECORD
        append(position)
    return GOOD if position == end else LEFT_OVER


def _after_record(raw: bytes, position: int, end: int) -> int:
    """The end of a record whose length takes more bytes; beyond `end` if there is none."""
    try:
        length, position = read_varint(raw, position, end)
    except Malformed:
        return end + 1
    return position + length if length > 0 else end + 1


def _walked(data: Bytes, batches: Batches, ends: Numbers, counts: Numbers, fault: int, faulty: int) -> _Walk:
    of_batch = np.repeat(np.arange(len(counts)), counts)
    begins = np.empty_like(ends)
    begins[1:] = ends[:-1]
    filled = np.flatnonzero(counts)
    begins[(np.cumsum(counts) - counts)[filled]] = batches.starts[filled]
    lengths, starts = get_varints(data, begins, ends, VARINT_BITS)
    empty = np.flatnonzero(lengths < 1)  # a length of zero in two bytes
    if len(empty):
        first = int(empty[0])
        return _Walk(begins[:first], starts[:first], ends[:first], of_batch[:first], BAD_RECORD, int(of_batch[first]))
    return _Walk(begins, starts, ends, of_batch, fault, faulty)


def _fields(data: Bytes, walk: _Walk) -> _Fields:
    ends = walk.ends
    timestamp_deltas, position = get_varints(data, walk.starts + 1, ends, VARLONG_BITS)
    offset_deltas, position = get_varints(data, position, ends, VARINT_BITS)
    key_lengths, key_starts = _get_fields(data, position, ends)
    value_lengths, value_starts = _get_fields(data, _after(key_starts, key_lengths), ends)
    counts, header_starts = get_varints(data, _after(value_starts, value_lengths), ends, VARINT_BITS)
    wrong = (counts < 0) | (counts > (ends - header_starts) // 2)
    counts[wrong], header_starts[wrong] = 0, -1
    header_bytes = _walk_headers(data, header_starts, counts, ends)
    return _Fields(
        timestamp_deltas, offset_deltas, key_starts, key_lengths, value_starts, value_lengths, header_starts, counts,
        header_bytes,
    )  # fmt: skip


def _get_fields(data: Bytes, positions: Numbers, ends: Numbers) -> tuple[Numbers, Numbers]:
    """(lengths, starts) of fields whose bytes are before their ends; length -1 for null, start -1 if there is none."""
    lengths, starts = get_varints(data, positions, ends, VARINT_BITS)
    wrong = (lengths < -1) | (lengths > ends - starts)
    lengths[wrong], starts[wrong] = 0, -1
    return lengths, starts


def _after(starts: Numbers, lengths: Numbers) -> Numbers:
    return np.where(starts < 0, -1, starts + np.maximum(lengths, 0))


def _walk_headers(data: Bytes, starts: Numbers, counts: Numbers, ends: Numbers) -> Numbers:
    """Bytes of names and values of each record. Sets the start to -1 where no `counts` headers end there."""
    sizes = np.zeros(len(starts), np.int64)
    starts[(counts == 0) & (starts != ends)] = -1
    raw = memoryview(data.data)
    for row in np.flatnonzero(counts).tolist():
        size = _header_bytes(raw, int(starts[row]), int(ends[row]), int(counts[row]))
        if size < 0:
            starts[row] = -1
        else:
            sizes[row] = size
    return sizes


def _header_bytes(raw: memoryview, position: int, end: int, count: int) -> int:
    """Bytes of `count` headers that end at `end`; -1 if the bytes are not headers."""
    total = 0
    try:
        for _ in range(count):
            for least in (0, -1):  # a name is never null
                length, position = read_varint(raw, position, end)
                if not least <= length <= end - position:
                    return -1
                position += max(length, 0)
                total += max(length, 0)
    except Malformed:
        return -1
    return total if position == end else -1


def _faults(batches: Batches, walk: _Walk, fields: _Fields, offsets: Numbers) -> NDArray[np.int8]:
    """The fault of each record, as `decode_kernels.scan` would name it."""
    base_timestamps = batches.base_timestamps[walk.batches]
    sums = base_timestamps + fields.timestamp_deltas
    overflows = ((base_timestamps ^ sums) & (fields.timestamp_deltas ^ sums)) < 0
    previous = np.empty_like(offsets)
    previous[1:] = offsets[:-1]
    first = np.flatnonzero(np.diff(walk.batches, prepend=-1))
    previous[first] = batches.base_offsets[walk.batches[first]] - 1
    faults = np.where((offsets <= previous) | (offsets > batches.last_offsets[walk.batches]), BAD_OFFSET, GOOD)
    faults[overflows] = BAD_TIMESTAMP
    faults[fields.header_starts < 0] = BAD_RECORD
    return faults.astype(np.int8)


def _filled(
    rows: Rows, batches: Batches, walk: _Walk, fields: _Fields, offsets: Numbers, wanted: NDArray[np.bool_]
) -> Totals:
    chosen = slice(None) if wanted.all() else np.flatnonzero(wanted)
    of_batch = walk.batches[chosen]
    count = len(of_batch)
    append_times = batches.append_timestamps[of_batch]
    own = batches.base_timestamps[of_batch] + fields.timestamp_deltas[chosen]
    rows.offsets[:count], rows.sizes[:count] = offsets[chosen], (walk.ends - walk.begins)[chosen]
    rows.timestamps[:count] = np.where(append_times == NOT_APPEND_TIME, own, append_times)
    rows.key_starts[:count], rows.key_lengths[:count] = fields.key_starts[chosen], fields.key_lengths[chosen]
    rows.value_starts[:count], rows.value_lengths[:count] = fields.value_starts[chosen], fields.value_lengths[chosen]
    rows.header_starts[:count], rows.header_counts[:count] = fields.header_starts[chosen], fields.header_counts[chosen]
    keys, values = rows.key_lengths[:count], rows.value_lengths[:count]
    return Totals(
        rows=count,
        key_bytes=int(np.maximum(keys, 0).sum(dtype=np.int64)),
        value_bytes=int(np.maximum(values, 0).sum(dtype=np.int64)),
        null_keys=int((keys < 0).sum()),
        null_values=int((values < 0).sum()),
        header_entries=int(rows.header_counts[:count].sum(dtype=np.int64)),
        header_bytes=int(fields.header_bytes[chosen].sum()),
        fault=GOOD,
        batch=0,
    )
