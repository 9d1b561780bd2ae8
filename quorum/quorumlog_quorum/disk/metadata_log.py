"""The metadata log, `__cluster_metadata-0`: does the core's appends, truncations and reads on the storage engine.

A worker writes it, like every other log; this worker serves the quorum alone. The newest batches stay in memory, so
that followers which are nearly caught up and the node's own listeners need no disk and no thread.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from quorumlog.clock import Clock
from quorumlog.ids import Offset
from quorumlog.messages.buffer import Buffer
from quorumlog.records import BatchHeader, CorruptRecords, headers, verify_crc
from quorumlog.records.control import LeaderChange, control_batch
from quorumlog.records.rowwise.values import encode_values
from quorumlog.topic_name import METADATA_TOPIC
from quorumlog_quorum.disk.membership_scan import members_of
from quorumlog_quorum.raft import AppendControl, AppendFetched, AppendLeaderChange, AppendValues, EpochSpan
from quorumlog_quorum.snapshots import SnapshotId
from quorumlog_quorum.snapshots.retention import raise_log_start
from quorumlog_storage.directory.checkpointed_log import CheckpointedLog
from quorumlog_storage.directory.offset_files import OffsetFile
from quorumlog_storage.log.log_view import OffsetOutOfRange
from quorumlog_storage.segment.batch import received_batches
from quorumlog_storage.writer.worker import Worker, WorkerClosed, WorkerFull
from quorumlog_storage.writer.writer import AppendJob, CallJob, Outcome

METADATA_PARTITION = (METADATA_TOPIC, 0)
METADATA_DIRECTORY = f"{METADATA_TOPIC}-0"
NOTE_INTERVAL_MS = 60_000  # the longest time for which a busy log's recovery point stays where it is
RECENT_BYTES = 8 << 20  # of the newest batches are kept in memory

OnEnd = Callable[[Offset], None]  # called with an exclusive end offset
OnError = Callable[[Exception], None]
Appending = AppendLeaderChange | AppendValues | AppendControl | AppendFetched


class RecentBatches:
    """The newest batches, as they are stored, without a gap. Older ones are dropped."""

    def __init__(self, end_offset: Offset, max_bytes: int = RECENT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._size = 0
        self._starts: list[Offset] = []  # of the batches, ascending
        self._batches: list[bytes] = []
        self._end = end_offset

    def add(self, first_offset: Offset, end_offset: Offset, batch: bytes) -> None:
        assert first_offset == self._end < end_offset, f"{first_offset} does not follow {self._end}"
        self._starts.append(first_offset)
        self._batches.append(batch)
        self._end = end_offset
        self._size += len(batch)
        self._shrink()

    def truncate_to(self, end_offset: Offset) -> None:
        """An offset before the first of them removes all."""
        while self._starts and self._starts[-1] >= end_offset:
            self._starts.pop()
            self._size -= len(self._batches.pop())
        self._end = end_offset

    def read(self, offset: Offset, max_bytes: int, upper_bound: Offset) -> bytes | None:
        """Whole batches from the one that begins at `offset`, at least one; None if the first of them begins later."""
        if not self._starts or not self._starts[0] <= offset < min(upper_bound, self._end):
            return None
        first = bisect_right(self._starts, offset) - 1
        taken, size = first, 0
        while taken < len(self._starts) and self._end_of(taken) <= upper_bound:
            size += len(self._batches[taken])
            if taken > first and size > max_bytes:
                break
            taken += 1
        return b"".join(self._batches[first:taken])

    def _end_of(self, index: int) -> Offset:
        return self._starts[index + 1] if index + 1 < len(self._starts) else self._end

    def _shrink(self) -> None:
        drop = 0
        while self._size > self._max_bytes and drop + 1 < len(self._batches):
            self._size -= len(self._batches[drop])
            drop += 1
        if drop:
            del self._starts[:drop], self._batches[:drop]


class MetadataLog:
    """on_error: called with every failure of the disk and every exception of a callback; the node stops.

    The recovery point is noted when a segment is full, at the first sync after `note_interval_ms`, and at the close. An
    unclean start reads whole segments anyway; but a log that ends before its recovery point is known to have lost
    records.
    """

    def __init__(
        self,
        checkpointed: CheckpointedLog,
        worker: Worker,
        on_error: OnError,
        clock: Clock,
        note_interval_ms: int = NOTE_INTERVAL_MS,
        starts: OffsetFile | None = None,
    ) -> None:
        """starts: where the log's start is noted; None for a log whose start is never raised."""
        log = checkpointed.log
        self._checkpointed, self._log, self._worker, self._on_error = checkpointed, log, worker, on_error
        self._clock, self._note_interval_ms, self._starts = clock, note_interval_ms, starts
        self._noted_ms = clock.now_ms()
        self._noted_segment: Offset = log.segment_bases[-1]  # the newest segment when the recovery point was noted
        self._recent = RecentBatches(log.end_offset)

    @property
    def start_offset(self) -> Offset:
        return self._log.start_offset

    @property
    def size_bytes(self) -> int:
        """Bytes of all batches."""
        return self._log.size_bytes

    def append(self, what: Appending, timestamp_ms: int, on_written: OnEnd, on_synced: OnEnd) -> None:
        """Queue an append whose offsets the core has assigned. Raises WorkerFull: then nothing has happened."""
        data = encode(what, timestamp_ms)
        batches = received_batches(data)
        end_offset = batches[-1].next_offset

        self._worker.submit(
            AppendJob(self._log, batches),
            lambda outcome: self._tell(outcome, lambda: on_written(end_offset)),
            lambda outcome: self._tell(outcome, lambda: self._synced(end_offset, on_synced)),
        )
        for batch in batches:
            self._recent.add(batch.base_offset, batch.next_offset, b"".join(batch.parts))

    def truncate_to(self, end_offset: Offset, on_done: OnEnd) -> None:
        """on_done: called after everything that was queued before. Raises WorkerFull."""

        def done(outcome: Outcome) -> None:
            assert outcome.value == end_offset, f"truncated to {outcome.value}, {end_offset} is inside a batch"
            on_done(end_offset)

        job = CallJob(lambda: self._checkpointed.truncate_to(end_offset))
        self._worker.submit(job, lambda _: None, lambda outcome: self._tell(outcome, lambda: done(outcome)))
        self._recent.truncate_to(end_offset)

    def read(self, offset: Offset, max_bytes: int, upper_bound: Offset, callback: Callable[[bytes], None]) -> None:
        """Whole batches from `offset` up to upper_bound (exclusive), at least one; called back at once from memory.

        `offset` must be the start of a batch that was written. Called back with nothing if a snapshot stands for it by
        now. Raises WorkerFull.
        """
        found = self._recent.read(offset, max_bytes, upper_bound)
        if found is not None:
            callback(found)
            return

        def read() -> bytes:
            try:
                return self._log.read(offset, max_bytes, upper_bound=upper_bound)
            except OffsetOutOfRange as error:
                if offset < error.start:
                    return b""
                raise

        self._worker.read(read, lambda outcome: self._tell(outcome, lambda: callback(outcome.value)))

    def restart_at(self, start_offset: Offset, on_done: OnEnd) -> None:
        """Remove everything and go on there, after everything that was queued before. Raises WorkerFull."""

        def restart() -> None:
            self._checkpointed.truncate_fully(start_offset)

        self._worker.submit(CallJob(restart), None, lambda outcome: self._tell(outcome, lambda: on_done(start_offset)))
        self._recent = RecentBatches(start_offset)

    # In the worker.

    def raise_start(self, oldest: SnapshotId, dropped: Sequence[SnapshotId]) -> None:
        """Let the log begin where the oldest snapshot ends, and set the dropped ones aside to be freed."""
        assert self._starts is not None
        raise_log_start(self._checkpointed, self._starts, oldest, dropped)

    def roll_if_older(self, segment_ms: int, wall_ms: int) -> None:
        """Close the last segment if its first record is older than that."""
        first_ms = self._log.active.first_timestamp
        if first_ms >= 0 and wall_ms - first_ms > segment_ms:
            self._log.roll()

    # On the loop.

    def close(self, on_done: Callable[[Outcome], None]) -> None:
        """Sync and close, after everything that is queued. Raises WorkerFull, WorkerClosed."""
        self._worker.submit(CallJob(self._checkpointed.close), None, on_done)

    def _synced(self, end_offset: Offset, on_synced: OnEnd) -> None:
        on_synced(end_offset)
        newest, now_ms = self._log.segment_bases[-1], self._clock.now_ms()
        if newest == self._noted_segment and now_ms - self._noted_ms < self._note_interval_ms:
            return
        try:
            job = CallJob(self._checkpointed.note)
            self._worker.submit(job, lambda _: None, lambda outcome: self._tell(outcome, _nothing))
            self._noted_segment, self._noted_ms = newest, now_ms
        except (WorkerFull, WorkerClosed):
            pass  # the next sync or the close does it

    def _tell(self, outcome: Outcome, then: Callable[[], None]) -> None:
        if outcome.error is not None:
            self._on_error(outcome.error)
            return
        try:
            then()
        except Exception as error:
            self._on_error(error)


def _nothing() -> None:
    pass


def encode(what: Appending, timestamp_ms: int) -> Buffer:
    """The batches to store. timestamp_ms: wall clock, for people who read the log."""
    match what:
        case AppendLeaderChange(offset, epoch, leader_id, voters, granting):
            change = LeaderChange(leader_id, voters, granting)
            return control_batch([change], base_offset=offset, timestamp_ms=timestamp_ms, leader_epoch=epoch)
        case AppendValues(offset, epoch, values):
            return encode_values(values, offset, epoch, timestamp_ms)
        case AppendControl(offset, epoch, members):
            records = [member.record for member in members]
            return control_batch(records, base_offset=offset, timestamp_ms=timestamp_ms, leader_epoch=epoch)
        case AppendFetched(records, _):
            return records


def checked_spans(records: Buffer) -> tuple[EpochSpan, ...] | None:
    """The epochs and offsets of fetched batches, and what they say of the voters; None if the records are corrupt."""
    try:
        found = headers(records)
        for header in found:
            verify_crc(records, header)
        return tuple([_span_of(records, header) for header in found])
    except CorruptRecords:
        return None


def _span_of(records: Buffer, header: BatchHeader) -> EpochSpan:
    members = members_of(records, header) if header.is_control else ()
    return EpochSpan(header.leader_epoch, header.base_offset, header.next_offset, members)
