"""One partition as its read_committed readers saw it."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

NOTHING = -1


class Skip(NamedTuple):
    """A read from start to `next` that delivered another number of records than the final read shows there."""

    start: int
    next: int
    delivered: int
    expected: int


class PartitionLog:
    """Values by offset: 9 bytes for an offset, 20 for a read. Offsets from 0, without large gaps."""

    def __init__(self) -> None:
        self.value = array("q")  # by offset: NOTHING where nobody has read or acknowledged a value
        self.final = bytearray()  # by offset: 1 where the final read shows a record
        self.final_end = 0  # exclusive: how far final reads went
        self._starts, self._nexts, self._delivered = array("q"), array("q"), array("i")

    def put(self, offset: int, value: int) -> int:
        """The value that the offset was known to have before: `value`, or another one. value may be NOTHING."""
        if offset >= len(self.value):
            more = offset + 1 - len(self.value) + len(self.value) // 4
            self.value.extend(array("q", [NOTHING]) * more)
            self.final.extend(bytes(more))
        known = self.value[offset]
        if known == NOTHING:
            self.value[offset] = value
            return value
        return known

    def note_read(self, start: int, next_offset: int, delivered: int, *, final: bool) -> None:
        self._starts.append(start)
        self._nexts.append(next_offset)
        self._delivered.append(delivered)
        if final:
            self.final_end = max(self.final_end, next_offset)

    def skips(self) -> Iterator[Skip]:
        """Reads that left out a record, or delivered one that was gone later; only as far as final reads went."""
        before = array("q", accumulate(self.final, initial=0))
        last = len(before) - 1
        for start, next_offset, delivered in zip(self._starts, self._nexts, self._delivered, strict=True):
            if next_offset <= self.final_end:
                expected = before[min(next_offset, last)] - before[min(start, last)]
                if delivered != expected:
                    yield Skip(start, next_offset, delivered, expected)

    def final_values(self) -> Iterator[int]:
        """In their order."""
        for offset, there in enumerate(self.final):
            if there:
                yield self.value[offset]
