"""Goes along a time index while the batches of its segment are read, and tells the first entry that is wrong."""

from __future__ import annotations

from quorumlog.records.batch import BatchHeader
from quorumlog_storage.checks.offset_cursor import Tell
from quorumlog_storage.segment.segment import Segment
from quorumlog_storage.segment.time_entries import NO_TIME, TIME_ENTRY_BYTES, TimeEntries, TimeEntry


class TimeCursor:
    """Fed with the batches in order."""

    def __init__(self, index: TimeEntries, segment: Segment, tell: Tell) -> None:
        self._index, self._base, self._tell = index, segment.base_offset, tell
        self._path = segment.indexes.times.path
        self._number = 0  # of the next entry
        self._told = NO_TIME  # the entry before it

    def batch(self, header: BatchHeader, largest: TimeEntry, *, is_indexed: bool) -> None:
        """largest: of all batches up to this one. is_indexed: the batch has an entry in the offset index."""
        last = header.last_offset - self._base
        while self._number < len(self._index) and self._index[self._number].relative_offset <= last:
            entry = self._index[self._number]
            is_batch = entry.relative_offset == last and entry.timestamp == header.max_timestamp
            if not is_batch or entry.timestamp != largest.timestamp:
                expected = (
                    f"{largest.timestamp} ms at offset {self._base + largest.relative_offset}, the largest so far"
                )
                self._wrong(expected, f"{entry.timestamp} ms at offset {self._base + entry.relative_offset}")
            self._told = entry
            self._number += 1
        if is_indexed:
            self._check_last(largest)

    def finish(self, largest: TimeEntry) -> None:
        """largest: of all batches."""
        if self._number < len(self._index):
            offset = self._base + self._index[self._number].relative_offset
            self._wrong("an offset of the segment", f"offset {offset}, behind its end")
        self._check_last(largest)

    def _check_last(self, largest: TimeEntry) -> None:
        if self._told.timestamp < largest.timestamp:
            at = f"offset {self._base + largest.relative_offset}"
            self._wrong(
                f"an entry with {largest.timestamp} ms at {at}", f"{self._told.timestamp} ms, the last one by then"
            )

    def _wrong(self, expected: str, found: str) -> None:
        self._tell(self._path, self._number * TIME_ENTRY_BYTES, expected, found)
