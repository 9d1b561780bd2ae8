"""Offset index of one segment: where in the log file to begin looking for an offset.

One entry every `index.interval.bytes`: (last offset of a batch, position of that batch). On disk, `.index`: pairs of
big-endian i32 (offset relative to the segment's base, position), Kafka's `OffsetIndex`. In memory two flat arrays.

The index is only a hint: `walk_from` compares the batch at a looked-up position with the entry. If they differ, the
indexes of the segment are built again (quorumlog_storage/segment/index_pair.py).

One thread changes an index, any may look things up meanwhile: both columns hang on one name, positions are appended
before offsets, a look-up takes its length from the offsets, and truncation replaces the arrays.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog.records.format.batch import BatchHeader
from quorumlog_storage.files.disk import Disk, FileMissing
from quorumlog_storage.segment.index_file import CorruptIndex, IndexFile, increases
from quorumlog_storage.segment.log_file import CorruptBatch, IndexedBatch, LogFile

ENTRY_BYTES = 8
MAX_RELATIVE_OFFSET = 2**31 - 1
MAX_POSITION = 2**31 - 1

_TYPE = "i"
assert array(_TYPE).itemsize == 4


class IndexEntry(NamedTuple):
    """relative_offset: of the last record of the batch at `position`; -1 stands for the segment's first byte."""

    relative_offset: int
    position: int


START = IndexEntry(-1, 0)


class OffsetIndex:
    """Entries in increasing order of both columns."""

    def __init__(self) -> None:
        self._columns = (array(_TYPE), array(_TYPE))  # relative offsets, positions

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, number: int) -> IndexEntry:
        offsets, positions = self._columns
        return IndexEntry(offsets[number], positions[number])

    @property
    def last_position(self) -> int:
        """Position of the last batch indexed; 0, the segment's first byte, if there is none."""
        positions = self._columns[1]
        return positions[-1] if positions else 0

    def append(self, relative_offset: int, position: int) -> None:
        offsets, positions = self._columns
        assert 0 <= relative_offset <= MAX_RELATIVE_OFFSET and 0 <= position <= MAX_POSITION
        assert not offsets or (relative_offset > offsets[-1] and position > positions[-1])
        positions.append(position)
        offsets.append(relative_offset)

    def floor_offset(self, relative_offset: int) -> IndexEntry:
        """The last entry at or before an offset; START if there is none."""
        offsets, positions = self._columns
        after = bisect_right(offsets, relative_offset, hi=len(offsets))
        return IndexEntry(offsets[after - 1], positions[after - 1]) if after else START

    def floor_position(self, position: int) -> IndexEntry:
        """The last entry whose batch begins at or before a position; START if there is none."""
        offsets, positions = self._columns
        after = bisect_right(positions, position, hi=len(offsets))
        return IndexEntry(offsets[after - 1], positions[after - 1]) if after else START

    def floor_before(self, relative_offset: int, position: int) -> IndexEntry:
        """The last entry before an offset whose batch begins before a position; START if there is none."""
        offsets, positions = self._columns
        length = len(offsets)
        after = min(bisect_left(offsets, relative_offset, hi=length), bisect_left(positions, position, hi=length))
        return IndexEntry(offsets[after - 1], positions[after - 1]) if after else START

    def next_position(self, position: int, otherwise: int) -> int:
        """Where the first indexed batch begins that begins after a position."""
        positions = self._columns[1]
        after = bisect_right(positions, position)
        return positions[after] if after < len(positions) else otherwise

    def positions_since(self, position: int) -> array[int]:
        """Where the indexed batches begin that begin at a position or after it."""
        positions = self._columns[1]
        return positions[bisect_left(positions, position) :]

    def note(self, batches: Sequence[IndexedBatch], position: int, base_offset: Offset, interval: int) -> None:
        """A batch is indexed if it begins more than the interval after the last indexed one."""
        due = self.last_position + interval
        for batch in batches:
            if position > due:
                self.append(batch.last_offset - base_offset, position)
                due = position + interval
            position += batch.size

    def truncate_to(self, position: int) -> None:
        """Forget batches that begin at or after `position`."""
        offsets, positions = self._columns
        kept = bisect_right(positions, position - 1)
        self._columns = (offsets[:kept], positions[:kept])

    def encode(self) -> bytes:
        """The content of the `.index` file."""
        pairs = array(_TYPE, bytes(ENTRY_BYTES * len(self)))
        pairs[0::2], pairs[1::2] = self._columns
        if sys.byteorder == "little":
            pairs.byteswap()
        return pairs.tobytes()

    @classmethod
    def decode(cls, content: bytes, log_size: int) -> OffsetIndex:
        """From the content of an `.index` file of a log of `log_size` bytes.

        Raises CorruptIndex for a torn or zero-padded file, columns that do not increase, positions outside the log.
        """
        if len(content) % ENTRY_BYTES:
            raise CorruptIndex(f"{len(content)} bytes are not a whole number of entries")
        pairs = array(_TYPE, content)
        if sys.byteorder == "little":
            pairs.byteswap()
        offsets, positions = pairs[0::2], pairs[1::2]
        if not increases(offsets) or not increases(positions):
            raise CorruptIndex("entries do not increase from 0")
        if positions and positions[-1] >= log_size:
            raise CorruptIndex(f"position {positions[-1]} is not in a log of {log_size} bytes")
        index = cls()
        index._columns = (offsets, positions)
        return index


class OffsetIndexFile(IndexFile[OffsetIndex]):
    """A `SegmentCache`: the offset index of a segment and its `.index` file."""

    entry_bytes = ENTRY_BYTES

    def __init__(
        self,
        disk: Disk,
        live_path: str,
        base_offset: Offset,
        log: LogFile,
        interval_bytes: int,
        on_damage: Callable[[], None],
        suffix: str = "",
    ) -> None:
        super().__init__(disk, live_path, log, on_damage, suffix)
        self._base_offset, self._interval = base_offset, interval_bytes

    def empty(self) -> OffsetIndex:
        return OffsetIndex()

    def decode(self, content: bytes) -> OffsetIndex:
        return OffsetIndex.decode(content, self._log.size)

    def note(self, batches: Sequence[IndexedBatch], position: int) -> None:
        """A batch is indexed if it begins more than the interval after the last indexed one."""
        self._is_ahead = True  # first: from now on no other thread lets it leave
        self.index.note(batches, position, self._base_offset, self._interval)

    def truncate_to(self, position: int) -> None:
        self._is_ahead = True
        index = self.index
        index.truncate_to(position)
        self.slot = {None: index}  # another one: a rebuild that runs now is too late

    def last_entry(self) -> IndexEntry:
        """The last entry, without loading the others; like every entry, a hint. START if there is none."""
        if not self.slot:
            try:
                return self.read_last().floor_position(MAX_POSITION)
            except (FileMissing, CorruptIndex):
                pass
        return self.index.floor_position(MAX_POSITION)

    def walk_from(self, entry: IndexEntry, limit: int) -> Iterator[tuple[int, BatchHeader]] | None:
        """`LogFile.walk` from the batch of an entry on; None if the log does not agree with the entry."""
        if entry == START:
            return self._log.walk(0, limit)
        if entry.position >= limit:
            return None
        walk = self._log.walk(entry.position, limit)
        try:
            first = next(walk)
        except CorruptBatch:
            return None
        if first[1].last_offset != self._base_offset + entry.relative_offset:
            return None
        return chain((first,), walk)
