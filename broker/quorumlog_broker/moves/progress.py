"""How far a move is. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from quorumlog.ids import Offset

RATE_WINDOW_MS = 10_000  # over which the rate of a copy is measured


class Phase(Enum):
    QUEUED = "queued"  # others copy
    COPYING = "copying"
    ASSIGNING = "assigning"  # it has caught up; the controller is told
    EXCHANGING = "exchanging"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveProgress:
    """source, target: paths of log directories. size_bytes: of the copy. lag: offsets that it lacks.

    bytes_left, eta_s: None where not known. problem: why it waits; "" if it does not.
    """

    topic: str
    index: int
    source: str
    target: str
    phase: Phase
    size_bytes: int
    lag: Offset
    bytes_left: int | None
    eta_s: float | None
    problem: str = ""


class Rate:
    """Bytes a second, of the last `RATE_WINDOW_MS` or so."""

    def __init__(self, now_ms: int) -> None:
        self._since_ms, self._bytes = now_ms, 0
        self._before = 0.0

    def moved(self, size: int, now_ms: int) -> None:
        if now_ms - self._since_ms >= RATE_WINDOW_MS:
            self._before = self.per_s(now_ms)
            self._since_ms, self._bytes = now_ms, 0
        self._bytes += size

    def per_s(self, now_ms: int) -> float:
        """0 where nothing was measured."""
        passed_ms = now_ms - self._since_ms
        if self._before and passed_ms < RATE_WINDOW_MS / 2:
            return self._before
        return 1000 * self._bytes / max(1, passed_ms)


def eta_s(bytes_left: int, rate_per_s: float) -> float | None:
    """None where nothing moves."""
    if not bytes_left:
        return 0.0
    return bytes_left / rate_per_s if rate_per_s > 0 else None
