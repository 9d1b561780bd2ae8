"""Offset index of one segment: where in the log file to begin looking for an offset.

One entry every `index.interval.bytes`: (last offset of a batch, position of that batch). On disk, `.index`: pairs of
big-endian i32 (offset relative to the segment's base, position), FORMATS 4.4. In memory two flat arrays.

The index is only a hint: the segment compares the batch at a looked-up position with the entry and falls back to the
first byte (storage/segment.py).

One thread changes an index, any may look things up meanwhile: both columns hang on one name, positions are appended
before offsets, a look-up takes its length from the offsets, and truncation replaces the arrays.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from operator import lt
from typing import NamedTuple

from quorumlog.ids import Offset
from storage.disk import Disk, FileMissing, write_fully
from storage.log_file import LogFile
from storage.segment_file import IndexedBatch, suffixed

ENTRY_BYTES = 8
INDEX_OVERHEAD_BYTES = 256  # what a loaded index takes beside its entries, about
MAX_RELATIVE_OFFSET = 2**31 - 1
MAX_POSITION = 2**31 - 1

_TYPE = "i"
assert array(_TYPE).itemsize == 4


class IndexEntry(NamedTuple):
    """relative_offset: of the last record of the batch at `position`; -1 stands for the segment's first byte."""

    relative_offset: int
    position: int


START = IndexEntry(-1, 0)


class CorruptIndex(Exception):
    """The content of an index file is impossible. `OffsetIndexFile` handles it: it builds the index again."""


class OffsetIndex:
    """Entries in increasing order of both columns."""

    def __init__(self) -> None:
        self._columns = (array(_TYPE), array(_TYPE))  # relative offsets, positions

    def __len__(self) -> int:
        return len(self._columns[0])

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
        if not _increases(offsets) or not _increases(positions):
            raise CorruptIndex("entries do not increase from 0")
        if positions and positions[-1] >= log_size:
            raise CorruptIndex(f"position {positions[-1]} is not in a log of {log_size} bytes")
        index = cls()
        index._columns = (offsets, positions)
        return index


def _increases(column: array[int]) -> bool:
    return not column or (column[0] >= 0 and all(map(lt, column, islice(column, 1, None))))


class OffsetIndexFile:
    """A `SegmentCache`: the offset index of a segment and its `.index` file.

    A `bounded.Resident`: an index that its file holds as well may leave the memory, from any thread.
    """

    def __init__(
        self, disk: Disk, live_path: str, base_offset: Offset, log: LogFile, interval_bytes: int, suffix: str = ""
    ) -> None:
        self.path = suffixed(live_path, suffix)
        self._live_path = live_path
        self._disk, self._base_offset, self._log, self._interval = disk, base_offset, log, interval_bytes
        self._index: OffsetIndex | None = None
        self._loaded: dict[None, OffsetIndex] = {}  # at most one: the first thread that loads it wins
        self._bound = disk.resources.indexes
        self._is_ahead = False  # the memory holds what the file lacks
        self._is_gone = False  # removed or abandoned
        self.was_used = False

    @property
    def index(self) -> OffsetIndex:
        """Loaded or built at the first use. Raises CorruptBatch if the log cannot be walked."""
        index = self._index
        if index is None:
            return self._keep(self._load())
        self.was_used = True
        return index

    @property
    def size(self) -> int:
        return ENTRY_BYTES * len(self.index)

    def create(self) -> None:
        self._loaded = {}
        self._is_ahead = True
        self._keep(OffsetIndex())

    def note(self, batches: Sequence[IndexedBatch], position: int) -> None:
        """A batch is indexed if it begins more than the interval after the last indexed one."""
        self._is_ahead = True  # first: from now on no other thread lets it leave
        index = self.index
        due = index.last_position + self._interval
        for batch in batches:
            if position > due:
                index.append(batch.last_offset - self._base_offset, position)
                due = position + self._interval
            position += batch.size

    def truncate_to(self, position: int) -> None:
        self._is_ahead = True
        self.index.truncate_to(position)

    def distrust(self) -> None:
        """The log does not agree with the index: from now on the segment is searched from its first byte."""
        self.index.truncate_to(0)

    def last_entry(self) -> IndexEntry:
        """The last entry, without loading the others; like every entry, a hint. START if there is none."""
        if self._index is None:
            try:
                return self._read_last().floor_position(MAX_POSITION)
            except (FileMissing, CorruptIndex):
                pass
        return self.index.floor_position(MAX_POSITION)

    def flush(self) -> None:
        """Write the index file for the next start. Not synced, not atomic: it is a cache."""
        file = self._disk.open(self.path, create=True)
        content = self.index.encode()
        write_fully(file, self.path, [content], 0)
        file.truncate(len(content))
        file.close()
        self._is_ahead = False
        self._bound.admit(self)  # with the size that it has now; and it may leave

    def rename(self, suffix: str) -> None:
        renamed = suffixed(self._live_path, suffix)
        if self._disk.exists(self.path):
            self._disk.rename(self.path, renamed)
        self.path = renamed

    def remove(self) -> None:
        self._bound.forget(self)
        if self._disk.exists(self.path):
            self._disk.unlink(self.path)

    def abandon(self) -> None:
        """The name is about to be another file's. A reader that still asks searches from the first byte."""
        self._is_gone = True
        self._bound.forget(self)

    # --- bounded.Resident ---

    @property
    def weight(self) -> int:
        index = self._index
        return INDEX_OVERHEAD_BYTES + (ENTRY_BYTES * len(index) if index is not None else 0)

    @property
    def is_held(self) -> bool:
        return self._is_ahead

    def leave(self) -> None:
        self._loaded, self._index = {}, None

    # --- details ---

    def _keep(self, index: OffsetIndex) -> OffsetIndex:
        kept = self._index = self._loaded.setdefault(None, index)
        if not self._is_gone:
            self._bound.admit(self)
        return kept

    def _read_last(self) -> OffsetIndex:
        file = self._disk.open(self.path)
        content = file.pread(max(0, file.size() - ENTRY_BYTES), ENTRY_BYTES)
        file.close()
        return OffsetIndex.decode(content, self._log.size)

    def _load(self) -> OffsetIndex:
        if self._is_gone:
            return OffsetIndex()
        try:
            return OffsetIndex.decode(self._disk.read_bytes(self.path), self._log.size)
        except (FileMissing, CorruptIndex):
            return self._build()

    def _build(self) -> OffsetIndex:
        built = OffsetIndexFile(self._disk, self._live_path, self._base_offset, self._log, self._interval)
        built.create()
        for position, header in self._log.walk(0, self._log.size):
            built.note((header,), position)
        self._bound.forget(built)
        self._is_ahead = True
        return built.index
