"""What pass 1 leaves for pass 2: what becomes of each record of the dirty part, and what lies in each piece of it.

One byte for each dirty offset takes the place of a second look into the map: pass 2 needs no key, and a batch whose
records all stay or all go need not be decoded. Where no record of a piece stays, the piece is not even read, and a
segment of which everything stays is left alone.

Memory: a byte an offset, for at most so many offsets (`limit`); behind them pass 2 looks into the map again. One entry
for each piece, which is about an I/O buffer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from quorumlog.ids import Offset

GONE = 0  # it was overwritten, has no key, is a tombstone whose time is over, or there is no record
STAYS = 1
NEEDS_HORIZON = 2  # it stays, and is a tombstone in a batch without a delete horizon


class Page(NamedTuple):
    """A piece of a source that pass 1 has indexed whole, and in which pass 2 may skip what has no record that stays:
    batches with records, none of a transaction. It covers [first, end); `records` counts its records.
    """

    position: int
    size: int
    first: Offset
    end: Offset
    records: int


class Marks:
    """states: of the offsets [first, first + len(states))."""

    def __init__(self, first: Offset, count: int, limit: int) -> None:
        self.first = first
        self.states = bytearray(max(0, min(count, limit)))
        self._pages: dict[Offset, list[Page]] = {}  # by the base offset of the source, in order

    def covers(self, first: Offset, end: Offset) -> bool:
        """If every offset of the range has a state. end: exclusive."""
        return self.first <= first and end - self.first <= len(self.states)

    def stay(self, first: Offset, end: Offset) -> int:
        """How many records of a covered range stay."""
        return end - first - self.states.count(GONE, first - self.first, end - self.first)

    def need_horizon(self, first: Offset, end: Offset) -> bool:
        return self.states.find(NEEDS_HORIZON, first - self.first, end - self.first) >= 0

    # --- pieces ---

    def note_page(self, source: Offset, page: Page) -> None:
        """source: its base offset. The pages of a source come in order."""
        if self.covers(page.first, page.end):
            self._pages.setdefault(source, []).append(page)

    def stays_as_it_is(self, source: Offset, size: int) -> bool:
        """If no record of a source goes and none needs a horizon. False where that is not known."""
        pages, position = self._pages.get(source, ()), 0
        for page in pages:
            if page.position != position or not self._is_whole(page):
                return False
            position += page.size
        return bool(pages) and position == size

    def to_read(self, source: Offset, size: int, *, is_last: bool, needed: Sequence[Offset]) -> list[tuple[int, int]]:
        """Ranges of bytes of a source, without the pages of which nothing stays. They neither touch nor overlap.

        is_last: its last batch stays in any case. needed: offsets whose batches do, too; sorted.
        """
        ranges, begins = [], 0
        for page in self._pages.get(source, ()):
            stays = (is_last and page.position + page.size == size) or self.stay(page.first, page.end)
            at = bisect_left(needed, page.first)
            if stays or (at < len(needed) and needed[at] < page.end):
                continue
            if begins < page.position:
                ranges.append((begins, page.position))
            begins = page.position + page.size
        if begins < size:
            ranges.append((begins, size))
        return ranges

    def _is_whole(self, page: Page) -> bool:
        return self.stay(page.first, page.end) == page.records and not self.need_horizon(page.first, page.end)
