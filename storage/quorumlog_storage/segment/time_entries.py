"""Entries of a time index: (largest timestamp so far, last offset of the batch that has it), Kafka's `TimeIndex`.

On disk, `.timeindex`: big-endian i64 timestamp in ms, i32 offset relative to the segment's base. In
memory two flat arrays. Both columns increase: timestamps of records may fall, the largest so far does not.

One thread changes the entries, any may look things up meanwhile: offsets are appended before timestamps, a look-up
takes its length from the timestamps, and truncation makes another object.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from quorumlog.records.batch import NO_TIMESTAMP
from quorumlog_storage.segment.index_file import CorruptIndex, increases

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
