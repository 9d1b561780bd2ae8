"""Offset index of one segment: where in the file to begin looking for an offset.

One entry every `index.interval.bytes`: (last offset of a batch, position of that batch). On disk, `.index`: pairs of
big-endian i32 (offset relative to the segment's base, position), FORMATS 4.4. In memory two flat arrays.

An index is a cache. It is written when its segment is closed for writing, never synced, and believed only as far as the log
agrees: the segment checks the batch at a looked-up position and falls back to its first byte (storage/segment.py).

One thread changes an index, any may look things up meanwhile: positions are appended before offsets and a look-up takes
its length from the offsets; truncation replaces the arrays.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

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


class CorruptIndex(Exception):
    """An index file that cannot be one. Nobody is told but the segment, which scans its log instead."""


@dataclass(slots=True)
class OffsetIndex:
    """Entries in increasing order of both columns."""

    offsets: array[int] = field(default_factory=lambda: array(_TYPE))
    positions: array[int] = field(default_factory=lambda: array(_TYPE))

    def __len__(self) -> int:
        return len(self.offsets)

    def append(self, relative_offset: int, position: int) -> None:
        assert 0 <= relative_offset <= MAX_RELATIVE_OFFSET and 0 <= position <= MAX_POSITION
        assert not self.offsets or (relative_offset > self.offsets[-1] and position > self.positions[-1])
        self.positions.append(position)
        self.offsets.append(relative_offset)

    def floor_offset(self, relative_offset: int) -> IndexEntry:
        """The last entry at or before an offset; START where there is none."""
        offsets, positions = self.offsets, self.positions
        after = bisect_right(offsets, relative_offset, hi=len(offsets))
        return IndexEntry(offsets[after - 1], positions[after - 1]) if after else START

    def floor_position(self, position: int) -> IndexEntry:
        """The last entry whose batch begins at or before a position; START where there is none."""
        offsets, positions = self.offsets, self.positions
        after = bisect_right(positions, position, hi=len(offsets))
        return IndexEntry(offsets[after - 1], positions[after - 1]) if after else START

    def truncate_to(self, position: int) -> None:
        """Forget batches that begin at or after `position`."""
        kept = bisect_right(self.positions, position - 1)
        self.offsets, self.positions = self.offsets[:kept], self.positions[:kept]

    def encode(self) -> bytes:
        """The content of the `.index` file."""
        pairs = array(_TYPE, bytes(ENTRY_BYTES * len(self)))
        pairs[0::2], pairs[1::2] = self.offsets, self.positions
        if sys.byteorder == "little":
            pairs.byteswap()
        return pairs.tobytes()

    @classmethod
    def decode(cls, content: bytes, log_size: int) -> OffsetIndex:
        """From the content of an `.index` file of a log of `log_size` bytes.

        Raises CorruptIndex for a torn or zero-padded file, columns that do not increase, and positions outside the log.
        """
        if len(content) % ENTRY_BYTES:
            raise CorruptIndex(f"{len(content)} bytes are not a whole number of entries")
        pairs = array(_TYPE, content)
        if sys.byteorder == "little":
            pairs.byteswap()
        index = cls(pairs[0::2], pairs[1::2])
        if not _increases(index.offsets, -1) or not _increases(index.positions, -1):
            raise CorruptIndex("entries do not increase")
        if index.positions and index.positions[-1] >= log_size:
            raise CorruptIndex(f"position {index.positions[-1]} is not in a log of {log_size} bytes")
        return index


def _increases(column: array[int], floor: int) -> bool:
    previous = floor
    for value in column:
        if value <= previous:
            return False
        previous = value
    return True
