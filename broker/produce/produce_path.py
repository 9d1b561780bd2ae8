"""Appends at the leader: validated, stamped and queued in the order of calls; answered when enough disks have them.

acks=0 and 1 are answered once the leader's disk has the records; acks=-1 once the high watermark has passed them while
the ISR has at least `min.insync.replicas` (FEATURES 1.11, 1.12). With `durability=replicated` the page cache is enough.
A batch that repeats an earlier one is not appended: it waits for the same and is answered with the same offsets.

The records inside a batch are looked at once, here, before it gets offsets; followers and readers rely on that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from broker.delayed.operations import DelayedOperations
from broker.delayed.purgatory import Reason, Waiter
from broker.logdirs.busy import Busy
from broker.logdirs.log_directory import DirectoryQueue
from broker.partition.events import LogAdvanced
from broker.partition.key import PartitionKey
from broker.partition.tail import frame_bytes
from broker.produce.append_line import AppendLine
from broker.produce.pending_append import AppendResult, PendingAppend
from broker.produce.record_checks import RecordChecks, is_ended
from broker.produce.refused_batches import RefusedBatches
from broker.replicas.registry import Registry
from broker.replicas.replica import Replica, Step
from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Epoch, Offset, Uuid
from quorumlog.messages.buffer import Buffer
from quorumlog.records import CorruptRecords
from quorumlog.records.batch import BatchHeader, headers, parse_header, with_append_time
from quorumlog.records.produced import validate_produced
from quorumlog.records.record_check import check_records, passes_at_once
from quorumlog.topic_config import TopicConfig
from quorumlog.turn import Turn
from storage.batch import StoredBatch, stamped_batches
from storage.log import Log
from storage.log_errors import UnexpectedAppend
from storage.producer_state import Remembered

ACKS_NONE, ACKS_LEADER, ACKS_ALL = ACKS = 0, 1, -1
NO_TIMESTAMP = -1


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

    def append(self, topic: Uuid | str, index: int, records: Buffer, *, acks: int, timeout_ms: int) -> PendingAppend:
        """Validate and enqueue, in the order of calls. The result is only for the answer and need not be awaited.

        A batch that takes long to look at, or finds the directory's queue full, and appends to its partition behind it,
        are enqueued later, in order.
        records: whole batches as produced; kept until written. acks: 0 and 1 wait for the leader's disk, -1 for every
        in-sync replica. Raises ApiError if nothing was appended. The awaited result raises ApiError if something may
        have been: NOT_ENOUGH_REPLICAS_AFTER_APPEND, REQUEST_TIMED_OUT, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR;
        and any error of `append` itself if the batch was not enqueued in this call.
        """
        try:
            replica, log = self._led(topic, index, acks)
        except ApiError as error:
            self._note_refused(topic, index, records, error)
            raise
        found = validate_produced(records, replica.config.max_message_bytes)
        _check_form(found)
        if self._refused and not replica.sequences.knows(log, found[0].producer_id):
            self._refused.refuse_later(topic, index, found[0], self._clock.now_ms())
        pending = PendingAppend(self._turn)
        steps = self._look_inside(replica, records, found[0])
        if steps is None:
            self._enqueue_or_wait(replica, log, records, found, acks, timeout_ms, pending)
        else:

            def looked(error: ApiError | None) -> None:
                try:
                    if error is not None:
                        raise error
                    log = self._still_leading(replica, acks)
                    self._enqueue_or_wait(replica, log, records, found, acks, timeout_ms, pending)
                except ApiError as refused:
                    pending.settle(refused)

            self._checks.join(replica.key, steps, looked)
        return pending

    def _led(self, topic: Uuid | str, index: int, acks: int) -> tuple[Replica, Log]:
        if self._closed:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker is shutting down")
        replica = self._registry.find(topic, index)
        return replica, _leading(replica, acks)

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
        return _leading(replica, acks)

    def _look_inside(self, replica: Replica, records: Buffer, header: BatchHeader) -> Iterator[None] | None:
        """None if the batch may be queued now; otherwise the steps before it. Raises ApiError: INVALID_RECORD."""
        if self._looks_inside:
            keys_required = "compact" in replica.config.cleanup_policy
            if not passes_at_once(records, header, keys_required=keys_required):
                steps = check_records(records, header, keys_required=keys_required)
                if not is_ended(steps):
                    return steps
        return iter(()) if self._checks.holds_up(replica.key) else None

    def _enqueue_or_wait(
        self,
        replica: Replica,
        log: Log,
        records: Buffer,
        found: list[BatchHeader],
        acks: int,
        timeout_ms: int,
        pending: PendingAppend,
    ) -> None:
        """Queue the batch, or let it wait for a place in the directory's queue. Raises ApiError if it does neither."""
        queue = replica.queue
        assert queue is not None
        line = self._lines.get(queue)
        if line is None or not line.holds_up(replica.key):
            try:
                self._enqueue(replica, log, records, found, acks, timeout_ms, pending)
                return
            except Busy:
                line = self._lines.setdefault(queue, line or AppendLine(self._clock))

        def enqueue() -> None:
            self._enqueue(replica, self._still_leading(replica, acks), records, found, acks, timeout_ms, pending)

        line.join(replica.key, timeout_ms, enqueue, pending.settle)

    def _enqueue(
        self,
        replica: Replica,
        log: Log,
        records: Buffer,
        found: list[BatchHeader],
        acks: int,
        timeout_ms: int,
        pending: PendingAppend,
    ) -> None:
        """Number the batch and queue it, and let `pending` wait for it. Raises ApiError if nothing was appended."""
        assert replica.queue is not None
        repeated = replica.sequences.check(log, found)
        if repeated is not None:
            self._answer_again(replica, log, repeated, acks, timeout_ms, pending)
            return
        append_time_ms = self._clock.wall_ms() if _uses_append_time(replica.config) else -1
        batches = self._stamp(replica, records, found, append_time_ms)
        pending.result = AppendResult(
            base_offset=batches[0].base_offset,
            log_start_offset=log.start_offset,
            log_append_time_ms=append_time_ms,
        )
        append = _Append(
            self, replica, replica.core.leader_epoch, batches, batches[-1].next_offset, acks, pending, replica.series
        )
        entry = replica.sequences.upcoming(log, batches[0])  # before the writer has the batch
        replica.queue.append(log, batches, written=append.written, synced=append.synced)
        replica.sequences.queued(batches[0], entry)
        replica.next_offset = append.next_offset
        append.wait(timeout_ms)

    def _answer_again(
        self, replica: Replica, log: Log, repeated: Remembered, acks: int, timeout_ms: int, pending: PendingAppend
    ) -> None:
        """Answer as the first batch is answered: once it is committed or, with acks 0 and 1, once an empty append that
        is queued behind it is synced."""
        assert replica.queue is not None
        pending.result = AppendResult(
            base_offset=repeated.base_offset,
            log_start_offset=log.start_offset,
            log_append_time_ms=repeated.timestamp if _uses_append_time(replica.config) else -1,
        )
        append = _Append(
            self, replica, replica.core.leader_epoch, (), repeated.last_offset + 1, acks, pending, replica.series
        )
        if acks == ACKS_ALL and replica.core.high_watermark >= append.next_offset:
            append.woken(Reason.OFFSET)
        elif acks != ACKS_ALL:
            replica.queue.append(log, (), written=append.written, synced=append.synced)
        append.wait(timeout_ms)

    def _stamp(
        self, replica: Replica, records: Buffer, found: list[BatchHeader], append_time_ms: int
    ) -> list[StoredBatch]:
        if append_time_ms >= 0:
            records = b"".join(with_append_time(records, header, append_time_ms) for header in found)
            found = headers(records)
        else:
            self._check_timestamps(replica.config, found)
        return stamped_batches(records, found, replica.next_offset, replica.core.leader_epoch)

    def _check_timestamps(self, config: TopicConfig, found: Sequence[BatchHeader]) -> None:
        now_ms = self._clock.wall_ms()
        for header in found:
            ahead_ms, behind_ms = header.max_timestamp - now_ms, now_ms - header.base_timestamp
            if ahead_ms > config.message_timestamp_after_max_ms:
                raise ApiError(ErrorCode.INVALID_TIMESTAMP, f"a record is {ahead_ms} ms ahead of this broker's clock")
            if header.base_timestamp != NO_TIMESTAMP and behind_ms > config.message_timestamp_before_max_ms:
                raise ApiError(ErrorCode.INVALID_TIMESTAMP, f"a record is {behind_ms} ms behind this broker's clock")

    # --- called by `_Append` ---

    def advance(self, replica: Replica) -> None:
        """Report the log's ends to the core: this append's records, and those of others in the same turn.

        Only this method reports a new log end of a leader. Otherwise waiters for that end would never be woken.
        """
        log = replica.log
        assert log is not None
        synced_end = log.synced_end  # before the end, which the writer may be moving
        end_offset = log.end_offset
        core = replica.core
        if core.synced_end == synced_end and core.end_offset == end_offset:
            return  # another append of the same turn has reported them
        self._step(replica, LogAdvanced(end_offset, min(synced_end, end_offset)))
        if core.is_leader:
            self._delayed.ends.reached(replica.key, core.end_offset)

    def watch(self, append: _Append, timeout_ms: int) -> Waiter[PartitionKey]:
        wanted = [(append.replica.key, append.next_offset)] if append.acks == ACKS_ALL else []
        return self._delayed.commits.watch(wanted, timeout_ms, append.woken)

    def forget(self, waiter: Waiter[PartitionKey]) -> None:
        self._delayed.commits.cancel(waiter)


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

    def wait(self, timeout_ms: int) -> None:
        if not self.pending.is_settled:
            self.waiter = self.path.watch(self, timeout_ms)

    def written(self, error: Exception | None) -> None:
        if error is not None:
            self._begin_another_series()
            self._settle(_append_error(error))
            return
        assert self.replica.log is not None
        self.replica.sequences.written(self.replica.log, self.batches)
        if self.batches and self._still_leads():
            self.replica.tail.put(self.batches, frame_bytes(self.batches[0].parts[-1]))
        self.batches = ()
        self.path.advance(self.replica)

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
            self._settle(_append_error(error))
            return
        self.path.advance(self.replica)
        if self.acks != ACKS_ALL:
            self._settle(None if self._still_leads() else self._not_leader())

    def woken(self, reason: Reason) -> None:
        self.waiter = None
        match reason:
            case Reason.OFFSET:
                self.pending.settle(self._committed())
            case Reason.STATE:
                self.pending.settle(self._not_leader())
            case Reason.TIME:
                text = f"{self.replica.name}: not acknowledged in time; the records may yet be committed"
                self.pending.settle(ApiError(ErrorCode.REQUEST_TIMED_OUT, text))

    def _committed(self) -> ApiError | None:
        if not self._still_leads():
            return self._not_leader()
        return _min_isr_fault(self.replica, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

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


def _append_error(error: Exception) -> ApiError:
    """Busy: this append, or one that it was numbered behind, found no room; nothing was appended."""
    if isinstance(error, Busy):
        return error
    if isinstance(error, UnexpectedAppend):
        return Busy(f"an append before this one was held back: {error}")
    return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))


def _leading(replica: Replica, acks: int) -> Log:
    """The log to append to. Raises ApiError: NOT_LEADER_OR_FOLLOWER, INVALID_REQUIRED_ACKS, NOT_ENOUGH_REPLICAS;
    KAFKA_STORAGE_ERROR also where the directory is short of free space."""
    log = replica.leading()
    queue = replica.queue
    if queue is not None and queue.space.is_short:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, queue.space.describe(queue.directory.path))
    if acks not in ACKS:
        raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks}, only -1, 0 and 1 mean something")
    if acks == ACKS_ALL and (fault := _min_isr_fault(replica, ErrorCode.NOT_ENOUGH_REPLICAS)):
        raise fault
    return log


def _min_isr_fault(replica: Replica, code: ErrorCode) -> ApiError | None:
    core = replica.core
    if not core.under_min_isr:
        return None
    text = f"{replica.name}: {len(core.isr_state.isr)} in sync, min.insync.replicas is {core.effective_min_isr}"
    return ApiError(code, text)


def _check_form(found: Sequence[BatchHeader]) -> None:
    """Kafka's rule of one batch per partition; and no batch of a transaction, since no coordinator could end it."""
    if len(found) > 1:
        raise ApiError(ErrorCode.INVALID_RECORD, f"{len(found)} batches for one partition; a request holds one")
    if found[0].is_transactional:
        text = "a batch of a transaction without a transactional id; transactions are not supported"
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, text)


def _uses_append_time(config: TopicConfig) -> bool:
    return config.message_timestamp_type == "LogAppendTime"
