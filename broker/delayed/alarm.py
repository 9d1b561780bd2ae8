"""One timer of the event loop for an object that knows its own next deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from quorumlog.clock import Clock


class Alarm:
    """Calls `ring(now_ms)` at or soon after the deadline that `deadline_ms()` names, as often as there is one."""

    def __init__(self, clock: Clock, deadline_ms: Callable[[], int | None], ring: Callable[[int], None]) -> None:
        self._clock = clock
        self._deadline_ms = deadline_ms
        self._ring = ring
        self._handle: asyncio.TimerHandle | None = None
        self._set_for_ms = 0

    def arm(self) -> None:
        """Call this whenever the deadline may have come nearer. If it moved away, the timer finds out when it fires."""
        deadline_ms = self._deadline_ms()
        if deadline_ms is None or (self._handle is not None and self._set_for_ms <= deadline_ms):
            return
        self.cancel()
        self._set_for_ms = deadline_ms
        delay_ms = max(0, deadline_ms - self._clock.now_ms())
        self._handle = asyncio.get_running_loop().call_later(delay_ms / 1000, self._rung)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _rung(self) -> None:
        self._handle = None
        self._ring(self._clock.now_ms())
        self.arm()
