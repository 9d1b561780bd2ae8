"""The ranges of a leader's log (quorumlog_storage/log/log_ranges.py), in slices of its directory's reader thread."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.ids import Offset
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_ranges import OffsetRange, ranges_from
from quorumlog_storage.log.log_view import OffsetOutOfRange

SLICE_SEGMENTS = 64  # that are asked at once; each may have to read its files first
SLICE_RANGES = 64  # of a segment; each reads the header of a batch


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRanges:
    """max_bytes: as for `ranges_from`. enough_bytes: after these it is over; 0: at the end. most: ranges in all."""

    max_bytes: int
    enough_bytes: int
    most: int


class RangeSearch:
    """Call `step` until it returns True; then `found` are the ranges in order, and `next_offset` follows them.

    end: exclusive, and not beyond what the reader may see. Where records are deleted meanwhile, it goes on behind them.
    """

    def __init__(self, log: Log, start: Offset, end: Offset, wanted: WantedRanges) -> None:
        self.found: list[OffsetRange] = []
        self.next_offset = max(start, log.start_offset)
        self._log, self._end, self._wanted = log, end, wanted
        self._bytes = 0

    @property
    def has_reached_the_end(self) -> bool:
        return self.next_offset >= self._end

    def step(self) -> bool:
        """Look at one slice. Raises LogUnreadable, DiskError, CorruptBatch; OffsetOutOfRange if the log was cut."""
        log_end = self._log.end_offset
        if self._end > log_end:
            raise OffsetOutOfRange(self._log.path, self._end, self._log.start_offset, log_end)
        for _ in range(SLICE_SEGMENTS):
            self.next_offset = max(self.next_offset, self._log.start_offset)
            if self._is_over():
                return True
            start, end, most = self.next_offset, self._end, self._most_now()
            max_bytes = self._wanted.max_bytes
            for one in self._log.look_up(lambda view: ranges_from(view, start, end, max_bytes, most)):  # noqa: B023
                if not self._is_over():
                    self.found.append(one)
                    self.next_offset, self._bytes = one.end, self._bytes + one.size
        return self._is_over()

    def _is_over(self) -> bool:
        enough = self._wanted.enough_bytes
        return self.has_reached_the_end or len(self.found) >= self._wanted.most or 0 < enough <= self._bytes

    def _most_now(self) -> int:
        left = min(SLICE_RANGES, self._wanted.most - len(self.found))
        if self._wanted.enough_bytes and self._wanted.max_bytes:
            left = min(left, -(-(self._wanted.enough_bytes - self._bytes) // self._wanted.max_bytes))
        return left
