"""One timer of the loop for something that knows its own next deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from quorumlog.clock import Clock


class Alarm:
    """Calls `on_due(now_ms, late_ms)` at or soon after the deadline that `deadline_ms()` names; None: not at all.

    late_ms: how much later than the timer was set for. A deadline that had passed when it was set counts from then.
    """

    def __init__(self, clock: Clock, deadline_ms: Callable[[], int | None], on_due: Callable[[int, int], None]) -> None:
        self._clock = clock
        self._deadline_ms = deadline_ms
        self._on_due = on_due
        self._handle: asyncio.TimerHandle | None = None
        self._set_for_ms = 0

    @property
    def is_set(self) -> bool:
        """A timer runs. Where deadlines only move away, there is no need to `arm` then."""
        return self._handle is not None

    def arm(self) -> None:
        """Look at the deadline again: it may have come nearer. One that moved away is found when the timer fires."""
        deadline_ms = self._deadline_ms()
        if deadline_ms is None or (self._handle is not None and self._set_for_ms <= deadline_ms):
            return
        self.cancel()
        now_ms = self._clock.now_ms()
        self._set_for_ms = max(deadline_ms, now_ms)
        delay_ms = self._set_for_ms - now_ms
        self._handle = asyncio.get_running_loop().call_later(delay_ms / 1000, self._fire)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fire(self) -> None:
        self._handle = None
        now_ms, deadline_ms = self._clock.now_ms(), self._deadline_ms()
        if deadline_ms is not None and deadline_ms <= now_ms:
            self._on_due(now_ms, now_ms - self._set_for_ms)
        self.arm()
