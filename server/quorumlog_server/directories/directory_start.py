"""Opens a node's directories at its start: all at once, and without those whose disk hangs.

A disk that does not answer would hold up a start for ever, and the node's own loop could not say so. So each directory
is opened by a worker of its own. One that has not been opened within `log.dir.stall.ms` fails, as it does when a call
hangs later on; time counts as there (quorumlog_storage/writer/stall_watch.py). The node starts with the others, or says
why it cannot: the metadata directory must answer.

A hanging call may return later. What it has opened then is closed again, and until it returns the directory cannot be
brought back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from quorumlog_server.config.config import NodeConfig
from quorumlog_server.directories.directories import (
    PROBLEMS,
    DirectoryProblem,
    NodeDirectories,
    OpenedDirectory,
    Shared,
    assemble,
    check_intent,
    note_opened,
    open_one,
    read_shared,
    release,
)
from quorumlog_server.edge.edges import Edges
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.writer.directory_life import DirectoryLife, DirectoryOffline, Generation
from quorumlog_storage.writer.stall_watch import OpenCall, StallWatch
from quorumlog_storage.writer.writer import CallJob, DirectoryWriter, Outcome

TOLD_AFTER_MS = 1_000  # of waiting for a directory

_log = logging.getLogger("quorumlog.node")


class DirectoryStart:
    """Used on the loop, once. lives: of all directories, by path; those that are being opened say so."""

    def __init__(self, config: NodeConfig, edges: Edges) -> None:
        self._config, self._edges = config, edges
        self.lives = {path: DirectoryLife(path) for path in config.directories}
        self._workers = {path: edges.worker(DirectoryWriter(path, self._life(path))) for path in self.lives}
        self._asked: dict[str, _Asked] = {}  # by path; what has not been answered
        self._hanging: set[str] = set()
        self._woken = asyncio.Event()

    @property
    def waiting(self) -> dict[str, int]:
        """For how many ms each directory has not answered, by path."""
        return {path: asked.watch.longest_ms for path, asked in self._asked.items()}

    @property
    def any_stalled(self) -> bool:
        """A thread may still be in a call to a disk."""
        return any(life.generation.is_stalled for life in self.lives.values())

    async def open(self) -> NodeDirectories:
        """Raises DirectoryProblem; then no directory stays locked."""
        found: dict[str, OpenedDirectory] = {}
        try:
            disk, metadata = self._edges.disk, self._config.metadata_log_dir
            await self._ask({metadata: partial(check_intent, disk, self._config)})
            await self._take(found)
            if metadata not in found:
                raise self._offline(metadata)
            shared: Shared = (await self._ask({metadata: partial(read_shared, disk, self._config)}))[metadata]
            opened = assemble(self._config, self.lives, found, lambda: shared)
            opened.hanging = self._hanging
            return opened
        except (*PROBLEMS, DirectoryOffline) as error:
            self._release(found)
            raise DirectoryProblem(str(error)) from error
        finally:
            for worker in self._workers.values():
                worker.close()

    def _release(self, found: dict[str, OpenedDirectory]) -> None:
        """Nothing more is written where a disk has begun to hang."""
        for path, one in found.items():
            if path in self._hanging and one.entry is not None:
                one.entry.close(None)
        release(one for path, one in found.items() if path not in self._hanging)

    async def _take(self, found: dict[str, OpenedDirectory]) -> None:
        """Open all. Raises the first error that stops the start, in the order of the configuration."""
        answers = await self._asked_all(
            {path: partial(_open, self._edges.disk, path, self._life(path)) for path in self.lives}
        )
        found.update({path: outcome.value for path, outcome in answers.items() if outcome.error is None})
        for path, outcome in answers.items():
            if outcome.error is not None:
                raise outcome.error
            error = found[path].error
            if error is not None and path == self._config.metadata_log_dir:
                raise error
            note_opened(self.lives[path], found[path])

    async def _ask(self, work: dict[str, Callable[[], Any]]) -> dict[str, Any]:
        """Of directories that are needed. Raises what the work raises, and DirectoryOffline where a disk hangs."""
        answers = await self._asked_all(work)
        for path in work:
            if path not in answers:
                raise self._offline(path)
            error = answers[path].error
            if error is not None:
                raise error
        return {path: outcome.value for path, outcome in answers.items()}

    async def _asked_all(self, work: dict[str, Callable[[], Any]]) -> dict[str, Outcome]:
        """Returns once each has been answered, or has failed because it hangs: those are left out."""
        answers: dict[str, Outcome] = {}
        for path, fn in work.items():
            asked = self._asked[path] = _Asked(path, self._config.disks.stall_ms)
            self._workers[path].submit(CallJob(fn), None, partial(self._answered, asked, answers))
        tick_s = max(1, self._config.disks.stall_ms // 20) / 1_000
        while self._asked:
            self._woken.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), tick_s)
            for path, asked in list(self._asked.items()):
                self._look(path, asked)
        return {path: answers[path] for path in work if path in answers}

    def _look(self, path: str, asked: _Asked) -> None:
        stalled = asked.watch.look([asked.call], self._edges.clock.now_ms())
        if stalled is not None:
            del self._asked[path]
            self._hanging.add(path)
            life = self.lives[path]
            life.fail(stalled, life.generation)
        elif asked.watch.longest_ms >= TOLD_AFTER_MS and not asked.is_told:
            asked.is_told = True
            limit_ms = self._config.disks.stall_ms
            _log.warning(
                "log directory %s has not answered for %d ms; the start goes on without it after %d ms "
                "(log.dir.stall.ms)", path, asked.watch.longest_ms, limit_ms,
            )  # fmt: skip

    def _answered(self, asked: _Asked, answers: dict[str, Outcome], outcome: Outcome) -> None:
        """Also when it is too late; `_open` has then closed what it had opened."""
        self._hanging.discard(asked.path)
        if self._asked.pop(asked.path, None) is not None:
            answers[asked.path] = outcome
            self._woken.set()

    def _offline(self, path: str) -> DirectoryOffline:
        failure = self.lives[path].failure
        assert failure is not None, f"{path} has failed"
        return failure

    def _life(self, path: str) -> Generation:
        return self.lives[path].generation


class _Asked:
    """A job that has not been answered. The watch counts it as one call."""

    def __init__(self, path: str, stall_ms: int) -> None:
        self.path = path
        self.call = OpenCall("opening", path)
        self.watch = StallWatch(stall_ms)
        self.is_told = False


def _open(disk: Disk, path: str, generation: Generation) -> OpenedDirectory:
    """In the directory's worker. Where that took too long, nobody uses what was opened."""
    found = open_one(disk, path)
    if generation.is_stalled and found.entry is not None:
        found.entry.close(None)
    return found
