"""The one fetch rule: what a log answers to a position (offset, last epoch), and where the fetcher then truncates.

Followers of a partition, voters and observers of the quorum all fetch this way. Sources: KIP-320, KIP-595, KIP-630
(validation of a fetch position). Both functions are pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.ids import NO_EPOCH, Epoch, Offset
from quorumlog_storage.rules.epochs import EpochEnd, LeaderEpochCache


@dataclass(frozen=True, slots=True)
class SnapshotId:
    """A snapshot of all records before `offset` (exclusive), the last of which was written in `epoch`."""

    offset: Offset
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Records:
    """The position is on this log: send what follows it."""


@dataclass(frozen=True, slots=True)
class Diverging:
    """The fetcher's log is not a prefix of ours: in ours, `epoch` ends at `end_offset` (exclusive)."""

    epoch: Epoch
    end_offset: Offset


@dataclass(frozen=True, slots=True)
class TakeSnapshot:
    """The records that the fetcher lacks are gone from the log; this snapshot holds them."""

    offset: Offset
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class OutOfRange:
    """The position is not on this log and no epoch says where the two diverged. The log is [log_start, log_end)."""

    log_start: Offset
    log_end: Offset


FetchAnswer = Records | Diverging | TakeSnapshot | OutOfRange

BOOTSTRAP = SnapshotId(0, 0)  # never offered: the log holds everything


def fetch_answer(
    *,
    log_start: Offset,
    log_end: Offset,
    epochs: LeaderEpochCache,
    fetch_offset: Offset,
    last_fetched_epoch: Epoch,
    snapshot: SnapshotId | None = None,
    oldest_snapshot: SnapshotId | None = None,
) -> FetchAnswer:
    """Decide the answer to a fetch.

    last_fetched_epoch: epoch of the fetcher's record before fetch_offset; NO_EPOCH skips the comparison of epochs (an
    empty log, a consumer without epochs). snapshot: the latest one, of a log that has snapshots; oldest_snapshot: the
    one at log_start, if it is another.
    """
    if snapshot is not None and snapshot != BOOTSTRAP:
        oldest = oldest_snapshot or snapshot
        if _needs_snapshot(log_start, oldest, fetch_offset, last_fetched_epoch):
            return TakeSnapshot(snapshot.offset, snapshot.epoch)
    if fetch_offset < log_start:
        return OutOfRange(log_start, log_end)
    if last_fetched_epoch == NO_EPOCH or fetch_offset == 0:
        return Records() if fetch_offset <= log_end else OutOfRange(log_start, log_end)
    ours = _end_of(epochs, last_fetched_epoch, log_end)
    if ours.epoch != last_fetched_epoch or ours.end_offset < fetch_offset:
        return Diverging(ours.epoch, ours.end_offset)
    return Records()


def _needs_snapshot(log_start: Offset, oldest: SnapshotId, offset: Offset, epoch: Epoch) -> bool:
    """True if the fetcher's log is empty, ends before our start, or has another last epoch than ours at the start."""
    if offset == 0 or offset < log_start:
        return True
    return (offset == log_start and epoch != oldest.epoch) or NO_EPOCH < epoch < oldest.epoch


def _end_of(epochs: LeaderEpochCache, epoch: Epoch, log_end: Offset) -> EpochEnd:
    """Where an epoch ends here. For an epoch that we have never seen: our last epoch, and our end."""
    return epochs.end_offset_for(epoch, log_end) or EpochEnd(epochs.last_epoch, log_end)


def truncation_point(epochs: LeaderEpochCache, log_end: Offset, diverging: Diverging) -> Offset:
    """The exclusive end to which the fetcher cuts its own log after a diverging answer; log_end if nothing is cut.

    epochs, log_end: of the fetcher's log. The result is the smaller of two offsets: where that epoch ends in the
    fetcher's log (or the largest epoch before it, if only the source has it), because nothing after it can be the same;
    and its end in the source's log, because the source's records after it are of later epochs than the fetcher has. The
    next fetch may diverge again, at a smaller epoch. A source without any epoch has no record in common with the
    fetcher: then the source's end decides.
    """
    return min(_end_of(epochs, diverging.epoch, log_end).end_offset, diverging.end_offset, log_end)
