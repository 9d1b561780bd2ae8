"""NoOp records: written when nothing else is, so that followers see the high watermark move and lag can be measured."""

from __future__ import annotations

from dataclasses import dataclass

from quorum.controller.draft import Draft
from quorumlog.messages.metadata_records import NoOpRecord


@dataclass(slots=True)
class Idle:
    """interval_ms: metadata.max.idle.interval.ms; 0: no such records."""

    interval_ms: int
    _wrote_at_ms: int = 0

    def on_append(self, now_ms: int) -> None:
        self._wrote_at_ms = now_ms

    def deadline_ms(self) -> int | None:
        return self._wrote_at_ms + self.interval_ms if self.interval_ms else None


def write_no_op(draft: Draft) -> None:
    draft.add(NoOpRecord())
