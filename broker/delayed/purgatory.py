"""Requests that wait for an offset: a fetch for the log to grow, a produce for the high watermark to pass.

A waiter is completed exactly once: by an offset, by a change of state, or by time. No thread and no task per waiter;
callbacks are synchronous, in the order in which the waiters came, and may watch again. Pure: the shell tells the time.
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
        self._stale: dict[Key, int] = {}  # how many entries of a heap have been completed elsewhere
        self._by_time: list[tuple[int, int, Waiter[Key]]] = []
        self._arrivals = 0
        self._waiting = 0

    def __len__(self) -> int:
        """How many wait."""
        return self._waiting

    def watch(
        self, wanted: Sequence[tuple[Key, Offset]], deadline_ms: int, done: Callable[[Reason], None]
    ) -> Waiter[Key]:
        """Complete once any key has reached its offset (position >= offset), or at the deadline.

        Whether a position is there already is for the caller to look at first: there is no await between.
        """
        waiter = Waiter(done, tuple(key for key, _ in wanted))
        self._arrivals += 1
        self._waiting += 1
        for key, offset in wanted:
            heapq.heappush(self._by_key.setdefault(key, []), (offset, self._arrivals, waiter))
        heapq.heappush(self._by_time, (deadline_ms, self._arrivals, waiter))
        return waiter

    def reached(self, key: Key, position: Offset) -> None:
        """Complete every waiter of `key` that wanted an offset up to `position`."""
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
        """Complete every waiter of `key`: it must look again, or fail."""
        heap = self._by_key.pop(key, [])
        self._stale.pop(key, None)
        self._complete_all([(arrival, waiter) for _, arrival, waiter in heap], Reason.STATE, key)

    def expire(self, now_ms: int) -> None:
        """Complete every waiter whose deadline is now or past."""
        due: list[tuple[int, Waiter[Key]]] = []
        while self._by_time and self._by_time[0][0] <= now_ms:
            _, arrival, waiter = heapq.heappop(self._by_time)
            due.append((arrival, waiter))
        self._complete_all(due, Reason.TIME, None)

    def cancel(self, waiter: Waiter[Key]) -> None:
        """The caller waits no longer; `done` is not called. A completed waiter is left as it is."""
        if not waiter.completed:
            self._finish(waiter, None)

    def deadline_ms(self) -> int | None:
        """When `expire` has something to do next; None: nobody waits."""
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
        """Completed waiters leave a heap when they are most of it: memory stays proportional to who waits."""
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
