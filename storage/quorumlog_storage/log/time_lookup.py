"""Where a time lies in a log: found through the time indexes, in slices that each take a millisecond or less.

A slice asks some segments for their largest timestamp, or searches one segment. In a segment the indexes say where to
begin, at most `index.interval.bytes` and two batches before the answer. Only where the log start lies inside a segment,
and the records after it are older than one before it, the headers between them are walked, a slice at a time.

Control batches count, as in Kafka: their markers have times, too.
"""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog.records.format.batch import NO_TIMESTAMP
from quorumlog_storage.log.log_view import LogView
from quorumlog_storage.segment.segment import Segment

NO_OFFSET: Offset = -1
SLICE_BYTES = 1 << 20  # of headers that are walked at once
SLICE_SEGMENTS = 64  # that are asked at once; each may have to read its files first


class Slice(NamedTuple):
    """next_offset: where the search goes on. data: the batch that was found before it, whole; empty: none yet."""

    next_offset: Offset
    data: bytes


class Latest(NamedTuple):
    """next_offset: where the search goes on. timestamp: the largest so far. last_offset: of the batch that has it."""

    next_offset: Offset
    timestamp: int = NO_TIMESTAMP
    last_offset: Offset = NO_OFFSET


def first_since(view: LogView, offset: Offset, timestamp: int, end: Offset) -> Slice:
    """Look for the first batch from `offset` on that holds a record at or after a time, in ms.

    offset: below `end`. end: exclusive; a batch that reaches beyond it is not looked at. Raises CorruptBatch,
    DiskError.
    """
    number = view.number_for(offset)
    for at in range(number, min(number + SLICE_SEGMENTS, len(view.segments))):
        if view.bases[at] >= end:
            return Slice(end, b"")
        if view.segments[at].largest_timestamp >= timestamp:
            return _first_in(view, at, offset, timestamp, end)
    return Slice(_end_of(view, at, end), b"")


def latest_before(view: LogView, offset: Offset, end: Offset, found: Latest) -> Latest:
    """Look for the largest timestamp of the batches from `offset` on; `found` is what was found before it.

    offset: below `end`, where a batch begins. end: as for `first_since`. Raises CorruptBatch, DiskError.
    """
    number = view.number_for(offset)
    for at in range(number, min(number + SLICE_SEGMENTS, len(view.segments))):
        if view.bases[at] >= end:
            return found._replace(next_offset=end)
        found = _latest_in(view, at, offset, end, found)
        if found.next_offset < _end_of(view, at, end):
            return found
    return found


def _end_of(view: LogView, number: int, end: Offset) -> Offset:
    """Where the segment ends, or the search."""
    return min(end, view.bases[number + 1]) if number + 1 < len(view.bases) else end


def _first_in(view: LogView, number: int, offset: Offset, timestamp: int, end: Offset) -> Slice:
    segment, limit = view.segments[number], view.limit(number)
    start = max(segment.indexes.seek_time(timestamp, limit), _position_of(segment, offset, limit))
    for position, header in segment.log.walk(start, limit):
        if header.next_offset > end:
            return Slice(end, b"")
        if header.max_timestamp >= timestamp:
            return Slice(header.next_offset, segment.log.read(position, header.size))
        if position - start >= SLICE_BYTES:
            return Slice(header.next_offset, b"")
    return Slice(_end_of(view, number, end), b"")


def _latest_in(view: LogView, number: int, offset: Offset, end: Offset, found: Latest) -> Latest:
    segment, base, end_here = view.segments[number], view.bases[number], _end_of(view, number, end)
    limit = segment.find(end, view.limit(number))
    whole = segment.indexes.largest_below(limit) if limit else None
    if whole is not None and (offset <= base or base + whole.relative_offset >= offset):
        return _later(found, whole.timestamp, base + whole.relative_offset)._replace(next_offset=end_here)
    start = _position_of(segment, offset, limit)
    for position, header in segment.log.walk(start, limit):
        found = _later(found, header.max_timestamp, header.last_offset)
        if position - start >= SLICE_BYTES:
            return found._replace(next_offset=header.next_offset)
    return found._replace(next_offset=end_here)


def _later(found: Latest, timestamp: int, last_offset: Offset) -> Latest:
    return Latest(found.next_offset, timestamp, last_offset) if timestamp > found.timestamp else found


def _position_of(segment: Segment, offset: Offset, limit: int) -> int:
    return segment.find(offset, limit) if offset > segment.base_offset else 0
