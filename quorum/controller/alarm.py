"""One timer that is moved about: whoever has deadlines says after each step when the next one is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from quorumlog.clock import Clock


class Alarm:
    """Calls `on_due(late_ms)` once per setting; late_ms: how much later than asked."""

    def __init__(self, clock: Clock, on_due: Callable[[int], None]) -> None:
        self._clock = clock
        self._on_due = on_due
        self._timer: asyncio.TimerHandle | None = None
        self._at_ms: int | None = None

    def set(self, at_ms: int | None) -> None:
        """at_ms: on the monotonic clock; past: as soon as may be; None: not at all."""
        if at_ms == self._at_ms and (self._timer is not None or at_ms is None):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._at_ms = None, at_ms
        if at_ms is not None:
            now_ms = self._clock.now_ms()
            delay_ms = max(0, at_ms - now_ms)
            self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._fire, now_ms + delay_ms)

    def _fire(self, asked_ms: int) -> None:
        self._timer = self._at_ms = None
        self._on_due(self._clock.now_ms() - asked_ms)
