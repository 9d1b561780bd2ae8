"""What a follower does with its leader's answer: append, truncate, restart, copy anew, or wait.

Rules:

- The position moves, and so acknowledges, only after the bytes are on disk (where the topic asks for that).
- Records of an epoch above the fetch's are dropped. An answer that belongs to an earlier leadership changes nothing.
- What lies before the leader's start was deleted there, and with it the epochs that would tell whether ours is the
  same. A follower whose log parted there, or ends there in an older epoch, drops it and goes on at the leader's start.
  It must not keep it: records that were never committed would be read from it once it is elected.
- A log whose start lies past the place where the two logs parted has no record in common with the leader's. Either
  log has lost committed records, because no start passes the high watermark. The follower keeps its log for the
  operator (`...-stray`), alarms, and copies the leader's from its start. It must not go on at its own start: elected
  later, it would make the others delete what lies before it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import takewhile
from typing import TypeVar

from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_EPOCH, Epoch, Offset, Uuid
from quorumlog.messages.buffer import Buffer, whole
from quorumlog.messages.common import EpochEndOffset
from quorumlog.messages.fetch import FetchPartitionResponse
from quorumlog.records import CorruptRecords
from quorumlog.records.format.batch import headers, verify_crc
from quorumlog.settings.replicas import ReplicationConfig
from quorumlog_broker.logdirs.log_directory import DirectoryQueue, Lane
from quorumlog_broker.partition.events import LeaderHighWatermark, LogAdvanced, LogStartMoved, LogTruncated
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica, Step, log_config
from quorumlog_broker.replication.fetch_position import FetchPosition
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.log.log import Log
from quorumlog_storage.rules.fetch_rule import Diverging, truncation_point
from quorumlog_storage.segment.batch import StoredBatch, received_batches

T = TypeVar("T")
Done = Callable[[FetchPosition], None]
_log = logging.getLogger("quorumlog.broker")


class Follower:
    """Of all fetchers. logs_set_aside: how many logs were set aside and copied anew."""

    def __init__(
        self,
        clock: Clock,
        registry: Registry,
        step: Step,
        config: ReplicationConfig,
        fresh_id: Callable[[], Uuid],
    ) -> None:
        self._clock = clock
        self._registry = registry
        self._step = step
        self._config = config
        self._fresh_id = fresh_id
        self.logs_set_aside = 0

    def take(self, position: FetchPosition, answer: FetchPartitionResponse, done: Done) -> None:
        """The answer for a partition: sets `position.busy` until its work on the disk is over, then moves the position
        and calls `done`.
        """
        replica = self._followed(position)
        if replica is None:
            return
        if replica.is_frozen:
            self._back_off(position)
            return
        try:
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self._start_again(replica, position, answer.log_start_offset, done)
            elif answer.error_code != ErrorCode.NONE:
                self._back_off(position)
            elif answer.diverging_epoch is not None:
                self._repair(replica, position, answer, answer.diverging_epoch, done)
            elif len(answer.records):
                self._append(replica, position, answer, done)
            else:
                self._step(replica, LeaderHighWatermark(answer.high_watermark))
                self._adopt_start(replica, position, answer.log_start_offset, done)
        except (ApiError, CorruptRecords):  # nothing was queued: a full queue, a failed directory, damaged bytes
            self._back_off(position)

    def _followed(self, position: FetchPosition) -> Replica | None:
        """The replica, while it follows in the epoch of this position."""
        replica = self._registry.replicas.get(position.key)
        if replica is None or replica.log is None or not replica.core.is_follower:
            return None
        return replica if replica.core.leader_epoch == position.leader_epoch else None

    def _back_off(self, position: FetchPosition) -> None:
        position.back_off(self._clock.now_ms(), self._config.fetch_backoff_ms)

    # --- records ---

    def _append(self, replica: Replica, position: FetchPosition, answer: FetchPartitionResponse, done: Done) -> None:
        log, queue = _log_of(replica), replica.queue
        assert queue is not None
        batches = verified_batches(whole(answer.records), position.leader_epoch)
        if batches and _cannot_be_compared(log, answer.log_start_offset, batches[0].leader_epoch):
            self._restart(replica, position, answer.log_start_offset, done)
            return
        if batches and batches[0].base_offset < position.offset == log.start_offset == log.end_offset:
            self._begin_inside(replica, position, batches, done)
            return
        if not batches or batches[0].base_offset < position.offset:  # after it: compaction left a gap
            self._back_off(position)
            return

        def synced(error: Exception | None) -> None:
            position.busy = False
            if error is not None:
                self._back_off(position)
            else:
                self._advance(replica, log)
                self._moved(position, log)
                if self._followed(position) is replica:
                    self._step(replica, LeaderHighWatermark(answer.high_watermark))
                    self._adopt_start(replica, position, answer.log_start_offset, done)
            if not position.busy:
                done(position)

        queue.append(log, batches, synced=synced, gaps=True)  # no fetch waits for a follower, so none needs `written`
        self._count(replica, len(answer.records))
        position.busy = True

    def _count(self, replica: Replica, size_bytes: int) -> None:
        traffic, partition = self._registry.traffic, self._registry.image.partition(*replica.key)
        traffic.replication_in += size_bytes
        if partition is not None and replica.core.node_id in partition.adding_replicas:
            traffic.reassignment += size_bytes

    def _advance(self, replica: Replica, log: Log) -> None:
        synced_end = log.synced_end  # before the end, which the writer may be moving
        view = log.view
        self._step(replica, LogAdvanced(view.end_offset, min(synced_end, view.end_offset), view.unstable))

    def _moved(self, position: FetchPosition, log: Log) -> None:
        assert log.is_acknowledgeable, "acknowledged before it was on disk"
        position.offset, position.last_epoch, position.log_start = log.end_offset, log.last_epoch, log.start_offset
        position.progressed()

    # --- the start ---

    def _adopt_start(self, replica: Replica, position: FetchPosition, leader_start: Offset, done: Done) -> None:
        """Records were deleted at the leader: delete them here, and say so with the next fetch."""
        log, queue = _log_of(replica), replica.queue
        target = min(leader_start, replica.core.high_watermark)
        if queue is None:
            return
        if target <= log.start_offset:
            # Its own retention was faster than the leader. Without a new record no fetch would name the partition, and
            # the leader lets nobody into the ISR who seems to hold records that were deleted.
            position.log_start = log.start_offset
            return

        def moved(start: Offset) -> None:
            position.log_start = start
            self._step(replica, LogStartMoved(start))

        self._run(queue, position, partial(_files_of(replica).raise_start, target), moved, done)

    def _begin_inside(
        self, replica: Replica, position: FetchPosition, batches: Sequence[StoredBatch], done: Done
    ) -> None:
        """Our empty log starts where records were deleted up to the middle of a batch."""
        log, queue = _log_of(replica), replica.queue
        assert queue is not None
        if batches[0].next_offset <= position.offset:
            self._back_off(position)
            return

        def begun(_: None) -> None:
            self._advance(replica, log)
            self._moved(position, log)

        self._run(queue, position, partial(_files_of(replica).begin_inside, batches), begun, done)

    # --- repairs ---

    def _repair(
        self,
        replica: Replica,
        position: FetchPosition,
        answer: FetchPartitionResponse,
        leader: EpochEndOffset,
        done: Done,
    ) -> None:
        """The two logs differ: cut ours to where they may still be the same, and fetch again from there."""
        log = _log_of(replica)
        point = truncation_point(log.epochs, log.end_offset, Diverging(leader.epoch, leader.end_offset))
        if point < log.start_offset:
            self._copy_anew(replica, position, answer.log_start_offset, done)
        elif log.start_offset < answer.log_start_offset and point <= answer.log_start_offset:
            self._restart(replica, position, answer.log_start_offset, done)
        else:
            self._cut(replica, position, point, done)

    def _cut(self, replica: Replica, position: FetchPosition, offset: Offset, done: Done) -> None:
        log, queue = _log_of(replica), replica.queue
        assert queue is not None
        work = partial(_files_of(replica).truncate_to, offset)
        self._run(queue, position, work, lambda _: self._repaired(replica, position, log), done)

    def _start_again(self, replica: Replica, position: FetchPosition, leader_start: Offset, done: Done) -> None:
        """Our log ends before the leader's starts: drop it, and go on at the leader's start."""
        log = _log_of(replica)
        if leader_start <= log.end_offset:  # the position is past the leader's end
            if log.last_epoch == NO_EPOCH and position.offset == log.end_offset:
                self._copy_anew(replica, position, leader_start, done)  # no record of ours can say where we parted
            else:
                self._back_off(position)  # the leader will say where the logs parted
            return
        self._restart(replica, position, leader_start, done)

    def _restart(self, replica: Replica, position: FetchPosition, leader_start: Offset, done: Done) -> None:
        """Nothing that we hold is in the leader's log: drop it, and go on where that log starts."""
        log, queue = _log_of(replica), replica.queue
        assert queue is not None
        work = partial(_files_of(replica).restart_at, leader_start)
        self._run(queue, position, work, lambda _: self._repaired(replica, position, log), done)

    def _copy_anew(self, replica: Replica, position: FetchPosition, leader_start: Offset, done: Done) -> None:
        """Our log has nothing in common with the leader's: set it aside, and begin an empty one where theirs starts."""
        queue, old = replica.queue, _log_of(replica)
        assert queue is not None
        unique = self._fresh_id()

        def begun(kept: str) -> None:
            self.logs_set_aside += 1
            _log.error(
                "%s: the log [%d, %d) begins after the place where it parted from the log of its leader, broker %d, so "
                "one of the two has lost records; it was set aside as %s/%s, and is copied anew from offset %d",
                replica.name, old.start_offset, old.end_offset, replica.core.leader, queue.directory.path, kept,
                leader_start,
            )  # fmt: skip
            replica.log = _files_of(replica).log
            self._repaired(replica, position, replica.log)

        self._run(queue, position, partial(_set_aside, replica, unique, leader_start), begun, done)

    def _repaired(self, replica: Replica, position: FetchPosition, log: Log) -> None:
        before = (position.offset, position.last_epoch)
        view = log.view
        self._step(replica, LogTruncated(view.start_offset, view.end_offset, view.unstable))
        self._moved(position, log)
        if (position.offset, position.last_epoch) == before:
            self._back_off(position)  # nothing gained: do not ask the same at once, for ever

    def _run(
        self,
        queue: DirectoryQueue,
        position: FetchPosition,
        work: Callable[[], T],
        then: Callable[[T], None],
        done: Done,
    ) -> None:
        """Run a job that changes the log; the position is busy until it has ended. then: called if it succeeded."""
        changing = queue.run(work, Lane.AT_ONCE)
        position.busy = True
        queue.start(self._changed(position, changing, then, done), "change of a followed log")

    async def _changed(
        self, position: FetchPosition, changing: Awaitable[T], then: Callable[[T], None], done: Done
    ) -> None:
        try:
            result = await changing
        except Exception:  # told by the queue; where that was full, the next answer says the same again
            position.busy = False
            self._back_off(position)
        else:
            position.busy = False
            then(result)
        done(position)


def verified_batches(records: Buffer, leader_epoch: Epoch) -> list[StoredBatch]:
    """Whole batches whose checksums are right, up to the first of an epoch above the fetch's. Raises CorruptRecords."""
    wanted = list(takewhile(lambda header: header.leader_epoch <= leader_epoch, headers(records)))
    for header in wanted:
        verify_crc(records, header)
    return received_batches(records, wanted)


def _cannot_be_compared(log: Log, leader_start: Offset, next_epoch: Epoch) -> bool:
    """Whether all that the log holds lies before the leader's start, and what follows is of a later epoch.

    next_epoch: of the leader's first records. An equal epoch would prove that the records before it are the same.
    """
    return log.start_offset < log.end_offset <= leader_start and log.last_epoch < next_epoch


def _log_of(replica: Replica) -> Log:
    assert replica.log is not None, "followed before it was open"
    return replica.log


def _files_of(replica: Replica) -> PartitionLog:
    """To be changed by jobs of the directory's worker only."""
    assert replica.partition_log is not None, "followed before it was open"
    return replica.partition_log


def _set_aside(replica: Replica, unique: Uuid, start_offset: Offset) -> str:
    """In the directory's worker. Returns the name under which the old log is kept.

    A crash in between leaves no directory, or an empty log; both are filled from the leader.
    """
    assert replica.queue is not None
    old = _files_of(replica)
    kept = old.set_aside(unique)
    directories = replica.queue.directory.partitions
    fresh = PartitionLog.create(directories, old.partition, old.topic_id, log_config(replica.config))
    fresh.follow()
    if start_offset:
        fresh.restart_at(start_offset)
    replica.partition_log = fresh
    return kept
