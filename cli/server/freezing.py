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

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            await asyncio.sleep(TICK_MS / 1_000)
            self.tick()

    def tick(self) -> None:
        changes = self._changes()
        if changes - self._frozen_at >= MIN_CHANGES:
            self._frozen_at, self._ticks_left = changes, SETTLE_TICKS
            self._freeze()
        elif self._ticks_left is not None:
            self._ticks_left -= 1
            if self._ticks_left == 0:
                self._ticks_left = None
                self._freeze()
