"""What a reader of a live tail gets next: each record once, in order, or how many it missed.

The buffer is bounded by records and bytes. If it is full, the oldest go, for a live tail is about now, and their
number stands where they stood.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from quorumlog.client.consumer import ConsumedRecord
from quorumlog.ids import Offset

MAX_BUFFERED = 1_000  # records
MAX_BUFFERED_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Skipped:
    """So many records that fit were not given, because the reader was slower than they came."""

    count: int


@dataclass(frozen=True, slots=True)
class Gone:
    """Offsets that the log lost before they were read: by retention, or because it was truncated. end: exclusive."""

    partition: int
    start: Offset
    end: Offset


Item = ConsumedRecord | Skipped | Gone


class TailBuffer:
    """Not more than `max_records` and `max_bytes` of records (one at least, however large)."""

    def __init__(self, max_records: int = MAX_BUFFERED, max_bytes: int = MAX_BUFFERED_BYTES) -> None:
        assert max_records >= 1
        self._max_records, self._max_bytes = max_records, max_bytes
        self._items: deque[ConsumedRecord | Gone] = deque()
        self._bytes = 0
        self._skipped = 0  # before the oldest of `_items`
        self.done: dict[int, Offset] = {}  # by partition, the offset behind the last record that was given or skipped
        self.total_skipped = 0

    def __len__(self) -> int:
        return len(self._items)

    def put(self, items: Iterable[ConsumedRecord | Gone]) -> None:
        for item in items:
            self._items.append(item)
            self._bytes += _size(item)
            while len(self._items) > 1 and (len(self._items) > self._max_records or self._bytes > self._max_bytes):
                self._skip()

    def _skip(self) -> None:
        item = self._items.popleft()
        self._bytes -= _size(item)
        self._note(item)
        if isinstance(item, ConsumedRecord):
            self._skipped += 1
            self.total_skipped += 1

    def take(self, count: int) -> list[Item]:
        """The next `count` records at most, with what is to be told before them. What has no room waits."""
        found: list[Item] = []
        if self._skipped:
            found.append(Skipped(self._skipped))
            self._skipped = 0
        while self._items and count > 0:
            item = self._items.popleft()
            self._bytes -= _size(item)
            self._note(item)
            found.append(item)
            count -= 1
        return found

    def _note(self, item: ConsumedRecord | Gone) -> None:
        self.done[item.partition] = Offset(item.offset + 1) if isinstance(item, ConsumedRecord) else item.end


def _size(item: ConsumedRecord | Gone) -> int:
    if isinstance(item, Gone):
        return 0
    named = sum(len(name) + len(value or b"") for name, value in item.headers)
    return len(item.key or b"") + len(item.value or b"") + named
