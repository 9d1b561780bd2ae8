"""What readers of a log see: one immutable picture of it, and how a range of it is found and read.

The writer publishes a new view after each change has happened; a reader takes one and works with that, so it sees
records only after their write has returned, whatever the writer does meanwhile (RELIABILITY 6.1.8).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

from quorumlog.ids import Offset
from storage.segment import Segment


class OffsetOutOfRange(Exception):
    """Asked for an offset that the log does not hold. The log is [start, end)."""

    def __init__(self, path: str, offset: Offset, start: Offset, end: Offset) -> None:
        super().__init__(
            f"{path} holds offsets {start} to {end} (exclusive), not {offset}; "
            "start again from the first or the last of them"
        )
        self.offset, self.start, self.end = offset, start, end


@dataclass(frozen=True, slots=True)
class FileRange:
    """Whole batches, as bytes of one segment's file."""

    segment: Segment
    position: int
    length: int  # 0: nothing to read


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Whole batches. The first may begin before the offset asked for, none ends after the bound.

    position: bytes from the start of the segment's file to `data`; segment_base: that segment's base offset.
    """

    data: bytes
    position: int
    segment_base: Offset


class LogView(NamedTuple):
    """Published state. Segments in order of base offset, never none; last_size: bytes published of the last one."""

    path: str
    segments: tuple[Segment, ...]
    bases: tuple[Offset, ...]  # of the segments
    last_size: int
    start_offset: Offset
    end_offset: Offset  # exclusive

    def limit(self, number: int) -> int:
        """Published bytes of a segment."""
        return self.last_size if number == len(self.segments) - 1 else self.segments[number].size

    def number_for(self, offset: Offset) -> int:
        """Which segment an offset belongs to."""
        return max(0, bisect_right(self.bases, offset) - 1)

    def locate(self, offset: Offset, max_bytes: int, upper_bound: Offset, min_one_batch: bool) -> FileRange:
        """See `Log.read`."""
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(self.path, offset, self.start_offset, self.end_offset)
        number = self.number_for(offset)
        if offset >= min(upper_bound, self.end_offset):
            return FileRange(self.segments[number], 0, 0)
        start = self.segments[number].find(offset, self.limit(number))
        while start == self.limit(number) and number + 1 < len(self.segments):
            number, start = number + 1, 0  # compaction left nothing of this segment's end
        segment, limit = self.segments[number], self._limit_below(number, upper_bound)
        return FileRange(segment, start, _length(segment, start, limit, max_bytes, min_one_batch))

    def _limit_below(self, number: int, upper_bound: Offset) -> int:
        """Where a segment's batches end that hold nothing at or after `upper_bound`."""
        limit = self.limit(number)
        is_last = number == len(self.segments) - 1
        end_offset = self.end_offset if is_last else self.bases[number + 1]
        return limit if upper_bound >= end_offset else self.segments[number].find(upper_bound, limit)


def view_of(path: str, segments: tuple[Segment, ...], start_offset: Offset, end_offset: Offset) -> LogView:
    """The view of everything that these segments hold now."""
    bases = tuple(segment.base_offset for segment in segments)
    return LogView(path, segments, bases, segments[-1].size, start_offset, end_offset)


def _length(segment: Segment, start: int, limit: int, max_bytes: int, min_one_batch: bool) -> int:
    if start >= limit:
        return 0
    end = segment.boundary(start + max_bytes, limit)
    if end <= start and min_one_batch:
        end = segment.batch_end(start, limit)
    return max(0, end - start)
