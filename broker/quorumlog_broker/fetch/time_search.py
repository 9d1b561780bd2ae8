"""Finding a record by its time, through the time indexes (quorumlog_storage/log/time_lookup.py).

Each slice is one turn of a directory's reader thread, so that searches share that thread and hold up no fetch. Nearly
every search is one or two slices. Records that are deleted meanwhile are left out: the search goes on at the log's new
start.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorumlog.ids import Offset
from quorumlog.records import decode_batch
from quorumlog.records.format.batch import NO_TIMESTAMP, headers
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_view import OffsetOutOfRange
from quorumlog_storage.log.time_lookup import Latest, first_since, latest_before

Found = tuple[int, Offset]  # timestamp in ms, offset


class TimeSearch:
    """Call `step` until it returns True; then `found` is the answer, None if there is no such record.

    end: of what the reader may see, exclusive.
    """

    def __init__(self, log: Log, end: Offset) -> None:
        self.found: Found | None = None
        self._log, self._end = log, end
        self._offset = log.start_offset

    def step(self) -> bool:
        """Look at one slice. Raises LogUnreadable, CorruptRecords, DiskError, OffsetOutOfRange if the log was cut."""
        start, end = self._log.start_offset, self._log.end_offset
        if self._end > end:
            raise OffsetOutOfRange(self._log.path, self._end, start, end)
        self._offset = max(self._offset, start)
        try:
            return self._finish() if self._offset >= self._end else self._look()
        except OffsetOutOfRange:
            if self._log.start_offset == start:
                raise
            return False

    def _look(self) -> bool:
        """Take a slice from `_offset` on, which is below the end, and move it. True: the search is over."""
        raise NotImplementedError

    def _finish(self) -> bool:
        return True

    def _records(self, data: bytes) -> Iterator[Found]:
        """Of one batch, those that are not deleted."""
        for header in headers(data)[:1]:
            for record in decode_batch(data, header):
                if record.offset >= self._log.start_offset:
                    yield record.timestamp_ms, record.offset


class FirstSince(TimeSearch):
    """The first record at or after a time."""

    def __init__(self, log: Log, end: Offset, timestamp_ms: int) -> None:
        super().__init__(log, end)
        self._timestamp_ms = timestamp_ms

    def _look(self) -> bool:
        found = self._log.look_up(lambda view: first_since(view, self._offset, self._timestamp_ms, self._end))
        self._offset = found.next_offset
        if found.data:
            self.found = next((one for one in self._records(found.data) if one[0] >= self._timestamp_ms), None)
        return self.found is not None


class LatestTime(TimeSearch):
    """The first record with the largest timestamp. Begun again where the log's start rises above what was found."""

    def __init__(self, log: Log, end: Offset) -> None:
        super().__init__(log, end)
        self._begin()

    def _begin(self) -> None:
        self._offset = self._start = self._log.start_offset
        self._is_at_start = True
        self._first: Found | None = None  # of the batch that the log's start lies in
        self._latest = Latest(self._offset)

    def _look(self) -> bool:
        if self._is_at_start:
            self._is_at_start = False
            self._look_at_start()
        else:
            offset, found = self._offset, self._latest
            self._latest = self._log.look_up(lambda view: latest_before(view, offset, self._end, found))
            self._offset = self._latest.next_offset
        return False

    def _look_at_start(self) -> None:
        """Of a batch whose first records are deleted, the header says nothing about the others."""
        data = self._log.read(self._offset, 1, upper_bound=self._end)
        if not data:
            self._offset = self._end
            return
        (header,) = headers(data)
        if header.base_offset < self._offset:
            self._first = _latest_of(self._records(data))
            self._offset = header.next_offset

    def _finish(self) -> bool:
        if self._start < self._log.start_offset:
            self._begin()
            return False
        if self._latest.timestamp > (NO_TIMESTAMP if self._first is None else self._first[0]):
            self.found = _latest_of(self._records(self._log.read(self._latest.last_offset, 1, upper_bound=self._end)))
        elif self._first is not None and self._first[0] > NO_TIMESTAMP:
            self.found = self._first
        return True


def _latest_of(records: Iterator[Found]) -> Found | None:
    """The first of those with the largest timestamp."""
    return max(records, key=lambda one: one[0], default=None)
