"""The time index of one segment, as a file and in memory: a `SegmentCache` beside the offset index.

Rules (Kafka's `TimeIndex` and `LogSegment.append`):

1. Whenever the offset index gets an entry, the time index gets the largest timestamp so far, if that has risen. So at
   each entry of the offset index the largest timestamp is known, and a search begins at such an entry.
2. When the file is written, for a segment that is closed or a node that stops, the largest timestamp of all comes last.
   So the last entry says whether a segment holds a time at all.

Kafka allows the two files to be of different builds. Here they are not: they are rebuilt together (index_pair.py).

Its entries: (largest timestamp so far, last offset of the batch that has it). On disk, `.timeindex`: big-endian i64
timestamp in ms, i32 offset relative to the segment's base. In memory two flat arrays. Both columns increase: timestamps
of records may fall, the largest so far does not.

One thread changes the entries, any may look things up meanwhile: offsets are appended before timestamps, a look-up
takes its length from the timestamps, and truncation makes another object.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog.records.format.batch import NO_TIMESTAMP
from quorumlog_storage.files.disk import Disk, FileMissing
from quorumlog_storage.segment.index_file import CorruptIndex, IndexFile, increases
from quorumlog_storage.segment.log_file import IndexedBatch, LogFile
from quorumlog_storage.segment.offset_index import OffsetIndexFile

TIME_ENTRY_BYTES = 12
MAX_RELATIVE_OFFSET = 2**31 - 1

_TIME, _OFFSET, _WORD = "q", "i", "I"
assert (array(_TIME).itemsize, array(_OFFSET).itemsize, array(_WORD).itemsize) == (8, 4, 4)
_IS_LITTLE = sys.byteorder == "little"
_HIGH, _LOW = (1, 0) if _IS_LITTLE else (0, 1)  # where the words of a timestamp lie in memory


class TimeEntry(NamedTuple):
    """timestamp: ms since 1970, the largest up to and including the batch that ends at `relative_offset`."""

    timestamp: int
    relative_offset: int


NO_TIME = TimeEntry(NO_TIMESTAMP, -1)  # before the first entry


class TimeEntries:
    """In increasing order of both columns. No timestamp is negative."""

    def __init__(self) -> None:
        self._columns = (array(_TIME), array(_OFFSET))

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, number: int) -> TimeEntry:
        times, offsets = self._columns
        return TimeEntry(times[number], offsets[number])

    @property
    def last(self) -> TimeEntry:
        return self[-1] if len(self) else NO_TIME

    def append_if_later(self, entry: TimeEntry) -> None:
        """Kafka's `maybeAppend`: an entry that is not later than the last one says nothing new."""
        times, offsets = self._columns
        if entry.timestamp <= (times[-1] if times else NO_TIMESTAMP):
            return
        assert 0 <= entry.relative_offset <= MAX_RELATIVE_OFFSET
        assert not offsets or entry.relative_offset > offsets[-1], "a later time at an earlier offset"
        offsets.append(entry.relative_offset)
        times.append(entry.timestamp)

    def around(self, timestamp: int) -> tuple[TimeEntry, TimeEntry | None]:
        """The last entry before a time, NO_TIME if there is none; and the first one at or after it."""
        times, offsets = self._columns
        length = len(times)
        after = bisect_left(times, timestamp, hi=length)
        lower = TimeEntry(times[after - 1], offsets[after - 1]) if after else NO_TIME
        return lower, TimeEntry(times[after], offsets[after]) if after < length else None

    def around_offset(self, relative_offset: int) -> tuple[TimeEntry, TimeEntry | None]:
        """The last entry at or before an offset, NO_TIME if there is none; and the first one after it."""
        times, offsets = self._columns
        length = len(times)
        after = bisect_right(offsets, relative_offset, hi=length)
        lower = TimeEntry(times[after - 1], offsets[after - 1]) if after else NO_TIME
        return lower, TimeEntry(times[after], offsets[after]) if after < length else None

    def up_to(self, relative_offset: int) -> TimeEntries:
        """A copy of the entries at or before an offset."""
        times, offsets = self._columns
        kept = bisect_right(offsets, relative_offset)
        copy = TimeEntries()
        copy._columns = (times[:kept], offsets[:kept])
        return copy

    def encode(self) -> bytes:
        """The content of the `.timeindex` file."""
        times, offsets = self._columns
        halves = array(_WORD, times.tobytes())
        words = array(_WORD, bytes(TIME_ENTRY_BYTES * len(times)))
        words[0::3], words[1::3] = halves[_HIGH::2], halves[_LOW::2]
        words[2::3] = array(_WORD, offsets.tobytes())
        if _IS_LITTLE:
            words.byteswap()
        return words.tobytes()

    @classmethod
    def decode(cls, content: bytes) -> TimeEntries:
        """Raises CorruptIndex for a torn or zero-padded file, and for columns that do not increase from 0 on."""
        if len(content) % TIME_ENTRY_BYTES:
            raise CorruptIndex(f"{len(content)} bytes are not a whole number of entries")
        words = array(_WORD, content)
        if _IS_LITTLE:
            words.byteswap()
        halves = array(_WORD, bytes(8 * (len(content) // TIME_ENTRY_BYTES)))
        halves[_HIGH::2], halves[_LOW::2] = words[0::3], words[1::3]
        times, offsets = array(_TIME, halves.tobytes()), array(_OFFSET, words[2::3].tobytes())
        if not increases(times) or not increases(offsets):
            raise CorruptIndex("entries do not increase from 0")
        entries = cls()
        entries._columns = (times, offsets)
        return entries


def largest_of(batches: Sequence[IndexedBatch], base_offset: Offset, before: TimeEntry) -> TimeEntry:
    """The largest timestamp, where `before` is the largest so far. Of two equal ones the first."""
    for batch in batches:
        if batch.max_timestamp > before.timestamp:
            before = TimeEntry(batch.max_timestamp, batch.last_offset - base_offset)
    return before


class TimeIndexFile(IndexFile[TimeEntries]):
    """offsets: the segment's offset index; its `note` and `truncate_to` are called before those of this one."""

    entry_bytes = TIME_ENTRY_BYTES

    def __init__(
        self,
        disk: Disk,
        live_path: str,
        base_offset: Offset,
        log: LogFile,
        offsets: OffsetIndexFile,
        on_damage: Callable[[], None],
        suffix: str = "",
    ) -> None:
        super().__init__(disk, live_path, log, on_damage, suffix)
        self._base_offset, self._offsets = base_offset, offsets
        self._noted: TimeEntry | None = None  # the largest up to the writer's last batch; None: not known yet
        self._known: dict[None, TimeEntry] = {}  # the same for readers; a new one after each truncation

    @property
    def largest(self) -> TimeEntry:
        """The largest timestamp of the segment; NO_TIME where no batch has one.

        Found without loading the index. The last entry of a file counts if the batch that it names agrees, and if no
        batch after the last entry of the offset index is later; otherwise the indexes are built again. Raises
        CorruptBatch, DiskError.
        """
        kept = self._known
        known = kept.get(None)
        return known if known is not None else kept.setdefault(None, self._find_largest())

    def empty(self) -> TimeEntries:
        return TimeEntries()

    def decode(self, content: bytes) -> TimeEntries:
        return TimeEntries.decode(content)

    def create(self) -> None:
        super().create()
        self._noted = NO_TIME
        self._known = {None: NO_TIME}

    def get_ready(self) -> None:
        """Called before batches are written to the log. Raises what `largest` raises."""
        if self._noted is None:
            self._noted = self.largest

    def note(self, batches: Sequence[IndexedBatch], position: int) -> None:
        largest = self._noted
        assert largest is not None, "not ready"
        self._is_ahead = True  # before the index is asked for: from now on no other thread lets it leave
        index = self.index
        indexed = self._offsets.index.positions_since(position)
        if indexed:
            number = 0
            for batch in batches:
                largest = largest_of((batch,), self._base_offset, largest)
                if number < len(indexed) and position == indexed[number]:
                    index.append_if_later(largest)
                    number += 1
                position += batch.size
        else:
            largest = largest_of(batches, self._base_offset, largest)
        self._noted = self._known[None] = largest

    def truncate_to(self, position: int) -> None:
        """Raises CorruptBatch, DiskError where the batches between the last entry and `position` cannot be read."""
        self._is_ahead = True
        start = self._offsets.index.floor_position(position - 1)
        kept = self.index.up_to(start.relative_offset)
        largest = kept.last
        for _, header in (self._offsets.walk_from(start, position) if position else None) or ():
            largest = largest_of((header,), self._base_offset, largest)
        self.slot = {None: kept}
        self._noted = largest
        self._known = {None: largest}

    def rebuilt(self, slot: dict[None, TimeEntries], index: TimeEntries, largest: TimeEntry) -> None:
        """`install`, with the largest timestamp of all."""
        kept = self._known
        self.install(slot, index)
        if self._noted is None:
            kept[None] = largest

    def flush(self) -> None:
        index, largest = self.index, self.largest
        self._is_ahead = True
        index.append_if_later(largest)
        super().flush()

    def last_entry(self) -> TimeEntry:
        """The last entry, without loading the others; like every entry, a hint. NO_TIME if there is none."""
        if not self.slot:
            try:
                return self.read_last().last
            except (FileMissing, CorruptIndex):
                pass
        return self.index.last

    def agrees(self, entry: TimeEntry, limit: int) -> bool:
        """The batch that an entry names lies below `limit` and has its timestamp, or lies behind what is published."""
        if entry == NO_TIME:
            return True
        start = self._offsets.index.floor_before(entry.relative_offset + 1, limit)
        walk = self._offsets.walk_from(start, limit)
        if walk is None:
            return False
        for _, header in walk:
            if header.last_offset >= self._base_offset + entry.relative_offset:
                return (header.last_offset, header.max_timestamp) == self._stored(entry)
        return limit < self._log.size

    def _stored(self, entry: TimeEntry) -> tuple[Offset, int]:
        return self._base_offset + entry.relative_offset, entry.timestamp

    def _find_largest(self) -> TimeEntry:
        size, last = self._log.size, self.last_entry()
        walk = self._offsets.walk_from(self._offsets.last_entry(), size)
        if walk is not None:
            largest, is_met = NO_TIME, last == NO_TIME
            for _, header in walk:
                largest = largest_of((header,), self._base_offset, largest)
                is_met = is_met or (header.last_offset, header.max_timestamp) == self._stored(last)
            if largest.timestamp <= last.timestamp and (is_met or self.agrees(last, size)):
                return last
        self._on_damage()
        return self._known.get(None, last)
