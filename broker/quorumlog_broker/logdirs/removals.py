"""Freeing the files of deleted partitions and of retired segments in small steps, so that no sync waits for it long.

A file system frees 1 GiB in 250 ms (measured: ext4 with discard). A sync that came meanwhile waited for 70 ms of them,
whichever thread unlinked the file. In steps of `REMOVAL_STEP_BYTES` with pauses the longest wait was 4 ms. Each log
directory performs one step at a time. An idle directory frees 350 MB a second; the pauses of a busy one are longer.

The steps run in the directory's reader threads: the writer has handed these files over, and its turns do not wait for
them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from quorumlog_broker.logdirs.log_directory import DirectoryQueue
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.rules.failure_rule import Consequence, consequence_of
from quorumlog_storage.segment.retired import Freeing, RetiredSegment
from quorumlog_storage.writer.worker import WorkerClosed, WorkerFull
from quorumlog_storage.writer.writer import Outcome

REMOVAL_STEP_BYTES = 8 * 1024 * 1024
REMOVAL_PAUSE_MS = 20  # at least, after a step that left something
PAUSE_PER_STEP = 4  # the pause is so many times as long as the step took, its wait in the queue included ...
REMOVAL_PAUSE_MAX_MS = 200  # ... but at most this: a directory that is always busy frees some 40 MB a second
MAX_DELAY_S = 365 * 24 * 3600.0  # of one timer; `file.delete.delay.ms` may be larger

Free = Callable[[int], bool]  # at most so many bytes; True once nothing is left


class Removals:
    """Of one log directory. The next start frees what failed or was not finished at a stop."""

    def __init__(self, queue: DirectoryQueue) -> None:
        self._queue = queue
        self._due: deque[Free] = deque()  # the first is under way
        self._timers: set[asyncio.TimerHandle] = set()  # never iterated but to cancel all
        self._pause: asyncio.TimerHandle | None = None
        self._closed = False
        self._begun_s = 0.0  # the step that is under way

    def later(self, name: str, delay_s: float) -> None:
        """Remove the marked directory `name` after a delay."""
        self._free_later(self._free_directory(name), delay_s)

    def now(self, name: str) -> None:
        """Remove the marked directory `name`."""
        self._is_due(self._free_directory(name))

    def take_retired(self) -> None:
        """Free the segments that have left the logs of this directory, each after its delay."""
        partitions = self._queue.directory.partitions
        together: dict[int, list[RetiredSegment]] = {}  # one timer for all that one job has retired
        for one in partitions.retired.take():
            together.setdefault(one.delay_ms, []).append(one)
        for delay_ms, segments in together.items():
            self._free_later(Freeing(partitions.disk, segments).free, delay_ms / 1000)

    def close(self) -> None:
        """Begin no more steps."""
        self._closed = True
        for timer in (*self._timers, *([self._pause] if self._pause else [])):
            timer.cancel()
        self._timers.clear()
        self._due.clear()

    def _free_directory(self, name: str) -> Free:
        return partial(self._queue.directory.partitions.free, name)

    def _free_later(self, free: Free, delay_s: float) -> None:
        if self._closed:  # its renaming was still in the queue
            return

        def due() -> None:
            self._timers.discard(timer)
            self._is_due(free)

        timer = asyncio.get_running_loop().call_later(min(delay_s, MAX_DELAY_S), due)
        self._timers.add(timer)

    def _is_due(self, free: Free) -> None:
        self._due.append(free)
        if len(self._due) == 1:
            self._step()

    def _step(self) -> None:
        loop = asyncio.get_running_loop()
        self._begun_s = loop.time()
        if not self._queue.is_usable:  # the directory failed: the next start frees it
            self._due.clear()
            return
        try:
            self._queue.directory.worker.read(partial(self._due[0], REMOVAL_STEP_BYTES), self._stepped)
        except WorkerFull:
            self._pause = loop.call_later(REMOVAL_PAUSE_MAX_MS / 1000, self._step)
        except WorkerClosed:
            self._due.clear()

    def _stepped(self, outcome: Outcome) -> None:
        if not self._due:  # closed meanwhile
            return
        error = outcome.error
        if isinstance(error, DiskError) and consequence_of(error) is Consequence.DIRECTORY_OFFLINE:
            self._queue.fail(error)
        if error is None and not outcome.value:
            loop = asyncio.get_running_loop()
            wanted_ms = PAUSE_PER_STEP * (loop.time() - self._begun_s) * 1000
            pause_ms = min(max(wanted_ms, REMOVAL_PAUSE_MS), REMOVAL_PAUSE_MAX_MS)
            self._pause = loop.call_later(pause_ms / 1000, self._step)
            return
        self._due.popleft()
        if self._due:
            self._step()
