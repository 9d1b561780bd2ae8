"""NoOp records: written when nothing else is, so that followers see the high watermark move and lag can be measured.

A NoOp also shows that the leader's disk and a majority still take writes: a disk that hangs is found by a call that
does not return. So they rest only while every broker says, in its heartbeats, that nothing is written to it. Even then
they go on.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.idle_backoff import IdleBackoff
from quorumlog.messages.metadata_records import NoOpRecord
from quorumlog_quorum.controller.engine.draft import Draft


@dataclass(slots=True)
class Idle:
    """rest: from metadata.max.idle.interval.ms; intervals of 0: no such records."""

    rest: IdleBackoff
    _wrote_at_ms: int = 0

    def on_append(self, now_ms: int) -> None:
        """Of anything but a NoOp."""
        self._wrote_at_ms = now_ms
        self.rest.news()

    def on_no_op(self, now_ms: int) -> None:
        """One was written, or need not be, because records are under way that will move the high watermark."""
        self._wrote_at_ms = now_ms
        self.rest.quiet()

    def end_rest(self) -> bool:
        """A broker does not rest. True if the deadline is nearer now."""
        rested = self.rest.interval_ms > self.rest.usual_ms
        self.rest.news()
        return rested

    def deadline_ms(self) -> int | None:
        return self._wrote_at_ms + self.rest.interval_ms if self.rest.usual_ms else None


def write_no_op(draft: Draft) -> None:
    draft.add(NoOpRecord())
