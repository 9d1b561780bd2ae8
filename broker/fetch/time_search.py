"""Finding a record by its time: batch headers are read from the log's start on, in slices of a megabyte.

Each slice is one turn of a directory's reader thread, so that searches share that thread and hold up no fetch. Records
that are deleted meanwhile are left out: the search goes on at the log's new start.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorumlog.ids import Offset
from quorumlog.records import decode_batch
from quorumlog.records.batch import BatchHeader, headers
from storage.log import Log
from storage.log_view import OffsetOutOfRange

SLICE_BYTES = 1 << 20  # of one read; one batch may be larger

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
        """Look at one slice. Raises CorruptBatch, CorruptRecords, DiskError, OffsetOutOfRange if the log was cut."""
        self._offset = max(self._offset, self._log.start_offset)
        if self._offset >= self._end:
            return self._finish()
        try:
            data = self._log.read(self._offset, SLICE_BYTES, upper_bound=self._end)
        except OffsetOutOfRange:
            if self._log.start_offset <= self._offset:
                raise
            return False
        found = headers(data)
        if not found:
            return self._finish()
        self._offset = found[-1].next_offset
        return self._look(data, [header for header in found if not header.is_control])

    def _look(self, data: bytes, found: list[BatchHeader]) -> bool:
        """Data batches of a slice. True: the search is over."""
        raise NotImplementedError

    def _finish(self) -> bool:
        return True

    def _records(self, data: bytes, header: BatchHeader) -> Iterator[Found]:
        for record in decode_batch(data, header):
            if record.offset >= self._log.start_offset:
                yield record.timestamp_ms, record.offset


class FirstSince(TimeSearch):
    """The first record at or after a time."""

    def __init__(self, log: Log, end: Offset, timestamp_ms: int) -> None:
        super().__init__(log, end)
        self._timestamp_ms = timestamp_ms

    def _look(self, data: bytes, found: list[BatchHeader]) -> bool:
        for header in found:
            if header.max_timestamp >= self._timestamp_ms:
                late = (one for one in self._records(data, header) if one[0] >= self._timestamp_ms)
                self.found = next(late, None)
                if self.found is not None:
                    return True
        return False


class LatestTime(TimeSearch):
    """The first record with the largest timestamp."""

    def __init__(self, log: Log, end: Offset) -> None:
        super().__init__(log, end)
        self._best: tuple[bytes, BatchHeader] | None = None

    def _look(self, data: bytes, found: list[BatchHeader]) -> bool:
        for header in found:
            if self._best is None or header.max_timestamp > self._best[1].max_timestamp:
                self._best = (data, header)
        return False

    def _finish(self) -> bool:
        if self._best is not None:
            latest = (one for one in self._records(*self._best) if one[0] == self._best[1].max_timestamp)
            self.found = next(latest, None)
        return True
