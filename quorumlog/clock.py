"""Time, passed in: nothing but an edge asks the machine for it.

Elections, leases, sessions and time-outs use `now_ms` only; `wall_ms` is for record timestamps and retention
(DESIGN 5). A shell that waits uses its event loop, whose time is virtual in the simulation, and so is `now_ms`.
"""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Monotonic milliseconds since some start; comparable within one process only."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970 by the machine's wall clock, which may jump."""
