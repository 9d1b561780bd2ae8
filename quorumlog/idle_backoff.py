"""How often something is repeated while it finds nothing new: ever less, up to a limit, and as usual after any news.

An idle cluster rests: what only says "nothing has happened" is said more slowly. The limit of each use is
far below the time-outs that depend on it; where it is used says which.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class IdleBackoff:
    """usual_ms: while there is news. limit_ms: after enough rounds without; at least usual_ms. It has no clock."""

    usual_ms: int
    limit_ms: int
    _quiet: int = 0  # rounds without news, since the last one with news; counted until the limit is reached

    def __post_init__(self) -> None:
        assert 0 <= self.usual_ms <= self.limit_ms, f"limit {self.limit_ms} ms, usual {self.usual_ms} ms"

    @property
    def interval_ms(self) -> int:
        """The usual interval for the first quiet round, then twice as long after each other one."""
        return min(self.limit_ms, self.usual_ms << max(0, self._quiet - 1))

    def quiet(self) -> None:
        """A round has brought nothing new."""
        if self.interval_ms < self.limit_ms:
            self._quiet += 1

    def news(self) -> None:
        """Something has happened."""
        self._quiet = 0
