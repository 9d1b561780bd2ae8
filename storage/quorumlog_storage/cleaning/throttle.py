"""`log.cleaner.io.max.bytes.per.second`: reads and writes of a cleaner together. Pure: the time is passed in."""

from __future__ import annotations

MAX_DELAY_MS = 60_000  # of one pause; the debt that is left delays the next step


class Throttle:
    def __init__(self, bytes_per_s: float) -> None:
        assert bytes_per_s > 0
        self._bytes_per_s = bytes_per_s
        self._due_ms = 0.0  # when what was moved so far is paid for

    def delay_ms(self, size: int, now_ms: float) -> float:
        """`size` bytes were moved just now. How long to pause. now_ms: monotonic."""
        self._due_ms = max(self._due_ms, now_ms) + 1000 * size / self._bytes_per_s
        return min(max(0.0, self._due_ms - now_ms), MAX_DELAY_MS)
