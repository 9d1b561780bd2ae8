"""A timer that gives received messages time to be handled when it fires much too late.

After a stall (a stopped process, a pause of the machine) the event loop finds overdue timers and received messages at
the same time. If the timer went first, a follower would start an election after every pause, although the leader's
answer is already in its socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from quorumlog.clock import Clock

STALL_MS = 100  # a timer that is later than this waits once more ...
GRACE_MS = 20  # ... this long


class LateTimer:
    """Has one deadline at a time; a new one replaces it."""

    def __init__(self, clock: Clock, on_due: Callable[[], None]) -> None:
        self._clock, self._on_due = clock, on_due
        self._handle: asyncio.TimerHandle | None = None
        self._grace_until_ms: int | None = None

    def set(self, deadline_ms: int | None) -> None:
        """None: no deadline. A grace period that has begun keeps its end."""
        self.cancel()
        if deadline_ms is None:
            return
        now_ms = self._clock.now_ms()
        if deadline_ms > now_ms:
            self._grace_until_ms = None  # a message has moved the deadline: the grace period has served
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
