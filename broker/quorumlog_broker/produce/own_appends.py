"""Appends that a broker makes itself: a coordinator's records, to the internal partition that it leads.

Nobody else may write there, so an append is queued in the call, in the leader epoch of the coordinator's election, or
not at all: it never waits for a place, and never takes one in a later epoch. What it waits for (the high watermark) is
the coordinator's to see.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Epoch, Offset
from quorumlog.records.format.batch import headers
from quorumlog_broker.partition.tail import frame_bytes
from quorumlog_broker.produce.append_faults import ACKS_ALL, append_error, leading_log
from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.segment.batch import StoredBatch, stamped_batches

Written = Callable[[ApiError | None], None]
"""Called once for each append: it is in the leader's log (None), or it failed and is not."""


class OwnAppends:
    """advance: reports a leader's log end (`ProducePath.advance`)."""

    def __init__(self, advance: Callable[[Replica], None]) -> None:
        self._advance = advance

    def check(self, replica: Replica, leader_epoch: Epoch) -> None:
        """Raises ApiError if an append would be refused now: see `append`."""
        replica.leading(leader_epoch)
        leading_log(replica, ACKS_ALL)
        if replica.is_frozen:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, f"{replica.name} is being moved to another log directory")

    def append(self, replica: Replica, leader_epoch: Epoch, batch: bytes, written: Written) -> Offset:
        """Queue one batch, whose offsets begin at 0 in its bytes. Returns the offset of its first record.

        Raises ApiError where nothing was queued: NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, KAFKA_STORAGE_ERROR,
        NOT_ENOUGH_REPLICAS, and REQUEST_TIMED_OUT where the log is moved or the directory's queue is full. It may be
        tried again, unless the leadership is over.
        """
        self.check(replica, leader_epoch)
        queue, log = replica.queue, replica.log
        assert queue is not None and log is not None
        stored = stamped_batches(batch, headers(batch), replica.next_offset, leader_epoch)
        append = _OwnAppend(self._advance, replica, leader_epoch, stored, replica.series, written)
        entry = replica.sequences.upcoming(log, stored[0])  # before the writer has the batch
        queue.append(log, stored, written=append.written, synced=append.synced)
        replica.sequences.queued(stored[0], entry)
        base_offset, replica.next_offset = replica.next_offset, stored[-1].next_offset
        return base_offset


@dataclass(slots=True, eq=False)
class _OwnAppend:
    advance: Callable[[Replica], None]
    replica: Replica
    leader_epoch: Epoch
    batches: list[StoredBatch]
    series: int  # `Replica.series`
    tell: Written

    def written(self, error: Exception | None) -> None:
        replica, log = self.replica, self.replica.log
        if error is not None:
            self._begin_another_series()
            self.tell(append_error(error))
            return
        assert log is not None
        replica.sequences.written(log, self.batches)
        core = replica.core
        if core.is_leader and core.leader_epoch == self.leader_epoch:
            replica.tail.put(self.batches, frame_bytes(self.batches[0].parts[-1]))
        self.tell(None)
        self.advance(replica)

    def synced(self, error: Exception | None) -> None:
        """Where the sync fails, the directory does, and the leadership ends with it."""
        if error is None:
            self.advance(self.replica)

    def _begin_another_series(self) -> None:
        """Appends that were numbered behind this one fail, too; the next ones follow the log's end."""
        replica = self.replica
        if self.series == replica.series:
            replica.series += 1
            replica.sequences.clear()
            if replica.log is not None:
                replica.next_offset = replica.log.end_offset
