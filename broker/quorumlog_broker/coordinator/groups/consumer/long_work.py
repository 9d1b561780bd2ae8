"""Work that is too long for one turn, in slices. The owner of the core runs one slice in a turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator

Steps = Generator[None, None, None]


class LongWork:
    """By kind and group: one of each kind at a time for a group. Groups take turns."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, str], tuple[Steps, Callable[[], None]]] = {}
        self._queue: deque[tuple[str, str]] = deque()

    def __bool__(self) -> bool:
        return bool(self._queue)

    def has(self, kind: str, group_id: str) -> bool:
        return (kind, group_id) in self._running

    def start(self, kind: str, group_id: str, steps: Steps, done: Callable[[], None]) -> None:
        """done: called behind the last slice; it may start the next work of this kind and group."""
        assert (kind, group_id) not in self._running
        self._running[kind, group_id] = steps, done
        self._queue.append((kind, group_id))

    def run_slice(self) -> None:
        """Of the work whose turn it is; nothing if there is none."""
        if not self._queue:
            return
        key = self._queue.popleft()
        steps, done = self._running[key]
        try:
            next(steps)
        except StopIteration:
            del self._running[key]
            done()
        else:
            self._queue.append(key)
