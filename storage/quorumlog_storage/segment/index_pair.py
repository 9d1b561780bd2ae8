"""The offset index and the time index of one segment: look-ups that need both, checks, and the rebuild of both.

Rules:

1. Every look-up compares the entries that it uses with the batches that they name. A mismatch builds both indexes again
   from the batch headers, at once or in slices; the log's writer saves them later
   (`Segment.save_rebuilt`).
2. They are rebuilt and saved together, so that the largest timestamp is known at each entry of the offset index.
3. At the opening of a log, `mend` looks at the files: a missing, emptied or torn one is rebuilt and saved at once.

A flipped bit is found by the look-ups that use its entry, or by the order of the entries when the file is loaded. A
time index that lost entries in its middle, and still is in order, is found by the check of whole files only
(`quorumlog log verify`, and the check in the background, quorumlog_storage/checks/log_check.py).

Both are made again from the log file, some batches at a time. The headers of a segment of a gigabyte take a second to
read. A reader thread that did it in one go would make every other reader of the directory wait. So whoever runs
look-ups in shared threads wraps them in `leaving_rebuilds`: a look-up that finds an index wrong then raises
RebuildNeeded, the caller has `IndexPair.rebuild_step` run again and again, with other work in between, and repeats the
look-up. Without the wrapper, for example in the log's writer or while a log is opened, the look-up builds the indexes
at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from itertools import islice
from typing import TypeVar

from quorumlog.ids import Offset
from quorumlog.records.format.batch import BatchHeader
from quorumlog_storage.files.disk import Disk, FileMissing
from quorumlog_storage.files.kept_errors import kept
from quorumlog_storage.segment.index_file import CorruptIndex
from quorumlog_storage.segment.log_file import CorruptBatch, IndexedBatch, LogFile
from quorumlog_storage.segment.offset_index import (
    ENTRY_BYTES,
    MAX_POSITION,
    MAX_RELATIVE_OFFSET,
    START,
    OffsetIndex,
    OffsetIndexFile,
)
from quorumlog_storage.segment.time_index import (
    NO_TIME,
    TIME_ENTRY_BYTES,
    TimeEntries,
    TimeEntry,
    TimeIndexFile,
    largest_of,
)

SLICE_BATCHES = 500  # looked at in one step: some 3 ms

T = TypeVar("T")

_leaves_rebuilds: ContextVar[bool] = ContextVar("look-ups leave rebuilds to others", default=False)


class RebuildNeeded(Exception):
    """A look-up found an index that is wrong. `rebuild_step` until it says so, then repeat the look-up."""

    def __init__(self, path: str, indexes: IndexPair) -> None:
        super().__init__(f"{path} does not agree with its log; it is built again, repeat the look-up after that")
        self.indexes = indexes


def leaving_rebuilds(look_up: Callable[[], T]) -> T:
    """What `look_up` finds. Raises RebuildNeeded where it would have to read a whole segment first."""
    token = _leaves_rebuilds.set(True)
    try:
        return look_up()
    finally:
        _leaves_rebuilds.reset(token)


def rebuilds_are_left() -> bool:
    """Called in a look-up: its caller has wrapped it in `leaving_rebuilds`."""
    return _leaves_rebuilds.get()


class ImpossibleOffset(Exception):
    """No index holds these batches: the log is damaged where no checksum covers it."""


class IndexBuild:
    """The two indexes of the batches from the first one on; `add` each in order.

    largest: the largest timestamp so far, and the first batch that has it. end: of the batches so far, in bytes.
    """

    def __init__(self, base_offset: Offset, interval_bytes: int) -> None:
        self.offsets, self.times, self.largest = OffsetIndex(), TimeEntries(), NO_TIME
        self.end = 0
        self._last = -1  # offset of the last record so far, relative
        self._base_offset, self._interval = base_offset, interval_bytes

    def add(self, batch: IndexedBatch) -> TimeEntry:
        """Returns `largest`. Raises ImpossibleOffset where a batch does not follow the one before it."""
        last = batch.last_offset - self._base_offset
        if not self._last < last <= MAX_RELATIVE_OFFSET or self.end > MAX_POSITION:
            raise ImpossibleOffset(
                f"a batch that ends at offset {batch.last_offset} cannot follow one that ends at "
                f"offset {self._base_offset + self._last}"
            )
        self._last = last
        one, count = (batch,), len(self.offsets)
        self.offsets.note(one, self.end, self._base_offset, self._interval)
        self.largest = largest_of(one, self._base_offset, self.largest)
        if len(self.offsets) > count:
            self.times.append_if_later(self.largest)
        self.end += batch.size
        return self.largest


MAX_UNINDEXED_BYTES = 1 << 20  # behind the last entry of a file's offset index; with more it counts as torn

Slots = tuple[dict[None, OffsetIndex], dict[None, TimeEntries]]  # where the content of the two is, or will be
_TRIES = 2  # of a look-up: with the index as it was, and as it was built again


class IndexPair:
    """index_path, time_index_path: as they are named without a suffix."""

    def __init__(
        self,
        disk: Disk,
        index_path: str,
        time_index_path: str,
        base_offset: Offset,
        log: LogFile,
        interval_bytes: int,
        suffix: str,
    ) -> None:
        self.offsets = OffsetIndexFile(disk, index_path, base_offset, log, interval_bytes, self.rebuild, suffix)
        self.times = TimeIndexFile(disk, time_index_path, base_offset, log, self.offsets, self.rebuild, suffix)
        self._base_offset, self._log, self._interval = base_offset, log, interval_bytes
        self._under_way: list[_Rebuilding] = []  # at most one: between two steps
        self._failed: tuple[CorruptBatch, object] | None = None  # the last rebuild, and what was loaded then

    # --- how full they are; index_bytes: of each file at most, `segment.index.bytes` ---

    @staticmethod
    def fewest_entries(index_bytes: int) -> int:
        """That both files hold. One entry of the time index is kept for the end of the segment."""
        return min(index_bytes // ENTRY_BYTES, index_bytes // TIME_ENTRY_BYTES - 1)

    def is_full(self, index_bytes: int) -> bool:
        """Kafka's `isFull` of either index."""
        return (
            len(self.offsets.index) >= index_bytes // ENTRY_BYTES
            or len(self.times.index) >= index_bytes // TIME_ENTRY_BYTES - 1
        )

    def room_until(self, index_bytes: int) -> int:
        """A position before which neither gets full, whatever batches come."""
        offsets, times = self.offsets.index, self.times.index
        left = min(index_bytes // ENTRY_BYTES - len(offsets), index_bytes // TIME_ENTRY_BYTES - 1 - len(times))
        return max(0, offsets.last_position + left * self._interval)

    # --- look-ups; limit: exclusive end of the published bytes ---

    def walk_from_offset(self, relative_offset: int, limit: int) -> Iterator[tuple[int, BatchHeader]]:
        """`LogFile.walk` from a batch that ends at or before an offset, or from the first one."""
        return self._walk(relative_offset + 1, limit, limit)

    def walk_from_position(self, position: int, limit: int) -> Iterator[tuple[int, BatchHeader]]:
        """`LogFile.walk` from a batch that begins at or before a position, or from the first one."""
        return self._walk(MAX_RELATIVE_OFFSET + 1, position + 1, limit)

    def seek_time(self, timestamp: int, limit: int) -> int:
        """Where a batch begins before which all batches are older than a time (in ms).

        The first batch that is not older begins there or soon after it, within `index.interval.bytes` and two batches;
        or there is none below `limit`. Raises CorruptBatch, DiskError.
        """
        for _ in range(_TRIES):
            found = self._seek(timestamp, limit)
            if found is not None:
                return found
            self.rebuild()
        return 0

    def largest_below(self, limit: int) -> TimeEntry:
        """The largest timestamp of the batches below `limit`, and the first batch that has it. NO_TIME: none has one.

        Raises CorruptBatch, DiskError.
        """
        for _ in range(_TRIES):
            found = self._largest_below(limit)
            if found is not None:
                return found
            self.rebuild()
        headers = [header for _, header in self._log.walk(0, limit)]
        return largest_of(headers, self._base_offset, NO_TIME)

    # --- from the log ---

    def rebuild(self) -> None:
        """Build both again. Raises CorruptBatch, DiskError, where nothing has changed; RebuildNeeded."""
        if self._failed is not None and self._failed[1] is self.offsets.slot:
            raise kept(self._failed[0])  # the log cannot be walked: not again for each look-up
        if rebuilds_are_left():
            raise RebuildNeeded(self.offsets.path, self)
        while not self.rebuild_step(self._log.size + 1):
            pass
        if self._failed is not None:
            raise kept(self._failed[0])

    def rebuild_step(self, max_batches: int = SLICE_BATCHES) -> bool:
        """A part of `rebuild`. True once it is over, also where the log cannot be walked. Raises DiskError.

        Two threads, such as a reader's and the writer's, may do it at the same time; then each begins its own.
        """
        one = self._take_under_way()
        if one is None or not one.is_for(self.slots):
            one = _Rebuilding(self._base_offset, self._interval, self._log, self.slots)
        self._failed = None
        try:
            if one.step(max_batches):
                self.install(one.build, one.slots)
                return True
        except CorruptBatch as error:
            self._failed = kept(error), one.slots[0]
            return True
        self._under_way.append(one)
        return False

    def _take_under_way(self) -> _Rebuilding | None:
        try:
            return self._under_way.pop()
        except IndexError:
            return None

    @property
    def slots(self) -> Slots:
        return self.offsets.slot, self.times.slot

    def install(self, build: IndexBuild, slots: Slots) -> None:
        """Take both as they were built, unless the content has changed since `slots` were the newest."""
        self.offsets.install(slots[0], build.offsets)
        self.times.rebuilt(slots[1], build.times, build.largest)

    @property
    def is_rebuilt(self) -> bool:
        """The files do not show the rebuild yet."""
        return self.offsets.is_rebuilt or self.times.is_rebuilt

    def save(self) -> None:
        """Write both files. In between there is no time index, rather than one of another build. Raises DiskError."""
        self.times.discard()
        self.offsets.flush()
        self.times.flush()

    def mend(self) -> None:
        """Rebuild and save the files of a segment that was closed, if one is missing, emptied or torn.

        A segment that cannot be walked is left as it is: reading it says where it is damaged. Raises DiskError.
        """
        try:
            if self.is_rebuilt or self._is_broken():
                if not self.is_rebuilt:
                    self.rebuild()
                self.save()
        except CorruptBatch:
            pass

    def _is_broken(self) -> bool:
        size = self._log.size
        if size == 0:
            return False
        try:
            entry = self.offsets.read_last().floor_offset(MAX_RELATIVE_OFFSET)
        except (FileMissing, CorruptIndex):
            return True
        walk = self.offsets.walk_from(entry, size)
        if walk is None or size - entry.position > max(MAX_UNINDEXED_BYTES, 2 * self._interval) + next(walk)[1].size:
            return True
        try:
            is_empty = not len(self.times.read_last())
        except (FileMissing, CorruptIndex):
            return True
        return is_empty and next(self._log.walk(0, size))[1].max_timestamp > NO_TIME.timestamp

    # --- details ---

    def _walk(self, relative_offset: int, position: int, limit: int) -> Iterator[tuple[int, BatchHeader]]:
        """From the last entry before both; position: at most `limit`."""
        try:
            for _ in range(_TRIES):
                entry = self.offsets.index.floor_before(relative_offset, min(position, limit))
                walk = self.offsets.walk_from(entry, limit)
                if walk is not None:
                    return walk
                self.rebuild()
        except CorruptBatch:  # elsewhere, perhaps behind what is asked for
            pass
        return self._log.walk(0, limit)

    def _seek(self, timestamp: int, limit: int) -> int | None:
        """None: the indexes do not agree with the log."""
        lower, upper = self.times.index.around(timestamp)
        if not self.times.agrees(lower, limit):
            return None
        before = MAX_RELATIVE_OFFSET + 1 if upper is None else upper.relative_offset
        entry = self.offsets.index.floor_before(before, limit)
        if self.offsets.walk_from(entry, limit) is None:
            return None
        return entry.position if self.times.agrees(upper or NO_TIME, limit) else None

    def _largest_below(self, limit: int) -> TimeEntry | None:
        """None: the indexes do not agree with the log."""
        entry = self.offsets.index.floor_before(MAX_RELATIVE_OFFSET + 1, limit)
        walk = self.offsets.walk_from(entry, limit)
        lower, upper = self.times.index.around_offset(entry.relative_offset) if entry != START else (NO_TIME, None)
        if walk is None or not self.times.agrees(lower, limit) or not self.times.agrees(upper or NO_TIME, limit):
            return None
        return largest_of([header for _, header in walk], self._base_offset, lower)


class _Rebuilding:
    """A rebuild that is under way. slots: the newest when it began."""

    def __init__(self, base_offset: Offset, interval_bytes: int, log: LogFile, slots: Slots) -> None:
        self.build, self.slots = IndexBuild(base_offset, interval_bytes), slots
        self._walk, self._path = log.walk(0, log.size), log.path

    def is_for(self, slots: Slots) -> bool:
        return all(one is other for one, other in zip(self.slots, slots, strict=True))

    def step(self, max_batches: int) -> bool:
        """True at the end of the log. Raises CorruptBatch, DiskError."""
        count = 0
        for position, header in islice(self._walk, max_batches):
            try:
                self.build.add(header)
            except ImpossibleOffset as error:
                raise CorruptBatch(self._path, position, str(error)) from error
            count += 1
        return count < max_batches
