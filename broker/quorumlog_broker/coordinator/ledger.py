"""What waits until the records behind it are committed: answers, and steps that must not happen before.

A reply leaves when the high watermark has passed its records in the leader epoch of their append, and never by the
watermark of a later epoch: what was appended may have been cut in between (KAFKA-20634). The owner drops the whole
ledger when its leadership ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from quorumlog.ids import Offset

Action = TypeVar("Action")


class Ledger(Generic[Action]):
    """By offset, and in the order of parking where offsets are equal."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Offset, int, Action]] = []
        self._order = count()

    def park(self, end: Offset, action: Action) -> None:
        """end: exclusive end of the records that must be committed."""
        heappush(self._waiting, (end, next(self._order), action))

    def committed(self, high_watermark: Offset) -> Iterator[Action]:
        """Take what waited for records below the high watermark."""
        while self._waiting and self._waiting[0][0] <= high_watermark:
            yield heappop(self._waiting)[2]

    def drop(self) -> Iterator[Action]:
        """Take everything, because its records may never be committed."""
        while self._waiting:
            yield heappop(self._waiting)[2]
