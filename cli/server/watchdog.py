"""Detects an event loop that is blocked, because heartbeats and votes depend on it.

A stall above half of the election timeout can cost a leader its leadership, so it is logged with its length. If the
loop hangs, a thread of the interpreter writes the stacks of all threads to stderr, once per hang.
"""

from __future__ import annotations

import asyncio
import faulthandler
import itertools
import sys
from collections.abc import Callable

TICK_MS = 100
STALL_MS = 250
HANG_S = 20.0
ARM_TICKS = 10  # arming starts a thread and ends the previous one: 1.5 ms of the loop's time


class LoopWatchdog:
    """max_stall_ms: the longest stall since the start."""

    def __init__(self, on_stall: Callable[[int], None]) -> None:
        """on_stall: called with the length in ms of each stall above STALL_MS."""
        self._on_stall = on_stall
        self.max_stall_ms = 0

    async def run(self) -> None:
        """Runs until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            for tick in itertools.count():
                if tick % ARM_TICKS == 0:
                    faulthandler.dump_traceback_later(HANG_S, file=sys.stderr)
                started = loop.time()
                await asyncio.sleep(TICK_MS / 1_000)
                self._note(int((loop.time() - started) * 1_000) - TICK_MS)
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _note(self, late_ms: int) -> None:
        self.max_stall_ms = max(self.max_stall_ms, late_ms)
        if late_ms >= STALL_MS:
            self._on_stall(late_ms)
