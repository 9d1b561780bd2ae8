"""Detects an event loop that is blocked, because heartbeats and votes depend on it.

A stall above half of the election timeout can cost a leader its leadership, so it is logged with its length. The loop's
selector measures it: from the moment when the loop stops waiting until it waits again, or, for a process that was
stopped while it waited, from the moment when the wait should have ended. So a stall is measured to its whole length,
and nothing has to be awake for that while the loop is at rest.

If the loop hangs, a thread of the interpreter writes the stacks of all threads to stderr, once per hang.
"""

from __future__ import annotations

import asyncio
import faulthandler
import selectors
import sys
from collections.abc import Callable
from time import monotonic

STALL_MS = 250
HANG_S = 20.0  # a hang of this length is reported; one of HANG_S - ARM_EVERY_S or less is not
ARM_EVERY_S = 10.0  # arming starts a thread and ends the previous one: 1.5 ms of the loop's time

Ready = list[tuple[selectors.SelectorKey, int]]


class LoopWatchdog:
    """max_stall_ms: the longest stall since the start."""

    def __init__(self, on_stall: Callable[[int], None], now_s: Callable[[], float] = monotonic) -> None:
        """on_stall: called on the loop with the length in ms of each stall of STALL_MS or more."""
        self.on_stall = on_stall
        self.max_stall_ms = 0
        self.selector = WatchedSelector(self._note, now_s)

    async def run(self) -> None:
        """Reports hangs, until cancelled."""
        try:
            while True:
                faulthandler.dump_traceback_later(HANG_S, file=sys.stderr)
                await asyncio.sleep(ARM_EVERY_S)
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _note(self, stall_ms: int) -> None:
        self.max_stall_ms = max(self.max_stall_ms, stall_ms)
        if stall_ms >= STALL_MS:
            self.on_stall(stall_ms)


class WatchedSelector(selectors.DefaultSelector):
    """The selector of one event loop; the loop calls `select` once in each turn."""

    def __init__(self, on_stall: Callable[[int], None], now_s: Callable[[], float]) -> None:
        """on_stall: called with each length in ms that is above all before it, or at least STALL_MS."""
        super().__init__()
        self._on_stall, self._now_s = on_stall, now_s
        self._woke_s: float | None = None  # when the last wait should have ended, or ended if that was earlier
        self._longest_s = 0.0

    def select(self, timeout: float | None = None) -> Ready:
        began_s = self._now_s()
        if self._woke_s is not None and began_s - self._woke_s > self._longest_s:
            self._tell(began_s - self._woke_s)
        ready = super().select(timeout)
        woke_s = self._now_s()
        self._woke_s = woke_s if timeout is None else min(woke_s, began_s + max(0.0, timeout))
        return ready

    def _tell(self, stall_s: float) -> None:
        """A stall of STALL_MS or more is told each time, a shorter one only if it is the longest."""
        self._longest_s = min(stall_s, (STALL_MS - 1) / 1_000)
        self._on_stall(int(stall_s * 1_000))
