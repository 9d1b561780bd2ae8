"""What the core knows of its log: ends and epochs, never bytes. It is a copy that only events move.

    start <= synced_end <= written_end <= accepted_end      (in a log that was just opened, all three ends are equal)

- accepted: offsets are assigned and the write is queued. Votes compare this end: queued writes are done in order.
- written: may be sent to followers and observers.
- synced: counts for the high watermark. A voter that fetches from this offset acknowledges all below it.
- snapshots: those on disk, oldest first. A log that does not begin at 0 begins where its oldest snapshot ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from quorumlog.ids import NO_EPOCH, Epoch, Offset
from quorumlog_quorum.raft.voters import MembershipRecord
from quorumlog_storage.rules.epochs import EpochStart, LeaderEpochCache
from quorumlog_storage.rules.fetch_rule import SnapshotId


class EpochSpan(NamedTuple):
    """One batch, or adjacent batches of one epoch: offsets [first_offset, end_offset).

    members: what a control batch says about the voters.
    """

    epoch: Epoch
    first_offset: Offset
    end_offset: Offset
    members: tuple[MembershipRecord, ...] = ()


class LogState:
    def __init__(
        self,
        *,
        start: Offset,
        end: Offset,
        epochs: tuple[EpochStart, ...],
        snapshots: Sequence[SnapshotId] = (),
    ) -> None:
        """The state of a log that was just opened: it is recovered, and all of it is synced."""
        assert 0 <= start <= end, (start, end)
        self.start = start
        self.snapshots = tuple(snapshots)
        self.accepted_end = self.written_end = self.synced_end = end
        self.epochs = LeaderEpochCache(epochs)
        self.truncating = False

    @property
    def last_epoch(self) -> Epoch:
        """Of the last accepted record, which the snapshot at the start may stand for; -1 if there was none ever."""
        return self.epochs.last_epoch if self.epochs.entries else self._epoch_before_start

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        return self.snapshots[-1] if self.snapshots else None

    @property
    def committed_floor(self) -> Offset:
        """Everything before this offset is committed, because a snapshot holds it."""
        return self.snapshots[-1].offset if self.snapshots else 0

    @property
    def _epoch_before_start(self) -> Epoch:
        """Of the last record before the start."""
        at_start = [snapshot.epoch for snapshot in self.snapshots if snapshot.offset == self.start > 0]
        return at_start[0] if at_start else NO_EPOCH

    @property
    def settled(self) -> bool:
        """Whether the disk has done all that was asked of it."""
        return self.synced_end == self.accepted_end and not self.truncating

    @property
    def position(self) -> tuple[Epoch, Offset]:
        """What votes compare: the larger position is more up to date."""
        return self.last_epoch, self.accepted_end

    @property
    def synced_position(self) -> tuple[Epoch, Offset]:
        """What a candidate claims: the position of what a power cut would leave."""
        if self.synced_end == self.accepted_end:
            return self.position
        epoch = self.epochs.epoch_for(self.synced_end - 1) if self.synced_end > self.start else self._epoch_before_start
        return NO_EPOCH if epoch is None else epoch, self.synced_end

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

    def add_snapshot(self, snapshot: SnapshotId) -> None:
        """Taken of this log. One that the start has passed meanwhile is of no use."""
        if snapshot.offset < self.start or snapshot in self.snapshots:
            return
        assert snapshot.offset <= self.synced_end, f"{snapshot} is past what is synced: {self}"
        if snapshot.offset > self.start:
            assert self.epochs.epoch_for(snapshot.offset - 1) == snapshot.epoch, f"{snapshot} is not of {self}"
        older = [known for known in self.snapshots if known.offset < snapshot.offset]
        newer = [known for known in self.snapshots if known.offset > snapshot.offset]
        self.snapshots = (*older, snapshot, *newer)

    def forget_snapshot(self, snapshot: SnapshotId) -> None:
        """It cannot be read any more. The last one that stands for what is before the start stays known."""
        others = tuple(known for known in self.snapshots if known != snapshot)
        if others or self.start == 0:
            self.snapshots = others

    def raise_start(self, oldest: SnapshotId) -> None:
        """The log begins where this snapshot ends; older snapshots are gone."""
        assert oldest in self.snapshots and self.start <= oldest.offset <= self.synced_end, f"to {oldest}: {self}"
        self.snapshots = self.snapshots[self.snapshots.index(oldest) :]
        self.start = oldest.offset
        self.epochs.truncate_from_start(oldest.offset)

    def restart_at(self, snapshot: SnapshotId) -> None:
        """This snapshot stands for everything; the log is empty and goes on where it ends. Until `on_truncated`."""
        assert self.settled and snapshot.offset > self.committed_floor, f"at {snapshot}: {self}"
        self.start = self.accepted_end = self.written_end = self.synced_end = snapshot.offset
        self.epochs, self.snapshots = LeaderEpochCache(), (snapshot,)
        self.truncating = True

    def check_invariants(self) -> None:
        assert self.start == 0 or self.snapshots, f"no snapshot stands for what is before the start: {self}"
        assert self.start <= self.synced_end <= self.written_end <= self.accepted_end, str(self)
        entries = self.epochs.entries
        last_start = entries[-1].start_offset if entries else 0
        assert last_start < max(1, self.accepted_end) or last_start == self.start, str(self)

    def __repr__(self) -> str:
        return (
            f"LogState(start={self.start}, synced_end={self.synced_end}, written_end={self.written_end}, "
            f"accepted_end={self.accepted_end}, last_epoch={self.last_epoch})"
        )
