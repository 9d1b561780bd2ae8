"""Freeing the files of deleted partitions in small steps, so that no sync waits for it long.

A file system frees 1 GiB in 250 ms (measured: ext4 with discard). A sync that came meanwhile waited for 70 ms of them,
whichever thread unlinked the file. In steps of `REMOVAL_STEP_BYTES` with pauses the longest wait was 4 ms. Each log
directory performs one step of one partition at a time. An idle directory frees 350 MB a second; the pauses of a busy
one are longer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial

from broker.logdirs.log_directory import DirectoryQueue

REMOVAL_STEP_BYTES = 8 * 1024 * 1024
REMOVAL_PAUSE_MS = 20  # at least, after a step that left something
PAUSE_PER_STEP = 4  # the pause is so many times as long as the step took, its wait in the queue included ...
REMOVAL_PAUSE_MAX_MS = 200  # ... but at most this: a directory that is always busy frees some 40 MB a second


class Removals:
    """Of one log directory. The next start frees what failed or was not finished at a stop."""

    def __init__(self, queue: DirectoryQueue) -> None:
        self._queue = queue
        self._due: deque[str] = deque()  # the first is under way
        self._timers: dict[str, asyncio.TimerHandle] = {}  # of those that are not due yet, by name
        self._pause: asyncio.TimerHandle | None = None
        self._closed = False
        self._begun_s = 0.0  # the step that is under way

    def later(self, name: str, delay_s: float) -> None:
        """Remove the marked directory `name` after a delay."""
        if self._closed:  # its renaming was still in the queue
            return
        self._timers[name] = asyncio.get_running_loop().call_later(delay_s, self._is_due, name)

    def now(self, name: str) -> None:
        self._due.append(name)
        if len(self._due) == 1:
            self._step()

    def close(self) -> None:
        """Begin no more steps."""
        self._closed = True
        for timer in (*self._timers.values(), *([self._pause] if self._pause else [])):
            timer.cancel()
        self._timers.clear()
        self._due.clear()

    def _is_due(self, name: str) -> None:
        del self._timers[name]
        self.now(name)

    def _step(self) -> None:
        self._begun_s = asyncio.get_running_loop().time()
        work = partial(self._queue.directory.partitions.free, self._due[0], REMOVAL_STEP_BYTES)
        self._queue.run_in_background(work, done=self._stepped, failed=lambda _: self._stepped(True))

    def _stepped(self, is_over: bool) -> None:
        if not self._due:  # closed meanwhile
            return
        if not is_over:
            loop = asyncio.get_running_loop()
            wanted_ms = PAUSE_PER_STEP * (loop.time() - self._begun_s) * 1000
            pause_ms = min(max(wanted_ms, REMOVAL_PAUSE_MS), REMOVAL_PAUSE_MAX_MS)
            self._pause = loop.call_later(pause_ms / 1000, self._step)
            return
        self._due.popleft()
        if self._due:
            self._step()
