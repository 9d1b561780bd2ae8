"""Logins that fail in bulk as one event: anybody may fail, so a failed login alone must not fill the ring."""

from __future__ import annotations

from quorumlog.events.ring import EventRing

WINDOW_MS = 10_000
BULK = 10  # failed logins in a window


class FailedLogins:
    """Of one node. Call `failed` for each; the first BULK in a window are an event, then each window that ends."""

    def __init__(self, ring: EventRing) -> None:
        self._ring = ring
        self._began_ms = -WINDOW_MS
        self._counts: dict[str, int] = {}  # by listener, of which a node has few

    def failed(self, listener: str, now_ms: int) -> None:
        """now_ms: monotonic."""
        if now_ms - self._began_ms >= WINDOW_MS:
            self._counts.clear()
            self._began_ms = now_ms
        count = self._counts[listener] = self._counts.get(listener, 0) + 1
        if count == BULK:
            text = f"{count} logins have failed within {(now_ms - self._began_ms) / 1000:.1f} s"
            self._ring.note("login.failed", f"listener/{listener}", text)
