"""The one way out for segments: retention, DeleteRecords, truncation and compaction all call `retire`.

A segment that has left the log's view goes in three steps:

1. The log's writer renames its files to `.deleted`. Readers that hold the segment read on: an open descriptor stays
   open, and a handle that is not open finds the file under its new name.
2. It waits for `file.delete.delay.ms`, as in Kafka.
3. A job beside the writer frees it in steps of a bounded number of bytes (`quorumlog_broker/logdirs/removals.py`).

What a crash leaves. The rename may be undone until the directory was synced, for each segment by itself. A truncation
syncs before anything else is written. A log start is noted in `log-start-offset-checkpoint` before any segment before
it is renamed, and the next opening takes no segment before it (`quorumlog_storage/recovery/recovery.py`): deleted
records stay deleted, and a segment that came back leaves no hole. `free` syncs the directory before its first step, so
that no segment comes back with a part of its bytes. Files that wait when the process ends are handed over again by the
next opening.

A log without a `Retired` queue, such as the metadata log with its small segments, removes the files at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from quorumlog_storage.files.disk import Disk, FileMissing, parent_of
from quorumlog_storage.files.names import DELETED_SUFFIX
from quorumlog_storage.segment.segment import Segment

STEP_FILES = 64  # freed in one step at most; each costs three unlinks


class RetiredSegment(NamedTuple):
    """A segment that waits to be freed. After `retire` nobody changes its files but the one that frees them.

    path: of its log file, under the name that ends in `.deleted`. delay_ms: how long readers may still begin to read.
    segment: None for a file that an earlier process left.
    """

    path: str
    delay_ms: int
    segment: Segment | None = None


class Freeing:
    """Segments of one log directory that are freed together. Used on one thread at a time, beside the writer."""

    def __init__(self, disk: Disk, segments: Iterable[RetiredSegment]) -> None:
        self._disk = disk
        self._waiting = deque(segments)
        self._is_begun = False  # with the first of those that wait
        self._synced: set[str] = set()  # directories, since these segments were renamed

    def free(self, step_bytes: int) -> bool:
        """Free at most `step_bytes` and `STEP_FILES` files; a file shrinks from its end on. True once all are gone.

        Raises DiskError; the next opening of the logs hands over again what is left.
        """
        for _ in range(STEP_FILES):
            if not self._waiting:
                return True
            freed = self._free_first(self._waiting[0], step_bytes)
            if freed is None:
                return False
            segment = self._waiting.popleft().segment
            if segment is not None:
                segment.log.let_go()
            self._is_begun = False
            step_bytes -= freed
        return not self._waiting

    def _free_first(self, one: RetiredSegment, step_bytes: int) -> int | None:
        """Bytes of the file that is gone now; None if a part of it is left."""
        try:
            if not self._is_begun:
                self._begin(one)
            return self._shrink(one.path, step_bytes)
        except FileMissing:  # the whole partition has left meanwhile
            return 0

    def _begin(self, one: RetiredSegment) -> None:
        directory = parent_of(one.path)
        if directory not in self._synced:
            self._disk.sync_directory(directory)
            self._synced.add(directory)
        if one.segment is not None:
            one.segment.abandon()
            one.segment.remove_caches()
        self._is_begun = True

    def _shrink(self, path: str, step_bytes: int) -> int | None:
        file = self._disk.open(path)
        try:
            size = file.size()
            if size > step_bytes:
                file.truncate(size - max(0, step_bytes))
                return None
        finally:
            file.close()
        self._disk.unlink(path)
        return size


class Retired:
    """The segments of one log directory that were retired and not taken yet.

    The writer adds on its thread, the one that frees takes on another; both are single steps of a deque.
    """

    def __init__(self) -> None:
        self._waiting: deque[RetiredSegment] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, segment: Segment, delay_ms: int) -> None:
        self._waiting.append(RetiredSegment(segment.log.path, delay_ms, segment))

    def add_leftover(self, path: str) -> None:
        """path: of a `.deleted` log file that an earlier process left."""
        self._waiting.append(RetiredSegment(path, 0))

    def take(self) -> list[RetiredSegment]:
        """All of them, in order."""
        return [self._waiting.popleft() for _ in range(len(self._waiting))]


def retire(
    segments: Iterable[Segment], retired: Retired | None, delay_ms: int, names_changed: Callable[[], object]
) -> None:
    """Rename segments that have left the view, in the given order. For the log's writer, inside its guard.

    The oldest first where the log's start moves, the last one first where its end does: a crash in between leaves a log
    without a hole. The names are durable once the directory is synced. names_changed: told after each segment.
    Raises DiskError.
    """
    for segment in segments:
        if retired is None:
            segment.remove()
        else:
            segment.rename(DELETED_SUFFIX)
            retired.add(segment, delay_ms)
        names_changed()
