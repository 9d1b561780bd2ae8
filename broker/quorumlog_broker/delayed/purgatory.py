"""Requests that wait for an offset: a fetch for the log's end, a produce for the high watermark. Pure.

A waiter is completed exactly once: by an offset, by a change of state, or at its deadline. It has neither thread nor
task: callbacks are synchronous, in the order in which the waiters arrived, and may watch again.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from quorumlog.ids import Offset

Key = TypeVar("Key")


class Reason(Enum):
    """Why a waiter was completed."""

    OFFSET = "offset"
    STATE = "state"
    TIME = "time"


@dataclass(slots=True)
class Waiter(Generic[Key]):
    """One waiting request. `done` is called once with the reason."""

    done: Callable[[Reason], None]
    keys: tuple[Key, ...]
    completed: bool = False


class Purgatory(Generic[Key]):
    """Keys are partitions; each has a heap of (offset, order of arrival, waiter)."""

    def __init__(self) -> None:
        self._by_key: dict[Key, list[tuple[Offset, int, Waiter[Key]]]] = {}
        self._stale: dict[Key, int] = {}  # the number of a heap's entries that were completed elsewhere
        self._by_time: list[tuple[int, int, Waiter[Key]]] = []
        self._arrivals = 0
        self._waiting = 0

    def __len__(self) -> int:
        """The number of waiters."""
        return self._waiting

    def watch(
        self, wanted: Sequence[tuple[Key, Offset]], deadline_ms: int, done: Callable[[Reason], None]
    ) -> Waiter[Key]:
        """Complete the waiter once any key has reached its offset (position >= offset), or at the deadline.

        The caller first checks whether a position was reached already, without an await in between.
        """
        waiter = Waiter(done, tuple(key for key, _ in wanted))
        self._arrivals += 1
        self._waiting += 1
        for key, offset in wanted:
            heapq.heappush(self._by_key.setdefault(key, []), (offset, self._arrivals, waiter))
        heapq.heappush(self._by_time, (deadline_ms, self._arrivals, waiter))
        return waiter

    def reached(self, key: Key, position: Offset) -> None:
        """Complete every waiter of `key` whose offset is at most `position`."""
        heap = self._by_key.get(key)
        due: list[tuple[int, Waiter[Key]]] = []
        while heap and heap[0][0] <= position:
            _, arrival, waiter = heapq.heappop(heap)
            due.append((arrival, waiter))
            if waiter.completed:
                self._stale[key] = self._stale.get(key, 0) - 1
        self._tidy(key)
        self._complete_all(due, Reason.OFFSET, key)

    def state_changed(self, key: Key) -> None:
        """Complete every waiter of `key`: it must check again, or fail."""
        heap = self._by_key.pop(key, [])
        self._stale.pop(key, None)
        self._complete_all([(arrival, waiter) for _, arrival, waiter in heap], Reason.STATE, key)

    def expire(self, now_ms: int) -> None:
        """Complete every waiter whose deadline is at or before now_ms."""
        due: list[tuple[int, Waiter[Key]]] = []
        while self._by_time and self._by_time[0][0] <= now_ms:
            _, arrival, waiter = heapq.heappop(self._by_time)
            due.append((arrival, waiter))
        self._complete_all(due, Reason.TIME, None)

    def cancel(self, waiter: Waiter[Key]) -> None:
        """Drop the waiter without calling `done`. Does nothing to a completed waiter."""
        if not waiter.completed:
            self._finish(waiter, None)

    def deadline_ms(self) -> int | None:
        """The earliest deadline of a waiter; None: there is none."""
        while self._by_time and self._by_time[0][2].completed:
            heapq.heappop(self._by_time)
        return self._by_time[0][0] if self._by_time else None

    def _complete_all(self, due: list[tuple[int, Waiter[Key]]], reason: Reason, popped_from: Key | None) -> None:
        waiters = [waiter for _, waiter in sorted(due, key=lambda entry: entry[0]) if not waiter.completed]
        for waiter in waiters:
            if not waiter.completed:  # a waiter watches a key once, but one callback may complete another
                self._finish(waiter, popped_from)
                waiter.done(reason)

    def _finish(self, waiter: Waiter[Key], popped_from: Key | None) -> None:
        waiter.completed = True
        self._waiting -= 1
        for key in waiter.keys:
            if key != popped_from and key in self._by_key:
                self._stale[key] = self._stale.get(key, 0) + 1
                self._tidy(key)
        if len(self._by_time) > 2 * self._waiting + 64:
            self._by_time = [entry for entry in self._by_time if not entry[2].completed]
            heapq.heapify(self._by_time)

    def _tidy(self, key: Key) -> None:
        """Remove completed waiters from a heap once they are most of it, so that memory follows the real waiters."""
        heap = self._by_key.get(key)
        if heap is None:
            return
        if heap and self._stale.get(key, 0) * 2 > len(heap):
            heap[:] = [entry for entry in heap if not entry[2].completed]
            heapq.heapify(heap)
            self._stale.pop(key, None)
        if not heap:
            del self._by_key[key]
            self._stale.pop(key, None)
