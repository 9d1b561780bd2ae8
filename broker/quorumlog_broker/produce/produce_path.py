"""Appends at the leader: validated, stamped and queued in the order of calls; answered when enough disks have them.

acks=0 and 1 are answered once the leader's disk has the records; acks=-1 once the high watermark has passed them while
the ISR has at least `min.insync.replicas`. With `durability=replicated` the page cache is enough.
The time-out of a request bounds the wait for followers. The leader's own disk has OWN_DISK_MS more, so that a time-out
of 0 means "do not wait for followers", as it does in Kafka, whose leaders do not wait for their disks.
A batch that repeats an earlier one is not appended: it waits for the same and is answered with the same offsets.

The records inside a batch are looked at once, here, before it gets offsets; followers and readers rely on that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import NamedTuple

from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Epoch, Offset, Uuid
from quorumlog.messages.buffer import Buffer
from quorumlog.records import CorruptRecords
from quorumlog.records.format.batch import BatchHeader, headers, parse_header, with_append_time
from quorumlog.records.validation.produced import validate_produced
from quorumlog.records.validation.record_check import check_records, look_at_once
from quorumlog.turn import Turn
from quorumlog_broker.delayed.operations import DelayedOperations
from quorumlog_broker.delayed.purgatory import Reason, Waiter
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.logdirs.log_directory import DirectoryQueue
from quorumlog_broker.partition.events import LogAdvanced
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.partition.tail import frame_bytes
from quorumlog_broker.produce.append_faults import ACKS_ALL, ACKS_LEADER, append_error, leading_log, min_isr_fault
from quorumlog_broker.produce.append_line import AppendLine
from quorumlog_broker.produce.conversion import Conversion
from quorumlog_broker.produce.pending_append import AppendResult, PendingAppend
from quorumlog_broker.produce.produce_rules import (
    check_form,
    check_header_timestamps,
    check_size,
    has_likely_timestamps,
    record_rules,
    uses_append_time,
)
from quorumlog_broker.produce.record_checks import RecordChecks, is_ended
from quorumlog_broker.produce.refused_batches import RefusedBatches
from quorumlog_broker.produce.transactional import EndTransaction, Verified
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica, Step
from quorumlog_storage.log.log import Log
from quorumlog_storage.producers.producer_state import Remembered
from quorumlog_storage.producers.verification import Guard
from quorumlog_storage.segment.batch import StoredBatch, stamped_batches

OWN_DISK_MS = 5_000  # a disk that takes longer is a hung one (`log.dir.stall.ms`)

_Enqueue = Callable[[Replica, Log], None]


class _Asked(NamedTuple):
    """What a request wants to know of its append."""

    acks: int
    timeout_ms: int
    pending: PendingAppend


class ProducePath:
    def __init__(
        self,
        clock: Clock,
        registry: Registry,
        delayed: DelayedOperations,
        step: Step,
        turn: Turn,
        *,
        looks_inside: bool = True,
    ) -> None:
        """looks_inside: check the records of every batch, not only its header (`record.validation`)."""
        self._clock = clock
        self._registry = registry
        self._delayed = delayed
        self._step = step
        self._turn = turn
        self._looks_inside = looks_inside
        self._checks = RecordChecks()
        self._refused = RefusedBatches()
        self._lines: dict[DirectoryQueue, AppendLine] = {}  # of directories whose queue was full once
        self._closed = False

    def close(self) -> None:
        """Refuse every append from now on."""
        self._closed = True
        self._checks.close()
        for line in self._lines.values():
            line.close()

    def append(
        self,
        topic: Uuid | str,
        index: int,
        records: Buffer,
        *,
        acks: int,
        timeout_ms: int,
        verified: Verified | None = None,
    ) -> PendingAppend:
        """Validate and enqueue, in the order of calls. The result is only for the answer and need not be awaited.

        A batch that takes long to look at, or finds the directory's queue full, and appends to its partition behind it,
        are enqueued later, in order.
        records: whole batches as produced; kept until written. acks: 0 and 1 wait for the leader's disk, -1 for every
        in-sync replica. verified: a coordinator vouches for the batch's transaction (transactional.py). Raises ApiError
        if nothing was appended. The awaited result raises ApiError if something may have been:
        NOT_ENOUGH_REPLICAS_AFTER_APPEND, REQUEST_TIMED_OUT, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR; and any error
        of `append` itself if the batch was not enqueued in this call.
        """
        try:
            replica, log = self._led(topic, index, acks)
        except ApiError as error:
            self._note_refused(topic, index, records, error)
            raise
        found = validate_produced(records, replica.config.max_message_bytes)
        check_form(found, replica.config, is_verified=verified is not None)
        if self._refused and not replica.sequences.knows(log, found[0].producer_id):
            self._refused.refuse_later(topic, index, found[0], self._clock.now_ms())
        asked = _Asked(acks, timeout_ms, PendingAppend(self._turn))
        sent = Conversion(records, found, replica.config)
        guard = None if verified is None else verified.guard
        enqueue = partial(self._enqueue, sent=sent, asked=asked, guard=guard)
        steps = self._look_inside(replica, sent)
        if sent.is_needed:
            steps = chain(steps or (), sent.steps())
        else:
            check_size(replica.config, found)
        if steps is None:
            self._enqueue_or_wait(replica, log, asked, enqueue)
        else:

            def looked(error: ApiError | None) -> None:
                try:
                    if error is not None:
                        raise error
                    self._enqueue_or_wait(replica, self._still_leading(replica, acks), asked, enqueue)
                except ApiError as refused:
                    asked.pending.settle(refused)

            self._checks.join(replica.key, steps, looked)
        return asked.pending

    def begin_verification(
        self, topic: Uuid | str, index: int, header: BatchHeader, *, epoch_per_transaction: bool = False
    ) -> Guard | None:
        """The guard of a transactional batch, before its coordinator is asked; see `ProducerSequences`.

        Raises ApiError where this broker does not lead the partition.
        """
        replica, log = self._led(topic, index, ACKS_LEADER)
        return replica.sequences.begin_verification(
            log, header, epoch_per_transaction=epoch_per_transaction, now_ms=self._clock.now_ms()
        )

    def append_end_txn_marker(
        self, topic: Uuid | str, index: int, ending: EndTransaction, *, timeout_ms: int
    ) -> PendingAppend:
        """End a producer's transaction on a partition, or confirm that it has ended: a marker is written in any case.

        Answered as an append with acks=-1, once every in-sync replica has the marker. Raises, or its result raises, as
        `append` does; and ApiError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.
        """
        replica, log = self._led(topic, index, ACKS_ALL)
        asked = _Asked(ACKS_ALL, timeout_ms, PendingAppend(self._turn))
        self._enqueue_or_wait(replica, log, asked, partial(self._enqueue_marker, ending=ending, asked=asked))
        return asked.pending

    def _led(self, topic: Uuid | str, index: int, acks: int) -> tuple[Replica, Log]:
        if self._closed:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker is shutting down")
        replica = self._registry.find(topic, index)
        return replica, leading_log(replica, acks)

    def _note_refused(self, topic: Uuid | str, index: int, records: Buffer, error: ApiError) -> None:
        if error.code.retriable:
            try:
                header = parse_header(records)
            except CorruptRecords:
                return
            self._refused.refused(topic, index, header, error, self._clock.now_ms())

    def _still_leading(self, replica: Replica, acks: int) -> Log:
        """The log to append to, some time after the request came. Raises ApiError."""
        if self._closed or self._registry.replicas.get(replica.key) is not replica:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{replica.name} was replaced or is closing")
        return leading_log(replica, acks)

    def _look_inside(self, replica: Replica, sent: Conversion) -> Iterator[None] | None:
        """None if the batch may be queued now; otherwise the steps before it. Raises ApiError: INVALID_RECORD,
        INVALID_TIMESTAMP."""
        header, rules = sent.found[0], record_rules(replica.config, self._clock.wall_ms())
        if not self._looks_inside and has_likely_timestamps(header):
            check_header_timestamps(header, rules)
        elif (largest_ms := look_at_once(sent.records, header, rules)) is not None:
            sent.correct(largest_ms)
        else:
            steps = sent.looked_at(check_records(sent.records, header, rules))
            if not is_ended(steps):
                return steps
        return iter(()) if self._checks.holds_up(replica.key) else None

    def _enqueue_or_wait(self, replica: Replica, log: Log, asked: _Asked, enqueue: _Enqueue) -> None:
        """Queue what was asked, or let it wait for a place in the directory's queue. Raises ApiError if neither."""
        queue = replica.queue
        assert queue is not None
        line = self._line_of(replica, queue)
        if not replica.is_frozen and (line is None or not line.holds_up(replica.key)):
            try:
                enqueue(replica, log)
                return
            except Busy:
                pass
        line = line or self._lines.setdefault(queue, AppendLine(self._clock))

        def enqueue_later() -> None:
            if replica.is_frozen:
                raise Busy(f"{replica.name} is being moved to another log directory; nothing was appended")
            enqueue(replica, self._still_leading(replica, asked.acks))

        line.join(replica.key, asked.timeout_ms, enqueue_later, asked.pending.settle)

    def _line_of(self, replica: Replica, queue: DirectoryQueue) -> AppendLine | None:
        """Where its appends wait. Those that wait while its log is moved are in the line of the earlier directory."""
        for line in self._lines.values():
            if line.holds_up(replica.key):
                return line
        return self._lines.get(queue)

    def _enqueue(self, replica: Replica, log: Log, *, sent: Conversion, asked: _Asked, guard: Guard | None) -> None:
        """Number the batch and queue it, and let its request wait for it. Raises ApiError if nothing was appended."""
        repeated = replica.sequences.check(log, sent.found, guard)
        if repeated is not None:
            self._answer_again(replica, log, repeated, asked)
            return
        append_time_ms = self._clock.wall_ms() if uses_append_time(replica.config) else -1
        records, found = sent.records, sent.found
        if append_time_ms >= 0:
            records = b"".join(with_append_time(records, header, append_time_ms) for header in found)
            found = headers(records)
        batches = stamped_batches(records, found, replica.next_offset, replica.core.leader_epoch)
        self._queue(replica, log, batches, append_time_ms, asked)
        _count(replica, found)

    def _enqueue_marker(self, replica: Replica, log: Log, *, ending: EndTransaction, asked: _Asked) -> None:
        """As `_enqueue`. A marker has no number, so none is a repetition."""
        producer_id, epoch = ending.producer_id, ending.producer_epoch
        replica.sequences.check_marker(log, producer_id, epoch, ending.marker, ending.transaction_version)
        data = ending.batch(self._clock.wall_ms())
        batches = stamped_batches(data, headers(data), replica.next_offset, replica.core.leader_epoch)
        self._queue(replica, log, batches, -1, asked)

    def _queue(
        self, replica: Replica, log: Log, batches: list[StoredBatch], append_time_ms: int, asked: _Asked
    ) -> None:
        assert replica.queue is not None
        asked.pending.result = AppendResult(
            base_offset=batches[0].base_offset,
            log_start_offset=log.start_offset,
            log_append_time_ms=append_time_ms,
        )
        end_offset = batches[-1].next_offset
        append = _Append(
            self, replica, replica.core.leader_epoch, batches, end_offset, asked.acks, asked.pending, replica.series
        )
        entry = replica.sequences.upcoming(log, batches[0])  # before the writer has the batch
        replica.queue.append(log, batches, written=append.written, synced=append.synced)
        replica.sequences.queued(batches[0], entry)
        replica.next_offset = append.next_offset
        append.wait(asked.timeout_ms)

    def _answer_again(self, replica: Replica, log: Log, repeated: Remembered, asked: _Asked) -> None:
        """Answer as the first batch is answered: once it is committed or, with acks 0 and 1, once an empty append that
        is queued behind it is synced."""
        assert replica.queue is not None
        acks, pending = asked.acks, asked.pending
        pending.result = AppendResult(
            base_offset=repeated.base_offset,
            log_start_offset=log.start_offset,
            log_append_time_ms=repeated.timestamp if uses_append_time(replica.config) else -1,
        )
        append = _Append(
            self, replica, replica.core.leader_epoch, (), repeated.last_offset + 1, acks, pending, replica.series
        )
        if acks == ACKS_ALL and replica.core.high_watermark >= append.next_offset:
            append.woken(Reason.OFFSET)
        elif acks != ACKS_ALL:
            replica.queue.append(log, (), written=append.written, synced=append.synced)
        append.wait(asked.timeout_ms)

    # --- called by `_Append` ---

    def advance(self, replica: Replica) -> None:
        """Report the log's ends to the core: this append's records, and those of others in the same turn.

        Only this method reports a new log end of a leader. Otherwise waiters for that end would never be woken.
        """
        log = replica.log
        assert log is not None
        synced_end = log.synced_end  # before the end, which the writer may be moving
        view = log.view
        end_offset, core = view.end_offset, replica.core
        if core.synced_end == synced_end and core.end_offset == end_offset:
            return  # another append of the same turn has reported them
        self._step(replica, LogAdvanced(end_offset, min(synced_end, end_offset), view.unstable))
        if core.is_leader:
            self._delayed.ends.reached(replica.key, core.end_offset)

    def watch(self, append: _Append, timeout_ms: int) -> Waiter[PartitionKey]:
        wanted = [(append.replica.key, append.next_offset)] if append.acks == ACKS_ALL else []
        return self._delayed.commits.watch(wanted, timeout_ms, append.woken)

    def forget(self, waiter: Waiter[PartitionKey]) -> None:
        self._delayed.commits.cancel(waiter)


def _count(replica: Replica, found: Sequence[BatchHeader]) -> None:
    traffic = replica.traffic
    for header in found:
        traffic.bytes_in += header.size
        traffic.records_in += header.count


@dataclass(slots=True, eq=False)
class _Append:
    """One append under way, or, without batches, the repetition of an earlier one.

    It releases its batches and its waiter early: a purgatory keeps completed waiters for a while, and each of them
    would keep the frame of its request in memory.
    """

    path: ProducePath
    replica: Replica
    leader_epoch: Epoch
    batches: Sequence[StoredBatch]
    next_offset: Offset  # exclusive end of what is acknowledged
    acks: int
    pending: PendingAppend
    series: int  # `Replica.series`
    waiter: Waiter[PartitionKey] | None = None
    is_overdue: bool = False  # the request's time is over, and the leader's own disk has not got the records

    def wait(self, timeout_ms: int) -> None:
        if not self.pending.is_settled:
            self.waiter = self.path.watch(self, timeout_ms)

    def written(self, error: Exception | None) -> None:
        if error is not None:
            self._begin_another_series()
            self._settle(append_error(error))
            return
        assert self.replica.log is not None
        self.replica.sequences.written(self.replica.log, self.batches)
        if self.batches and self._still_leads():
            self.replica.tail.put(self.batches, frame_bytes(self.batches[0].parts[-1]))
        self.batches = ()
        self.path.advance(self.replica)
        self._settle_if_overdue()

    def _begin_another_series(self) -> None:
        """This append failed, so those that were numbered behind it fail too; the next ones follow the log's end."""
        replica, log = self.replica, self.replica.log
        if self.series == replica.series:
            replica.series += 1
            replica.sequences.clear()
            if log is not None:
                replica.next_offset = log.end_offset

    def synced(self, error: Exception | None) -> None:
        if error is not None:
            self._settle(append_error(error))
            return
        self.path.advance(self.replica)
        if self.acks != ACKS_ALL:
            self._settle(None if self._still_leads() else self._not_leader())
        self._settle_if_overdue()

    def _settle_if_overdue(self) -> None:
        if self.is_overdue and not self._waits_for_own_disk():
            self._settle(self._timed_out())

    def _waits_for_own_disk(self) -> bool:
        return self.acks != ACKS_ALL or (self._still_leads() and self.replica.core.counted_end < self.next_offset)

    def woken(self, reason: Reason) -> None:
        self.waiter = None
        match reason:
            case Reason.OFFSET:
                self.pending.settle(self._committed())
            case Reason.STATE:
                self.pending.settle(self._not_leader())
            case Reason.TIME:
                if self.is_overdue or not self._waits_for_own_disk():
                    self.pending.settle(self._timed_out())
                else:
                    self.is_overdue = True
                    self.wait(OWN_DISK_MS)

    def _timed_out(self) -> ApiError:
        text = f"{self.replica.name}: not acknowledged in time; the records may yet be committed"
        return ApiError(ErrorCode.REQUEST_TIMED_OUT, text)

    def _committed(self) -> ApiError | None:
        if not self._still_leads():
            return self._not_leader()
        return min_isr_fault(self.replica, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

    def _settle(self, error: ApiError | None) -> None:
        if self.waiter is not None:
            self.path.forget(self.waiter)
            self.waiter = None
        self.pending.settle(error)

    def _still_leads(self) -> bool:
        core = self.replica.core
        return core.leader_epoch == self.leader_epoch and core.is_leader

    def _not_leader(self) -> ApiError:
        if not self.replica.is_usable:
            return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory of {self.replica.name} is offline")
        text = (
            f"broker {self.replica.core.node_id} no longer leads {self.replica.name}; the records may yet be committed"
        )
        return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, text)
