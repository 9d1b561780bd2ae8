"""Deadlines by key, for a core: armed again often, and rarely reached.

A session's deadline moves with each heartbeat. Moving it changes a number only: the heap has one entry per key, which
is looked at when its time comes and queued again if the deadline has moved on.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Timers(Generic[Key]):
    """Times are ms of the clock that the owner passes in."""

    def __init__(self) -> None:
        self._deadlines: dict[Key, int] = {}
        self._queued: dict[Key, int] = {}  # where the heap has the key
        self._heap: list[tuple[int, int, Key]] = []
        self._order = count()

    def arm(self, key: Key, at_ms: int) -> None:
        """The key is due at `at_ms`, and no longer at an earlier or a later time."""
        self._deadlines[key] = at_ms
        queued = self._queued.get(key)
        if queued is None or at_ms < queued:
            self._queue(key, at_ms)

    def cancel(self, key: Key) -> None:
        """Whether it is armed or not."""
        self._deadlines.pop(key, None)

    def __contains__(self, key: Key) -> bool:
        """It is armed."""
        return key in self._deadlines

    def due(self, now_ms: int) -> Iterator[Key]:
        """The keys whose time has come, each no longer armed when it is given. The caller may arm keys meanwhile."""
        while self._heap and self._heap[0][0] <= now_ms:
            at_ms, _, key = heappop(self._heap)
            if self._queued.get(key) != at_ms:
                continue  # it is queued at an earlier time, too, or was
            del self._queued[key]
            deadline = self._deadlines.get(key)
            if deadline is None:
                continue
            if deadline > now_ms:
                self._queue(key, deadline)
                continue
            del self._deadlines[key]
            yield key

    def next_ms(self) -> int | None:
        """When to look again: not later than the first deadline. None: nothing is armed."""
        while self._heap and self._heap[0][2] not in self._deadlines:
            at_ms, _, key = heappop(self._heap)
            if self._queued.get(key) == at_ms:
                del self._queued[key]
        return self._heap[0][0] if self._heap else None

    def _queue(self, key: Key, at_ms: int) -> None:
        self._queued[key] = at_ms
        heappush(self._heap, (at_ms, next(self._order), key))
