"""Keeps a large image of the metadata out of the garbage collector's full collections.

A full collection visits every object of the process that may be part of a cycle. With 100,000 partitions these are a
million objects of the image, which are in no cycle, and the loop stands still for a tenth of a second. `gc.freeze`
excludes what exists from all later collections. Reference counts still free a frozen object: an older image goes when
nobody holds it. A frozen cycle is never freed, so freezing is tied to the growth of the image and is rare: after each
thousand changes of partitions, and once more when they have ended, for what the broker made of them.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

TICK_MS = 100  # so a tick finds a few thousand changes at most
MIN_CHANGES = 1_000  # of partitions, since the last freeze
SETTLE_TICKS = 50  # without a freeze, until the last one of a series
QUIET_TICKS = 10  # without a change, after which it sleeps


def freeze_survivors() -> None:
    """Exclude all objects from later collections, but the youngest garbage."""
    gc.collect(1)
    gc.freeze()


class Freezer:
    """changes: how many partitions the metadata has changed since the start; asked at each tick."""

    def __init__(self, changes: Callable[[], int], freeze: Callable[[], None] = freeze_survivors) -> None:
        self._changes = changes
        self._freeze = freeze
        self._frozen_at = 0
        self._ticks_left: int | None = None  # until the last freeze of a series; None: there is no series
        self._seen = 0  # changes at the last tick
        self._quiet_ticks = 0
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """The metadata may have changed."""
        if not self._woken.is_set() and self._changes() != self._seen:
            self._woken.set()

    async def run(self) -> None:
        """Runs until cancelled. It ticks only while the metadata changes and until the series has settled."""
        while True:
            await self._woken.wait()
            await asyncio.sleep(TICK_MS / 1_000)
            self.tick()
            if self.may_sleep:
                self._woken.clear()

    @property
    def may_sleep(self) -> bool:
        """Nothing has changed for a while, and there is no series."""
        return self._ticks_left is None and self._quiet_ticks >= QUIET_TICKS

    def tick(self) -> None:
        changes = self._changes()
        self._quiet_ticks = 0 if changes != self._seen else self._quiet_ticks + 1
        self._seen = changes
        if changes - self._frozen_at >= MIN_CHANGES:
            self._frozen_at, self._ticks_left = changes, SETTLE_TICKS
            self._freeze()
        elif self._ticks_left is not None:
            self._ticks_left -= 1
            if self._ticks_left == 0:
                self._ticks_left = None
                self._freeze()
