"""How a backup keeps compaction away from its cut while it copies: a setting of brokers that ends by its time.

Compaction takes a key's value where it knows a later one. If it learned of one behind the cut, a backup that copies the
partition later would have neither (decision 152). So no round may begin from the cut on until all is copied. One that
has begun before takes nothing that the backup needs: it has looked no further than the log's end of then.

A client that dies renews nothing, and compaction goes on by itself. Nobody ends a pause early, because another backup
may count on it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

PAUSE_MS = 600_000
RENEW_MS = 60_000
LEAST_PAUSE_MS = PAUSE_MS // 2  # that a broker must have left at the cut; less: its clock is wrong by minutes


class PauseEnded(Exception):
    """Compaction may have taken values that are not copied yet. The message says what to do."""


@dataclass(slots=True)
class CompactionPause:
    """until_ms: as far as acknowledgements tell, in ms since 1970; 0: it was never paused. Times are of the wall."""

    until_ms: int = 0

    def due(self, now_ms: int) -> int | None:
        """Until when to pause now; None: there is time. Raises PauseEnded."""
        if self.until_ms and now_ms >= self.until_ms:
            raise PauseEnded(
                f"compaction was paused until {self.until_ms} ms and not for longer in time: values of before the cut "
                "may be gone. Begin another backup, in an empty folder"
            )
        return now_ms + PAUSE_MS if self.until_ms < now_ms + PAUSE_MS - RENEW_MS else None

    async def keep(self, now_ms: int, pause: Callable[[int], Awaitable[None]]) -> bool:
        """`pause` until then, if it is due; whether it was. Raises PauseEnded, and what `pause` raises."""
        until_ms = self.due(now_ms)
        if until_ms is not None:
            await pause(until_ms)
            self.renewed(until_ms)
        return until_ms is not None

    def renewed(self, until_ms: int) -> None:
        """It was acknowledged."""
        self.until_ms = max(self.until_ms, until_ms)
