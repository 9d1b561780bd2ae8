"""How the bytes of a log lie among its offsets, from the indexes: no record is read.

A range lies in one segment. Within it, it ends where a batch of the offset index begins, so a reader of two neighbours
decodes no batch twice; of each such batch the header is read, as every look-up does
(quorumlog_storage/segment/index_pair.py). Of whole segments that are closed no index is loaded. The time of a range is
the largest of its segment's batches up to the range's end: no record of the range is later.
"""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog.records.format.batch import NO_TIMESTAMP
from quorumlog_storage.log.log_view import LogView
from quorumlog_storage.segment.segment import Segment


class OffsetRange(NamedTuple):
    """end: exclusive. size: bytes of the batches that hold these offsets. max_timestamp: in ms; -1: none has a time."""

    start: Offset
    end: Offset
    size: int
    max_timestamp: int


def ranges_from(view: LogView, offset: Offset, end: Offset, max_bytes: int, most: int) -> list[OffsetRange]:
    """The first ranges, at most `most`, of the segment that `offset` belongs to.

    offset: below `end`, which is exclusive and not beyond the log's. max_bytes: of a range, except where the index
    knows no smaller one; 0: the whole segment. Raises CorruptBatch, DiskError.
    """
    number = view.number_for(offset)
    segment, size = view.segments[number], view.limit(number)
    is_last = number == len(view.segments) - 1
    stop = end if is_last else min(end, view.bases[number + 1])
    is_whole = not is_last and stop == view.bases[number + 1]
    position = segment.find(offset, size) if offset > segment.base_offset else 0
    limit = size if is_whole else _position_behind(segment, stop, size)
    found: list[OffsetRange] = []
    while len(found) < most and offset < stop:
        cut = _next_cut(segment, position, max_bytes, limit) or (stop, limit)
        bytes_before = max(position, cut[1])
        found.append(
            OffsetRange(offset, cut[0], bytes_before - position, _largest(segment, bytes_before, size, is_last))
        )
        offset, position = cut[0], bytes_before
    return found


def _next_cut(segment: Segment, position: int, max_bytes: int, limit: int) -> tuple[Offset, int] | None:
    """An offset and its position, at most max_bytes behind a position, or else the next one. None: there is none."""
    if not max_bytes or limit - position <= max_bytes:
        return None
    index = segment.indexes.offsets.index
    wanted = index.floor_position(position + max_bytes).position
    if wanted <= position:
        wanted = index.next_position(position + max_bytes, limit)
    if not position < wanted < limit:
        return None
    found, header = next(segment.indexes.walk_from_position(wanted, limit))  # checks the entry
    return (header.base_offset, found) if found > position else None


def _position_behind(segment: Segment, end: Offset, size: int) -> int:
    """Where the batches end that hold offsets below `end`."""
    for position, header in segment.indexes.walk_from_offset(end - 1 - segment.base_offset, size):
        if header.lowest_offset(end - 1) >= end:
            return position
        if header.last_offset >= end - 1:
            return position + header.size
    return size


def _largest(segment: Segment, limit: int, size: int, is_last: bool) -> int:
    """Of the batches below a position. Cheap for a closed segment; the last may hold more than is published."""
    if not limit:
        return NO_TIMESTAMP
    whole = limit == size and not is_last
    return segment.largest_timestamp if whole else segment.indexes.largest_below(limit).timestamp
