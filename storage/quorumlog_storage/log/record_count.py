"""The readable records from an offset on, in slices of the directory's reader thread.

What is counted once is remembered (`record_counts.py`), so a group that follows its topic costs
the headers that have come since. A first question far behind the end may cost more than it is given: then the rest is
told by the distance of offsets, which is never less than its records, and the answer is an estimate. The next question
goes on where this one has ended.
"""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_view import LogView, OffsetOutOfRange
from quorumlog_storage.log.record_counts import (
    LogCounts,
    Place,
    SegmentCounts,
    counted_batches,
    first_time,
    records_before,
)
from quorumlog_storage.segment.segment import Segment

MAX_HEADERS = 10_000  # that one count remembers, and as many again that it does not: some 30 ms, in slices


FIRST_LOOK = 4  # headers among which the first record nearly always is


class Bounds(NamedTuple):
    """start: the first offset that counts. end: exclusive, of what the reader may see. stable: the last stable offset,
    below which it is decided what was aborted."""

    start: Offset
    end: Offset
    stable: Offset


class RecordCount:
    """Call `step` until it returns True. records: at most so many where is_exact is False.

    first_ms: the time of the first of them; None: there is none, or it was not found with so few headers. headers: that
    were read.
    """

    def __init__(self, log: Log, counts: LogCounts, bounds: Bounds, max_headers: int = MAX_HEADERS) -> None:
        self.records, self.is_exact = 0, True
        self.first_ms: int | None = None
        self._log, self._counts, self._bounds = log, counts, bounds
        self.headers, self._max_headers = 0, min(max_headers, MAX_HEADERS)
        self._at = self._looked = bounds.start
        self._cuts = log.cuts
        self._place: tuple[Segment, Place] | None = None  # of the look for the first record
        self._is_far = False  # it is not among the first few

    def step(self) -> bool:
        """Look at one slice. Raises LogUnreadable, DiskError, CorruptBatch, CorruptRecords; OffsetOutOfRange if the log
        was cut."""
        self._at = max(self._at, self._log.start_offset)
        if self._at < self._bounds.end:
            self._log.look_up(self._count_slice)
            return False
        if not self.records:
            return True
        return self._log.look_up(self._look_slice)

    def _check_not_cut(self) -> None:
        """Positions are of the log as it was. Within a leadership none is ever cut."""
        if self._log.cuts != self._cuts or self._bounds.end > self._log.end_offset:
            raise OffsetOutOfRange(self._log.path, self._bounds.end, self._log.start_offset, self._log.end_offset)

    # --- counting ---

    def _count_slice(self, view: LogView) -> None:
        self._check_not_cut()
        self._counts.fit(view, self._cuts)
        number = view.number_for(self._at)
        stop = self._end_of(view, number)
        counts = self._counts.of(view.segments[number], self._at, view.limit(number))
        decided = min(stop, self._bounds.stable)
        if counts.head.offset < decided:
            more = counted_batches(view, self._log.producers, number, counts.head, decided)
            self.headers += len(more)
            for one in more:
                counts.add(one)
            if more and self.headers < self._max_headers:
                return
            if more and counts.head.offset < decided:
                self._estimate(view, number, counts)
                return
        self.is_exact = self.is_exact and counts.is_exact
        before = self._total(view, number, counts, self._at)
        self.records += self._total(view, number, counts, stop) - before
        self._at = stop

    def _estimate(self, view: LogView, number: int, counts: SegmentCounts) -> None:
        """The headers are used up: what is not counted is taken for records."""
        self.is_exact = False
        head = counts.head
        if head.offset > self._at:
            self.records += head.total - self._total(view, number, counts, self._at)
        self.records += self._bounds.end - max(head.offset, self._at)
        self._at = self._bounds.end

    def _total(self, view: LogView, number: int, counts: SegmentCounts, offset: Offset) -> int:
        """The readable records of a segment before an offset, since its first place."""
        place = counts.before(offset)
        total = place.total
        end = self._end_of(view, number)
        while place.offset < offset:
            found = counted_batches(view, self._log.producers, number, place, end, until=offset)
            self.headers += len(found)
            for one in found:
                total += records_before(view.segments[number], one, offset)
                if one.header.next_offset >= offset:
                    return total
            if not found:
                break
            if self.headers >= 2 * self._max_headers:
                self.is_exact = False
                return total + offset - found[-1].header.next_offset
            place = Place(found[-1].end, found[-1].header.next_offset, total)
        return total

    def _end_of(self, view: LogView, number: int) -> Offset:
        end = self._bounds.end
        return min(end, view.bases[number + 1]) if number + 1 < len(view.bases) else end

    # --- the first of them ---

    def _look_slice(self, view: LogView) -> bool:
        """True: it is found, or is not looked for any further."""
        self._check_not_cut()
        start = max(self._bounds.start, view.start_offset)
        self._looked = max(self._looked, start)
        if self._looked >= self._bounds.end or self.headers >= 3 * self._max_headers:
            return True
        number = view.number_for(self._looked)
        segment = view.segments[number]
        if self._place is None or self._place[0] is not segment:
            counts = self._counts.of(segment, self._looked, view.limit(number))
            self._place = segment, counts.before(self._looked)
        most = None if self._is_far else FIRST_LOOK
        found = counted_batches(view, self._log.producers, number, self._place[1], self._bounds.end, most=most)
        self._is_far = True
        self.headers += len(found)
        for one in found:
            self.first_ms = first_time(segment, one, start)
            if self.first_ms is not None:
                return True
        if found:
            end = found[-1].header.next_offset
            self._place = segment, Place(found[-1].end, end, 0)
            self._looked = max(self._looked, end)
        else:
            self._looked = self._end_of(view, number)
        return False
