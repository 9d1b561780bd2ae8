"""The clock, passed in. Only the edges read the machine's clock.

Elections, leases, sessions and timeouts use `now_ms` only; `wall_ms` is for record timestamps and retention.
A shell that waits uses its event loop. In the simulation the loop's time and `now_ms` are the same virtual time.
"""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Monotonic milliseconds since an arbitrary start; comparable within one process only."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970 by the machine's wall clock, which may jump."""
