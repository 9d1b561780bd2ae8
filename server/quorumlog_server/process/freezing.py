"""Keeps a large image of the metadata out of the garbage collector's full collections.

A full collection visits every object of the process that may be part of a cycle. With 100,000 partitions these are a
million objects of the image, which are in no cycle, and the loop stands still for a tenth of a second. `gc.freeze`
excludes what exists from all later collections. Reference counts still free a frozen object: an older image goes when
nobody holds it. A frozen cycle is never freed, so freezing is tied to the growth of the image and is rare: after each
thousand changes of partitions, and once more when they have ended, for what the broker made of them. A broker that
starts makes far more objects for its replicas than the image has: some two hundred for each log that it opens. So it
freezes after some hundred of them, and not at all because of logs that it opens later.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

TICK_MS = 25  # so a tick finds a thousand changes at most
MIN_CHANGES = 1_000  # of partitions, since the last freeze
MIN_MADE = 100  # replicas that were made, and logs that were opened, since the last freeze
SETTLE_TICKS = 200  # without a freeze, until the last one of a series
QUIET_TICKS = 40  # without a change, after which it sleeps


def freeze_survivors() -> None:
    """Exclude all objects from later collections, but the youngest garbage."""
    gc.collect(1)
    gc.freeze()


class Freezer:
    """changes: how many partitions the metadata has changed since the start. made: how many replicas and logs a start
    has made of them so far; it stays as it is when the start is over. Both are asked at each tick."""

    def __init__(
        self,
        changes: Callable[[], int],
        freeze: Callable[[], None] = freeze_survivors,
        made: Callable[[], int] = lambda: 0,
    ) -> None:
        self._changes, self._made = changes, made
        self._freeze = freeze
        self._frozen_at = self._frozen_made = 0
        self._ticks_left: int | None = None  # until the last freeze of a series; None: there is no series
        self._seen = 0  # changes at the last tick
        self._quiet_ticks = 0
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """The metadata may have changed."""
        if not self._woken.is_set() and self._changes() + self._made() != self._seen:
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
    def has_frozen(self) -> bool:
        """What this process holds is large."""
        return self._frozen_at > 0 or self._frozen_made > 0

    @property
    def may_sleep(self) -> bool:
        """Nothing has changed for a while, and there is no series."""
        return self._ticks_left is None and self._quiet_ticks >= QUIET_TICKS

    def tick(self) -> None:
        changes, made = self._changes(), self._made()
        self._quiet_ticks = 0 if changes + made != self._seen else self._quiet_ticks + 1
        self._seen = changes + made
        if changes - self._frozen_at >= MIN_CHANGES or made - self._frozen_made >= MIN_MADE:
            self._frozen_at, self._frozen_made, self._ticks_left = changes, made, SETTLE_TICKS
            self._freeze()
        elif self._ticks_left is not None:
            self._ticks_left -= 1
            if self._ticks_left == 0:
                self._ticks_left = None
                self._freeze()
