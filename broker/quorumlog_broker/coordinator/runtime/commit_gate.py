"""The gate that every commit of a transaction goes through; a backup holds it while it takes its cut (decision 151).

Invariant: while it is held, no commit begins. Those that are inside when a hold begins end as they would; the holder
asks until none is. Whoever comes meanwhile waits, and is let through when the hold ends: given back, or by its lease.
A holder cannot make it last: all its leases end MAX_HOLD_MS after its first request. Several cannot by turns: between
two holds the gate is open for REST_MS, so that all who wait get through.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.turn import Turn
from quorumlog_broker.coordinator.runtime.coordinators import Waiting

MAX_HOLD_MS = 10_000  # clients wait 30 s for an answer
REST_MS = 200
HOLDER_BYTES = 16

Answer = TypeVar("Answer")


@dataclass(slots=True)
class _Hold:
    holder: bytes
    began_ms: int
    until_ms: int


class CommitGate:
    """clock: monotonic times count."""

    def __init__(self, clock: Clock, turn: Turn) -> None:
        self._clock = clock
        self._waiting = Waiting(turn)
        self._hold: _Hold | None = None
        self._open_since_ms: int | None = None  # None: nobody has held it yet
        self.inside = 0  # commits that are asked for and not answered

    @property
    def is_held(self) -> bool:
        return self._hold is not None and self._clock.now_ms() < self._hold.until_ms

    async def passing(self, commit: Awaitable[Answer]) -> Answer:
        """Await the commit once no hold is in force."""
        try:
            while self._hold is not None and (left_ms := self._hold.until_ms - self._clock.now_ms()) > 0:
                await self._waiting.until_woken(left_ms)
        except BaseException:
            close = getattr(commit, "close", None)
            if close is not None:
                close()
            raise
        self.inside += 1
        try:
            return await commit
        finally:
            self.inside -= 1

    def hold(self, holder: bytes, lease_ms: int) -> bool:
        """Hold the gate, or go on holding it; 0: give it back. Returns whether this holder has held it without a gap
        since its first request.

        Raises ApiError(INVALID_REQUEST), CONCURRENT_TRANSACTIONS where another one holds it.
        """
        if len(holder) != HOLDER_BYTES or not 0 <= lease_ms <= MAX_HOLD_MS:
            text = f"a holder has {HOLDER_BYTES} bytes, and a lease 0 to {MAX_HOLD_MS} ms"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        now_ms, hold = self._clock.now_ms(), self._hold
        if hold is not None and hold.holder == holder:
            was_held = now_ms < hold.until_ms
            if lease_ms == 0:
                self._release(min(now_ms, hold.until_ms))
            elif was_held:
                hold.until_ms = min(now_ms + lease_ms, hold.began_ms + MAX_HOLD_MS)
            return was_held
        if self.is_held:
            text = f"another backup holds the commits; it lets go within {MAX_HOLD_MS} ms, so try again then"
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, text)
        if lease_ms == 0:
            return False
        open_since_ms = self._open_since_ms if hold is None else hold.until_ms
        if open_since_ms is not None and now_ms < open_since_ms + REST_MS:
            text = f"commits that another backup has held go on for {REST_MS} ms; try again then"
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, text)
        self._hold = _Hold(holder, now_ms, now_ms + lease_ms)
        return True

    def _release(self, at_ms: int) -> None:
        self._hold, self._open_since_ms = None, at_ms
        self._waiting.wake()
