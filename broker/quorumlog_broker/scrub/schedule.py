"""When a pass over the logs of a directory begins, and how long it pauses between two slices. Pure.

A pass begins `log.index.check.interval.ms` after the last one began, or when that has ended. The first one begins soon
after the start: what was damaged while the node was down need not wait for a day.
"""

from __future__ import annotations

from quorumlog_storage.cleaning.throttle import Throttle
from quorumlog_storage.segment.log_config import NEVER

INITIAL_DELAY_MS = 60_000
INTERVAL_MS_MIN = 1_000  # between the beginnings of two passes, whatever is configured
BATCH_BYTES_MIN = 1_024  # as which a batch counts at least: small ones cost processor time, not reading


class ScrubSchedule:
    """Of one log directory. interval_ms: negative: never. now_ms: monotonic."""

    def __init__(self, interval_ms: int, bytes_per_s: int, now_ms: int) -> None:
        self._interval_ms = max(interval_ms, INTERVAL_MS_MIN) if interval_ms >= 0 else NEVER
        self._throttle = Throttle(bytes_per_s)
        self.due_ms = now_ms + (min(INITIAL_DELAY_MS, self._interval_ms) if interval_ms >= 0 else NEVER)
        self._began_ms = now_ms

    def begin(self, now_ms: int) -> None:
        """A pass begins."""
        self._began_ms = now_ms

    def pause_ms(self, batches: int, size_bytes: int, now_ms: int) -> float:
        """After a slice of so many batches."""
        return self._throttle.delay_ms(max(size_bytes, batches * BATCH_BYTES_MIN), now_ms)

    def ended(self, now_ms: int) -> None:
        """The pass is over."""
        self.due_ms = max(now_ms, self._began_ms + self._interval_ms)
