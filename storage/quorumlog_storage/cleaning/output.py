"""The segments that a group becomes, written under `.cleaned`.

The first begins where the group begins. Normally it is the only one. A group whose batches grew by their compression
may outgrow a segment: then the next one begins where the one before it ends, so that segments always meet.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.ids import Offset
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.files.names import CLEANED_SUFFIX
from quorumlog_storage.segment.batch import StoredBatch
from quorumlog_storage.segment.segment import Segment
from quorumlog_storage.segment.transaction_index import AbortedTransaction


class Output:
    """sizes: (base offset, bytes) of what was written."""

    def __init__(
        self,
        disk: Disk,
        path: str,
        base_offset: Offset,
        *,
        interval: int,
        max_bytes: int,
        buffer_bytes: int,
        last_source: str,
    ) -> None:
        """last_source: path of the log file whose time of modification the outputs get, as in Kafka."""
        self._disk, self._path, self._interval = disk, path, interval
        self._max_bytes, self._buffer_bytes, self._last_source = max_bytes, buffer_bytes, last_source
        self._done: list[tuple[Offset, int]] = []  # (base offset, bytes)
        self._waiting: list[StoredBatch] = []
        self._waiting_bytes = 0
        self._end_offset = base_offset
        self._aborted: list[AbortedTransaction] = []  # in the segment that is written
        self._segment = self._new(base_offset)

    def add(self, stored: StoredBatch, aborted: Sequence[AbortedTransaction]) -> int:
        """Returns the bytes that were written to disk by it, often 0. aborted: by this batch. Raises DiskError."""
        written = 0
        if not self._segment.has_room(self._segment.size + self._waiting_bytes, stored, self._max_bytes):
            written = self._write()
            self._finish()
            self._segment = self._new(self._end_offset)
        self._aborted += aborted
        self._waiting.append(stored)
        self._waiting_bytes += stored.size
        self._end_offset = stored.next_offset
        return written + (self._write() if self._waiting_bytes >= self._buffer_bytes else 0)

    def close(self) -> int:
        """Make all durable but the names. Returns the bytes written. Raises DiskError."""
        written = self._write()
        self._finish()
        return written

    def let_go(self) -> None:
        """The round is over, in whatever way: nothing stays open."""
        self._segment.let_go()

    @property
    def sizes(self) -> tuple[tuple[Offset, int], ...]:
        return tuple(self._done)

    def _new(self, base_offset: Offset) -> Segment:
        segment = Segment(self._disk, self._path, base_offset, self._interval, CLEANED_SUFFIX)
        segment.create()
        return segment

    def _write(self) -> int:
        size = self._waiting_bytes
        if self._waiting:
            self._segment.append(self._waiting, read_soon=False)
            self._waiting, self._waiting_bytes = [], 0
        return size

    def _finish(self) -> None:
        self._segment.transactions.replace(self._aborted)
        self._segment.flush_caches()
        self._disk.copy_modified(self._last_source, self._segment.log.path)
        self._segment.log.flush()
        self._done.append((self._segment.base_offset, self._segment.size))
        self._segment.let_go()
        self._aborted = []
