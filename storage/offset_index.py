"""Offset index of one segment: where in the file to begin looking for an offset.

One entry every `index.interval.bytes`: (last offset of a batch, position of that batch). On disk, `.index`: pairs of
big-endian i32 (offset relative to the segment's base, position), FORMATS 4.4. In memory two flat arrays.

An index is a cache. It is written when its segment is closed for writing, never synced, and believed only as far as the
log agrees: the segment checks the batch at a looked-up position and falls back to its first byte (storage/segment.py).

One thread changes an index, any may look things up meanwhile: both columns hang on one name, positions are appended
before offsets, a look-up takes its length from the offsets, and truncation replaces the arrays.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from itertools import islice
from operator import lt
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


class OffsetIndex:
    """Entries in increasing order of both columns."""

    def __init__(self) -> None:
        self._columns = (array(_TYPE), array(_TYPE))  # relative offsets, positions

    def __len__(self) -> int:
        return len(self._columns[0])

    @property
    def last_position(self) -> int:
        """Position of the last batch indexed; 0, the segment's first byte, where there is none."""
        positions = self._columns[1]
        return positions[-1] if positions else 0

    def append(self, relative_offset: int, position: int) -> None:
        offsets, positions = self._columns
        assert 0 <= relative_offset <= MAX_RELATIVE_OFFSET and 0 <= position <= MAX_POSITION
        assert not offsets or (relative_offset > offsets[-1] and position > positions[-1])
        positions.append(position)
        offsets.append(relative_offset)

    def floor_offset(self, relative_offset: int) -> IndexEntry:
        """The last entry at or before an offset; START where there is none."""
        offsets, positions = self._columns
        after = bisect_right(offsets, relative_offset, hi=len(offsets))
        return IndexEntry(offsets[after - 1], positions[after - 1]) if after else START

    def floor_position(self, position: int) -> IndexEntry:
        """The last entry whose batch begins at or before a position; START where there is none."""
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
