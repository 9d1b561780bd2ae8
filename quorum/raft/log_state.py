"""What the core knows of its log: ends and epochs, never bytes. It is a copy that only events move.

    start <= synced_end <= written_end <= accepted_end      (in a log that was just opened, all three ends are equal)

- accepted: offsets are assigned and the write is queued. Votes compare this end: queued writes are done in order.
- written: may be sent to followers and observers.
- synced: counts for the high watermark. A voter that fetches from this offset acknowledges all below it.
"""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.ids import Epoch, Offset
from storage.epochs import EpochStart, LeaderEpochCache


class EpochSpan(NamedTuple):
    """One batch, or adjacent batches of one epoch: offsets [first_offset, end_offset)."""

    epoch: Epoch
    first_offset: Offset
    end_offset: Offset


class LogState:
    def __init__(self, *, start: Offset, end: Offset, epochs: tuple[EpochStart, ...]) -> None:
        """The state of a log that was just opened: it is recovered, and all of it is synced."""
        assert 0 <= start <= end, (start, end)
        self.start = start
        self.accepted_end = self.written_end = self.synced_end = end
        self.epochs = LeaderEpochCache(epochs)
        self.truncating = False

    @property
    def last_epoch(self) -> Epoch:
        """Of the last accepted record; -1 in an empty log."""
        return self.epochs.last_epoch

    @property
    def settled(self) -> bool:
        """Whether the disk has done all that was asked of it."""
        return self.synced_end == self.accepted_end and not self.truncating

    @property
    def position(self) -> tuple[Epoch, Offset]:
        """What votes compare: the larger position is more up to date."""
        return self.last_epoch, self.accepted_end

    def accept(self, span: EpochSpan) -> None:
        assert not self.truncating
        assert span.first_offset == self.accepted_end < span.end_offset, f"{span} does not continue {self}"
        assert span.epoch >= self.last_epoch, f"{span} is older than {self}"
        self.epochs.assign(span.epoch, span.first_offset)
        self.accepted_end = span.end_offset

    def on_written(self, end_offset: Offset) -> None:
        if self.truncating:
            return  # the report is of records that are being truncated
        assert end_offset <= self.accepted_end, f"{end_offset} was never accepted: {self}"
        self.written_end = max(self.written_end, end_offset)

    def on_synced(self, end_offset: Offset) -> None:
        if self.truncating:
            return
        assert end_offset <= self.written_end, f"{end_offset} is synced and was not written: {self}"
        self.synced_end = max(self.synced_end, end_offset)

    def truncate(self, end_offset: Offset) -> None:
        assert self.settled and self.start <= end_offset < self.accepted_end, f"to {end_offset}: {self}"
        self.epochs.truncate_from_end(end_offset)
        self.accepted_end = self.written_end = self.synced_end = end_offset
        self.truncating = True

    def on_truncated(self, end_offset: Offset) -> None:
        assert self.truncating and end_offset == self.accepted_end, f"to {end_offset}: {self}"
        self.truncating = False

    def check_invariants(self) -> None:
        assert self.start <= self.synced_end <= self.written_end <= self.accepted_end, str(self)
        entries = self.epochs.entries
        assert not entries or entries[-1].start_offset < max(1, self.accepted_end), str(self)

    def __repr__(self) -> str:
        return (
            f"LogState(start={self.start}, synced_end={self.synced_end}, written_end={self.written_end}, "
            f"accepted_end={self.accepted_end}, last_epoch={self.last_epoch})"
        )
