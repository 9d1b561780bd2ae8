"""Decides what the newest N records are, over all partitions, and what has to be read to know it.

Each partition is read backward, window by window, each window whole. While fewer than N records are found, every
partition is read further back, with windows that grow: markers, aborted records and compacted gaps hold none. Once N
are found, the oldest of them has a time T. A leader knows the first offset whose time is not before T, so a partition
is done when it was read down to there; nothing older can belong to the N. Times may fall back, and then that offset
lies far below: how much is read only for this proof is limited, and the page says so.

The next page goes on below. What was read and had no room is read again, before anything else and whatever the limits
say, so that no offset is both above `low` and unread; what was on a page before is left out. A page after one that was
not exact may hold more than N: all that belonged on the one before.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence

from quorumlog.client.consumer import ConsumedRecord
from quorumlog.client.errors import Unavailable
from quorumlog.client.looking.limits import Limits, Page, Work
from quorumlog.client.looking.matching import Where
from quorumlog.client.looking.place import Backward, Below, Key
from quorumlog.ids import Offset

MAX_FAILURES = 12  # rounds in which a partition's window was not read whole, though each is smaller than the last
GROWTH = 4  # of a window that held too little
MAX_WINDOW = 100_000  # offsets
ROUND_BYTES = 8 << 20  # that the windows of one round should have, as far as is known


class NewestPage:
    """first: log start of each partition. by_time: False: by offset; for one partition, and without a proof."""

    def __init__(
        self, place: Backward, first: Mapping[int, Offset], where: Where, limits: Limits, *, by_time: bool = True
    ) -> None:
        self.work = Work()
        self.is_exact = True
        self._place, self._first, self._where, self._limits, self._by_time = place, first, where, limits, by_time
        self._low = {index: below.high for index, below in place.below.items()}
        self._window = dict.fromkeys(self._low, max(limits.records, 16))
        self._bytes_of_offset = 1.0
        self._dropped: dict[int, Offset] = {}  # the last of a partition that fits and has no room
        self._found: list[tuple[Key, ConsumedRecord]] = []
        self._proving = 0  # records that were read since N were found
        self._tried: dict[int, int] = {}  # offsets of the windows of this round
        self._failures: dict[int, int] = {}
        self._is_late = False

    @property
    def is_full(self) -> bool:
        return len(self._found) >= self._limits.records

    @property
    def oldest(self) -> Key | None:
        """Of the N that were found; None while there are fewer."""
        return self._found[0][0] if self.is_full else None

    @property
    def unread(self) -> list[int]:
        return [index for index, low in self._low.items() if low > self._first[index]]

    def windows(self, reaches: Mapping[int, Offset] | None = None) -> dict[int, tuple[Offset, Offset]]:
        """What to read now: first offset and end by partition. Empty: the page is done.

        reaches: once N are found, the first offset of each unread partition whose time is not before that of `oldest`;
        -1: there is none.
        """
        if gone := [index for index, count in self._failures.items() if count > MAX_FAILURES]:
            raise Unavailable(f"partition {gone[0]} gave nothing in {MAX_FAILURES} tries; is its leader there?")
        again = [index for index, low in self._low.items() if low > self._place.below[index].low]
        wanted = again or self._wanted(reaches)
        room = max(1, int(ROUND_BYTES / max(1.0, self._bytes_of_offset) / max(1, len(wanted))))
        found = {}
        for index in wanted:
            lowest = max(self._first[index], self._low[index] - min(self._window[index], room))
            if self.is_full and not again and reaches is not None:
                lowest = max(lowest, reaches[index])
            found[index] = (lowest, self._low[index])
            self._tried[index] = self._low[index] - lowest
        return found

    def _wanted(self, reaches: Mapping[int, Offset] | None) -> list[int]:
        wanted = self.unread
        if self.is_full and not self._by_time:
            return []
        if self.is_full:
            assert reaches is not None
            wanted = [index for index in wanted if 0 <= reaches[index] < self._low[index]]
        is_over = self.work.is_over(self._limits) or self._proving >= self._limits.proof_records
        if wanted and (is_over or self._is_late):
            self.is_exact = False
            return []
        return wanted

    @property
    def needs_reaches(self) -> bool:
        return self.is_full and self._by_time

    def take(self, partition: int, start: Offset, records: Sequence[ConsumedRecord], size: int, span: int) -> None:
        """A whole window, from this offset to where the one before began. size: bytes that were received for it.

        span: offsets that those bytes hold, for whole batches are received."""
        assert self._first[partition] <= start < self._low[partition]
        self._bytes_of_offset = size / span if span else self._bytes_of_offset
        self._proving += len(records) if self.is_full else 0
        before = len(self._found)
        for record in records:
            self._look(partition, record)
        if len(self._found) == before:
            self._window[partition] = min(self._window[partition] * GROWTH, MAX_WINDOW)
        self._low[partition] = start
        self.work = self.work.more(len(records), size)

    def shrink(self, partition: int, bytes_of_offset: float) -> None:
        """A window was too large to be read whole, or took too long."""
        self._bytes_of_offset = max(self._bytes_of_offset, bytes_of_offset)
        self._window[partition] = max(1, self._tried[partition] // GROWTH)
        self._failures[partition] = self._failures.get(partition, 0) + 1

    def end(self) -> None:
        """The time is over: nothing is read but what a page before has promised."""
        self._is_late = True

    def _look(self, partition: int, record: ConsumedRecord) -> None:
        key = Key(record.timestamp_ms if self._by_time else 0, partition, record.offset)
        place = self._place
        if place.taken is not None and record.offset >= place.below[partition].low and key >= place.taken:
            return  # on a page before
        if not self._where.fits(record):
            return
        insort(self._found, (key, record), key=lambda entry: entry[0])
        if len(self._found) > self._limits.records and not self._is_belated(self._found[0][0]):
            dropped = self._found.pop(0)[0]
            self._dropped[dropped.partition] = max(dropped.offset, self._dropped.get(dropped.partition, dropped.offset))

    def _is_belated(self, key: Key) -> bool:
        """It belonged on a page before, which was not exact. All of these are given, so that one key tells what was."""
        return self._place.taken is not None and key > self._place.taken

    def page(self) -> Page:
        below = {}
        for index, low in self._low.items():
            dropped = self._dropped.get(index)
            below[index] = Below(low if dropped is None else Offset(dropped + 1), low)
        left = {index: high - self._first[index] for index, (high, _) in below.items() if high > self._first[index]}
        taken = self._found[0][0] if self._found else self._place.taken
        if taken is not None and self._is_belated(taken):
            taken = self._place.taken
        place = Backward(self._place.topic_id, below, taken)
        records = tuple(record for _, record in self._found)
        return Page(records=records, work=self.work, place=place, at_end=not left, left=left, is_exact=self.is_exact)
