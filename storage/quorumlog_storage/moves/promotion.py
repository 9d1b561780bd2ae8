"""The exchange of a log and its future log. Each directory's files are changed by its own writer or its own jobs.

| step | by | what it does | a crash after it leaves |
|---|---|---|---|
| 1 `FutureLog.note` | target | notes its end, high watermark, log start, what is clean | the source |
| 2 `freeze` | source | syncs; the source takes no more appends | the source |
| 3 `complete` | target | copies the rest, epochs, producers; closes; the mark, durably | the source |
| 4 `leave` | source | is renamed to `-delete`, durably: **from here on the copy is the log** | the copy, marked |
| 5 `rename_in` | target | gives the copy its live name and opens it | the log; nobody reads its mark |
| 6 `take_over` | target | hands it to the writer as its source was; removes the mark | the log |

So at a start exactly one of the two counts: the source if it is there, and else the copy with the mark, which the start
renames (`rename_promoted`). An unsynced rename in step 4 leaves the source; then step 5 has not begun.

Where the target fails in step 3, `thaw` lets the source go on, at once, because its files have not changed. The mark
may be on the target's disk by then. It does not count while the source is there, and the next opening of that future
log removes it before it copies again (`FutureLog.load`). Where the source fails in step 4, nobody can say whether it is
renamed: the replica is offline until the directory comes back, as with any directory that fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quorumlog.ids import Offset, Uuid
from quorumlog.records.format.batch import headers, verify_crc
from quorumlog_storage.directory.checkpointed_log import CheckpointedLog
from quorumlog_storage.directory.mark import MARK_NAME, PromotionMark, write_mark
from quorumlog_storage.directory.offset_files import TopicPartition
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.files.disk import Disk, DiskError, FileMissing
from quorumlog_storage.log.log import Log
from quorumlog_storage.moves.future_log import FutureLog
from quorumlog_storage.moves.steps import CaughtUp, Read, next_step, span_of
from quorumlog_storage.producers.producer_state import ProducerStates
from quorumlog_storage.producers.transactions import Unstable
from quorumlog_storage.rules.epochs import EpochStart
from quorumlog_storage.segment.batch import StoredBatch, received_batches
from quorumlog_storage.segment.log_config import LogConfig

COPY_BYTES = 1 << 20  # read and appended at once


class NotReady(Exception):
    """The two logs differ by more than records that are missing at the end: the promotion is tried again later."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} cannot take its source's place yet: {reason}; it goes on being filled")
        self.path, self.reason = path, reason


class SourceFailed(Exception):
    """The source's disk failed while the target's job read from it: the target has no part in that."""

    def __init__(self, path: str, cause: DiskError) -> None:
        super().__init__(f"{path} cannot be read by its move: {cause}")
        self.path, self.cause = path, cause


class Frozen(NamedTuple):
    """What the source is when it takes no more appends. All of it is durable. start, end: of its log."""

    start: Offset
    end: Offset
    epochs: tuple[EpochStart, ...]
    unstable: Unstable
    replicated_end: Offset
    has_readers: bool


def copied_batches(source: Log, offset: Offset, max_bytes: int) -> list[StoredBatch]:
    """The batches of the source from `offset` on, their checksums verified; on any thread.

    Raises LogUnreadable, OffsetOutOfRange, CorruptRecords, DiskError.
    """
    data = source.read(offset, max_bytes, upper_bound=source.end_offset)
    found = headers(data)
    for header in found:
        verify_crc(data, header)
    return received_batches(data, found)


# --- the source, in its writer ---


def freeze(source: PartitionLog) -> Frozen:
    """Sync it; afterwards every change raises LogClosed, until `thaw`. Reads go on. Raises DiskError, LogClosed."""
    log = source.log
    log.sync()
    log.guard.is_closed = True
    producers = log.producers
    return Frozen(
        log.start_offset,
        log.end_offset,
        log.epochs.entries,
        log.unstable,
        0 if producers is None else producers.replicated_end,
        log.has_readers,
    )


def thaw(source: PartitionLog) -> None:
    """The promotion is off: it takes appends again."""
    assert source.is_here, f"{source.log.path} has left"
    source.log.guard.is_closed = False


def leave(source: PartitionLog, unique: Uuid) -> str:
    """Rename it to `...-delete`; the copy counts from now on. Returns that name. Raises DiskError."""
    return source.delete(unique)


# --- the target, in a job that has the future log's files ---


def complete(future: FutureLog, source: Log, frozen: Frozen, source_directory: Uuid, max_bytes: int) -> None:
    """Copy what is left, note that nothing is missing, and close it. Durable.

    source: frozen. max_bytes: more than this is not copied while nobody can append. Raises NotReady, where the future
    log may go on being filled; LogUnreadable, SourceFailed of the source; DiskError of the target.
    """
    _copy_rest(future, source, max_bytes)
    log, here = future.log, future.here
    if here.disk.exists(here.path_of(future.held.partition)):
        raise NotReady(future.path, "another directory has the name that it is to get")
    if (log.start_offset, log.end_offset) != (frozen.start, frozen.end):
        raise NotReady(future.path, f"it is [{log.start_offset}, {log.end_offset}), its source another span")
    _take_epochs(log, frozen.epochs)
    _take_producers(log, source)
    log.close()
    log.abandon()
    mark = PromotionMark(*future.held.partition, source_directory, frozen.end)
    write_mark(future.here.disk, future.path, mark)


def _copy_rest(future: FutureLog, source: Log, max_bytes: int) -> None:
    left = max_bytes
    while not isinstance(step := next_step(span_of(source), span_of(future.log)), CaughtUp):
        if not isinstance(step, Read):
            raise NotReady(future.path, f"it needs {step}")
        if left <= 0:
            raise NotReady(future.path, f"more than {max_bytes} bytes are missing")
        try:
            batches = copied_batches(source, step.offset, min(COPY_BYTES, left))
        except DiskError as error:
            raise SourceFailed(source.path, error) from error
        future.append(batches)
        left -= sum(batch.size for batch in batches)


def _take_producers(log: Log, source: Log) -> None:
    """The source may remember producers whose records have left it. The last snapshot tells them."""
    ours, theirs = log.producers, source.producers
    if ours is not None and theirs is not None:
        states = ProducerStates(dict(theirs.states.entries), theirs.states.end_offset)
        states.transactions.keep_ended(theirs.unstable, log.end_offset)
        ours.states = states


def rename_in(future: FutureLog, config: LogConfig, frozen: Frozen) -> Log:
    """Give it its live name, and open it there. Its source has left, durably. Raises DiskError, LogUnreadable.

    Its own close was a clean one, so no byte of it is read again here.
    """
    here, partition = future.here, future.held.partition
    rename_promoted(here, partition, future.name)
    return Log.open(
        here.disk,
        here.path_of(partition),
        config,
        recovery_point=frozen.end,
        clean=True,
        log_start=frozen.start,
        retired=here.retired,
    )


def rename_promoted(here: PartitionDirectories, partition: TopicPartition, name: str) -> None:
    """A start does this, too. Durable; may be repeated. Raises DiskError, also where the file system is gone."""
    here.check_identity("rename")
    if here.disk.exists(f"{here.path}/{name}"):
        here.disk.rename(f"{here.path}/{name}", here.path_of(partition))
    here.disk.sync_directory(here.path)


# --- the target, in its writer ---


def take_over(future: FutureLog, topic_id: Uuid, log: Log, frozen: Frozen) -> PartitionLog:
    """Hand over what `rename_in` has opened. Afterwards it is as its source was. Raises DiskError.

    An epoch that a leadership began and wrote nothing in is kept: recovery forgets it, and it may still lead in it.
    """
    here, partition = future.here, future.held.partition
    assert log.end_offset == frozen.end, f"{log.path} ends at {log.end_offset}, its source at {frozen.end}"
    log.advance_start(frozen.start)
    log.has_readers = frozen.has_readers
    _take_epochs(log, frozen.epochs)
    if log.producers is not None:
        log.producers.replicated_end = frozen.replicated_end
        log.producers.states.transactions.keep_ended(frozen.unstable, frozen.end)
        log.publish(log.view.segments, log.end_offset)
    held = PartitionLog(here, partition, topic_id, CheckpointedLog(log, here.recovery_points, partition))
    held.high_watermark = here.high_watermarks.get(partition)
    held.first_dirty = here.cleaner_offsets.get(partition)
    held.checkpointed.note()
    _drop_mark(here.disk, log.path)
    return held


def _take_epochs(log: Log, entries: Iterable[EpochStart]) -> None:
    """The source may know epochs whose records have left it, or which have none yet."""
    wanted = tuple(entries)
    if log.epochs.entries != wanted:
        log.epochs.entries = wanted
        log.unsynced.sync_epochs(log.end_offset)


def _drop_mark(disk: Disk, path: str) -> None:
    """Need not be durable: of a log that has its live name nobody reads it."""
    try:
        disk.unlink(f"{path}/{MARK_NAME}")
    except FileMissing:
        pass
