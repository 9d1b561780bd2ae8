"""Takes a log directory offline whose disk hangs: the shell around `quorumlog_storage/writer/stall_watch.py`.

It runs on the node's loop, beside everything else there. Nothing on the loop waits for a disk, so heartbeats, votes and
this watch go on while the threads of a directory hang.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from quorumlog.clock import Clock
from quorumlog_server.directories.replica_directories import DirectoryWorkers
from quorumlog_storage.writer.directory_life import DirectoryLife
from quorumlog_storage.writer.stall_watch import StallWatch
from quorumlog_storage.writer.worker import Worker

SLOW_MS = 500  # a call that is open for so long makes producers wait noticeably; it is an event
TOLD_EVERY_MS = 10_000  # of one directory


@dataclass(frozen=True, slots=True)
class _Watched:
    life: DirectoryLife
    watch: StallWatch


class DiskWatch:
    """Watches every directory of one start of a node."""

    def __init__(
        self,
        lives: Iterable[DirectoryLife],
        workers: DirectoryWorkers,
        stall_ms: int,
        clock: Clock,
        tell: Callable[[str, str, str], None] = lambda _kind, _subject, _text: None,
    ) -> None:
        """tell: an event, by its kind, subject and text."""
        self._tell = tell
        self._told_ms: dict[str, int] = {}  # when a directory was called slow last, by path
        self._watched = [_Watched(life, StallWatch(stall_ms)) for life in lives]
        self._workers, self._clock = workers, clock
        self._busy = asyncio.Event()  # a worker has got a job since the last time when all were idle
        for worker in workers.all:
            worker.on_busy(self._busy.set)
        workers.on_new(self._watch_too)

    async def run(self) -> None:
        """Runs until cancelled. It looks only while a worker is busy: an idle one has no call that could hang."""
        tick_ms = min(one.watch.tick_ms for one in self._watched)
        while True:
            if not any(worker.is_busy for worker in self._workers.all):
                await self._busy.wait()
            self._busy.clear()
            await asyncio.sleep(tick_ms / 1_000)
            for one in self._watched:
                self._look(one)

    def _watch_too(self, worker: Worker) -> None:
        worker.on_busy(self._busy.set)
        self._busy.set()

    def _look(self, one: _Watched) -> None:
        if one.life.is_offline:
            return
        calls = [call for worker in self._workers.of_directory(one.life.path) for call in worker.open_calls()]
        now_ms = self._clock.now_ms()
        stalled = one.watch.look(calls, now_ms)
        self._tell_if_slow(one, now_ms)
        if stalled is not None:
            one.life.fail(stalled, one.life.generation)

    def _tell_if_slow(self, one: _Watched, now_ms: int) -> None:
        path, longest_ms = one.life.path, one.watch.longest_ms
        if longest_ms < SLOW_MS or now_ms - self._told_ms.get(path, -TOLD_EVERY_MS) < TOLD_EVERY_MS:
            return
        self._told_ms[path] = now_ms
        self._tell("disk.slow", f"directory/{path}", f"a write or sync has not returned for {longest_ms} ms yet")
