"""One node's clocks on virtual time: `quorumlog.clock.Clock`."""

from __future__ import annotations

from jepsen.sim.time.scheduler import NS_PER_MS, Scheduler

WALL_START_MS = 1_700_000_000_000  # wall-clock time at the start of every simulation


class SimClock:
    """wall_skew_ms: how far this node's wall clock is off. It may change at any time, as on real machines."""

    def __init__(self, scheduler: Scheduler, *, wall_skew_ms: int = 0) -> None:
        self._scheduler = scheduler
        self.wall_skew_ms = wall_skew_ms

    def now_ms(self) -> int:
        return self._scheduler.now_ns // NS_PER_MS

    def wall_ms(self) -> int:
        return WALL_START_MS + self.now_ms() + self.wall_skew_ms
