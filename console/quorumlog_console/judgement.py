"""What `quorumlog check` finds, for pages: read and judged in a thread beside the loop, while somebody looks.

A reading takes seconds, because groups that are behind are looked at twice; so a page shows the newest judgement and
its age. Nobody's look is waited for: without requests for `ASKED_MS` no further reading begins.
"""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any

from quorumlog.client.asynchronous import AsyncAdmin
from quorumlog.explaining.facts import Facts
from quorumlog.explaining.finding import Finding
from quorumlog.explaining.judging import judge
from quorumlog.explaining.reading import read_facts
from quorumlog.explaining.thresholds import Thresholds
from quorumlog.nursery import Nursery

OVER_S = 10.0  # between two looks at what is behind, as of `quorumlog check`
PAUSE_MS = 2_000  # between two readings
ASKED_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """findings: the worst first. began_ms: of the reading, ms since 1970; what is newer is not in it."""

    facts: Facts
    findings: tuple[Finding, ...]
    began_ms: int


class _Ended(Exception):
    """The console does not want the reading any more."""


class _Calls:
    """The calls of an AsyncAdmin for a thread that is not its loop's: each waits there for its answer."""

    def __init__(self, admin: AsyncAdmin, loop: asyncio.AbstractEventLoop) -> None:
        self._admin, self._loop = admin, loop
        self._lock, self._open, self.ended = threading.Lock(), set[Future[Any]](), threading.Event()

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._admin, name)

        def wait(*given: Any, **more: Any) -> Any:
            with self._lock:  # so that `end` sees each call, or the call sees it
                if self.ended.is_set():
                    raise _Ended
                future = asyncio.run_coroutine_threadsafe(call(*given, **more), self._loop)
                self._open.add(future)
            try:
                return future.result()
            finally:
                self._open.discard(future)

        return wait

    def sleep(self, seconds: float) -> None:
        if self.ended.wait(seconds):
            raise _Ended

    def end(self) -> None:
        """Wake the thread, wherever it waits."""
        with self._lock:
            self.ended.set()
            for future in list(self._open):
                future.cancel()


class Judge:
    """Of one principal: it finds what that one may see. Make and use it on the loop of `admin`."""

    def __init__(self, admin: AsyncAdmin, nursery: Nursery) -> None:
        self._admin, self._nursery = admin, nursery
        self.newest: Judgement | None = None
        self._judged = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._calls: _Calls | None = None
        self._asked_ms = 0

    async def judgement(self, wait_ms: int) -> Judgement | None:
        """The newest one; one that is older than anybody's interest is not shown. None: the first is not there yet."""
        now_ms = _wall_ms()
        if now_ms - self._asked_ms > ASKED_MS:
            self.newest = None
            self._judged.clear()
        self._asked_ms = now_ms
        if self._task is None or self._task.done():
            self._task = self._nursery.start(self._work(), "judgement")
        if self.newest is None:
            try:
                async with asyncio.timeout(wait_ms / 1000):
                    await self._judged.wait()
            except TimeoutError:
                pass
        return self.newest

    def close(self) -> None:
        """Before the nursery and the admin: the thread waits for the latter's answers."""
        if self._calls is not None:
            self._calls.end()

    async def _work(self) -> None:
        self._calls = calls = _Calls(self._admin, asyncio.get_running_loop())
        while not calls.ended.is_set() and _wall_ms() - self._asked_ms <= ASKED_MS:
            try:
                self.newest = await asyncio.to_thread(_judged, calls)
            except (_Ended, CancelledError):
                return
            self._judged.set()
            await asyncio.sleep(PAUSE_MS / 1000)


def _judged(calls: _Calls) -> Judgement:
    began_ms = _wall_ms()
    facts = read_facts(calls, wall_ms=_wall_ms, sleep_s=calls.sleep, over_s=OVER_S)  # type: ignore[arg-type]  # its calls
    return Judgement(facts=facts, findings=tuple(judge(facts, Thresholds())), began_ms=began_ms)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
