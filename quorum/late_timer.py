"""A timer that lets messages go first when it comes much too late.

After a stall (a stopped process, a long pause of the machine) the loop finds overdue timers and received messages at
once. A follower that judged its leader by the clock then would start an election after every pause, with the leader's
answer already in its socket (RELIABILITY 6.2.20).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from quorumlog.clock import Clock

STALL_MS = 100  # a timer later than this waits for messages ...
GRACE_MS = 20  # ... so long, once


class LateTimer:
    """One deadline at a time; a new one replaces it."""

    def __init__(self, clock: Clock, on_due: Callable[[], None]) -> None:
        self._clock, self._on_due = clock, on_due
        self._handle: asyncio.TimerHandle | None = None
        self._grace_until_ms: int | None = None

    def set(self, deadline_ms: int | None) -> None:
        """None: no deadline. A grace that has begun is neither shortened nor prolonged."""
        self.cancel()
        if deadline_ms is None:
            return
        now_ms = self._clock.now_ms()
        if deadline_ms > now_ms:
            self._grace_until_ms = None  # a message that came meanwhile has moved the deadline
        due_ms = max(deadline_ms, self._grace_until_ms or deadline_ms)
        delay_ms = max(0, due_ms - now_ms)
        self._handle = asyncio.get_running_loop().call_later(delay_ms / 1000, self._fire, deadline_ms)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fire(self, deadline_ms: int) -> None:
        self._handle = None
        now_ms = self._clock.now_ms()
        if now_ms < deadline_ms:  # the loop's clock and ours round differently
            self.set(deadline_ms)
        elif now_ms - deadline_ms > STALL_MS and self._grace_until_ms is None:
            self._grace_until_ms = now_ms + GRACE_MS
            self.set(deadline_ms)
        else:
            self._grace_until_ms = None
            self._on_due()
