"""The scrapes of a node: each is built in a thread, kept for a second, and shared by those who ask meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

from quorumlog_server.metrics.bounded import BoundedLabels
from quorumlog_server.metrics.catalogue import AREAS, CATALOGUE
from quorumlog_server.metrics.reading import AtLoop, Pace, Reading, Source, run_here
from quorumlog_server.metrics.text import CONTENT_TYPE, page_of
from quorumlog_server.process.http_page import Page
from quorumlog_server.process.node import Node
from quorumlog_server.process.watchdog import LoopWatchdog

KEPT_S = 1.0
LOOP_TIMEOUT_S = 10.0


class Scrapes:
    """Used on the loop of the node."""

    def __init__(
        self,
        node: Node,
        watchdog: LoopWatchdog,
        now_s: Callable[[], float] = monotonic,
        new_pace: Callable[[], Pace] = Pace,
    ) -> None:
        self._node, self._watchdog, self._now_s, self._new_pace = node, watchdog, now_s, new_pace
        self._bounded = BoundedLabels()
        self._building: asyncio.Future[bytes] | None = None
        self._began_s = 0.0
        self._begun = 0  # pages

    async def page(self) -> Page:
        """A page that was begun at most KEPT_S ago, or is still being built."""
        if self._building is None or (self._building.done() and self._now_s() - self._began_s >= KEPT_S):
            self._building = self._begin()
        return await self._built(self._building)

    async def page_now(self) -> Page:
        """A page that is begun after this call: what was counted before it is in it.

        Pages are not built side by side: who asks while one is being built waits for its end, and shares the next one.
        """
        begun = self._begun
        while self._building is not None and not self._building.done():
            with suppress(Exception):  # whoever asked for it is told
                await asyncio.shield(self._building)
        if self._begun == begun or self._building is None:
            self._building = self._begin()
        return await self._built(self._building)

    def _begin(self) -> asyncio.Future[bytes]:
        self._began_s, self._begun = self._now_s(), self._begun + 1
        at_loop = _runs_on(asyncio.get_running_loop())
        return asyncio.ensure_future(asyncio.to_thread(self.build, self._source(), at_loop))

    async def _built(self, building: asyncio.Future[bytes]) -> Page:
        try:
            return Page(200, await asyncio.shield(building), CONTENT_TYPE)
        except Exception:
            self._building = None  # the next one tries again
            raise

    def build(self, source: Source, at_loop: AtLoop = run_here) -> bytes:
        """Of one scrape at a time; in any thread."""
        reading = Reading(at_loop=at_loop, pace=self._new_pace())
        read(source, reading)
        return page_of(CATALOGUE, self._bounded.bound(reading), reading.pace)

    def _source(self) -> Source:
        clock = self._node.edges.clock
        return Source(self._node, self._watchdog, clock.wall_ms(), clock.now_ms())


def read(source: Source, out: Reading) -> None:
    for area in AREAS:
        area.collect(source, out)


def _runs_on(loop: asyncio.AbstractEventLoop) -> AtLoop:
    """For a thread that waits for what it lets the loop do."""

    def run(call: Callable[[], Any]) -> Any:
        async def turn() -> Any:
            return call()

        return asyncio.run_coroutine_threadsafe(turn(), loop).result(LOOP_TIMEOUT_S)

    return run
