"""`flush.ms`: the longest time from the first append that is not synced to its sync. One timer for each log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.log_config import NEVER

MAX_FLUSH_MS = 3_600_000  # sooner is allowed, and a timer holds its log, which may be deleted meanwhile
FLUSH_RETRY_MS = 100  # where the queue was full; not `flush.ms`, which may be 0


class FlushTimers:
    def __init__(self, sync: Callable[[Log], bool]) -> None:
        """sync: queues the sync of a log; False where the queue is full."""
        self._sync = sync
        self._timers: dict[Log, asyncio.TimerHandle] = {}

    def appended(self, log: Log) -> None:
        if log.config.flush_ms < NEVER and not log.config.durable:
            self._later(log, min(log.config.flush_ms, MAX_FLUSH_MS))

    def cancel(self) -> None:
        """Closing a log syncs it."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _later(self, log: Log, delay_ms: int) -> None:
        if log not in self._timers:
            self._timers[log] = asyncio.get_running_loop().call_later(delay_ms / 1000, self._now, log)

    def _now(self, log: Log) -> None:
        del self._timers[log]
        if not self._sync(log):
            self._later(log, FLUSH_RETRY_MS)
