"""When a parked fetch is answered for a new high watermark alone.

Where changes follow each other closely, the records of the next one are about to come. They carry the high watermark,
and each answer without records costs every follower a message more. So a fetch then waits for them, and no longer than
`high_watermark_hold_ms` after its arrival: a follower's image is late by so much at most. A change that stands alone,
or is one of the first few, is told at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.ids import Offset

RUN = 8  # commits, each at most `GAP_MS` after the one before it: from then on they follow each other closely
GAP_MS = 20


@dataclass(slots=True)
class HighWatermarkPacing:
    """How closely the commits of one leader follow each other."""

    newest: Offset = -1  # the high watermark
    raised_ms: int = 0  # when it rose last
    run: int = 0  # commits without a gap so far

    def note(self, high_watermark: Offset, now_ms: int) -> None:
        if high_watermark > self.newest:
            self.run = self.run + 1 if now_ms - self.raised_ms <= GAP_MS else 1
            self.newest, self.raised_ms = high_watermark, now_ms

    @property
    def holds(self) -> bool:
        """Whether the newest high watermark waits for the next records."""
        return self.run >= RUN
