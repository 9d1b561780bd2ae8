"""Appending to a log: which batches may follow its end, and how they are written, segment by segment.

Rules:

- A leader's batches take exactly the next offsets. A follower's may leave gaps, because compaction left gaps in the log
  that they come from; their offsets rise. Epochs never fall.
- A gap lies inside a segment: the new segment's base is the end of the log, also where the first batch in it begins
  later. So each segment ends where the next one begins, and where two do not meet, something was lost. A gap is
  shorter than 2^31, because a segment is.
- In a durable log the old segment is synced before the name of its successor exists. So after a crash only the last
  segment can be damaged. Where durability is left to the page cache, a successor may survive a crash that damaged the
  old one; recovery then finds the damage by scanning from the recovery point, which is moved by real syncs only.
- A new segment begins where the next batch would exceed `segment.bytes` or offsets of 31 bits, where it is too late for
  the last one (quorumlog_storage/rules/roll_rule.py), and where an index of that is full. A segment without a batch
  takes any.
- A batch is visible to readers after its write returned; before that, its producer and its epoch are noted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorumlog.ids import NO_EPOCH, Epoch, Offset
from quorumlog.records.format.batch import NO_TIMESTAMP
from quorumlog_storage.log.log_errors import UnexpectedAppend
from quorumlog_storage.log.log_view import LogView
from quorumlog_storage.rules.roll_rule import ANY_TIME
from quorumlog_storage.segment.batch import StoredBatch
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.segment.log_file import CorruptBatch
from quorumlog_storage.segment.offset_index import MAX_POSITION, MAX_RELATIVE_OFFSET
from quorumlog_storage.segment.segment import Segment

if TYPE_CHECKING:
    from quorumlog_storage.log.log import Log


def check_append(
    path: str, batches: Sequence[StoredBatch], end_offset: Offset, last_epoch: Epoch, *, gaps: bool
) -> tuple[Offset, Epoch]:
    """(end offset, last epoch) of a log with these, after the batches. Raises UnexpectedAppend; changes nothing.

    gaps: the offsets may leave gaps, as what is copied from another log may. Then a batch may have no epoch: formats 0
    and 1 have none.
    """
    for batch in batches:
        base_offset, last_offset, epoch = batch.base_offset, batch.last_offset, batch.leader_epoch
        if (base_offset != end_offset and not (gaps and base_offset > end_offset)) or last_offset < base_offset:
            raise UnexpectedAppend(path, f"offsets {base_offset} to {last_offset} where {end_offset} is next")
        if last_offset - end_offset > MAX_RELATIVE_OFFSET:
            raise UnexpectedAppend(path, f"no segment holds both offset {end_offset} and offset {last_offset}")
        is_old = epoch == NO_EPOCH and gaps
        if epoch < (NO_EPOCH if is_old else max(0, last_epoch)):
            raise UnexpectedAppend(path, f"epoch {epoch} after epoch {last_epoch}")
        end_offset, last_epoch = last_offset + 1, max(last_epoch, epoch)
    return end_offset, last_epoch


def append_checked(log: Log, batches: Sequence[StoredBatch]) -> None:
    """Write batches that `check_append` has accepted, with one vectored write per segment, and publish them.

    Raises LogClosed; DiskError or any other exception of the write, after which the log has failed. Where the process
    is short of descriptors or memory, the log holds the batches up to the end that it has published then, and goes on.
    """
    with log.guard:
        log.guard.may_back_out = True
        config, active = log.config, log.view.segments[-1]
        end = active.log.size
        latest = log.roll_clock.latest(_first_timestamp(active), config) if end else ANY_TIME
        indexed_end = _indexed_end(active, config)
        run: list[StoredBatch] = []
        for batch in batches:
            is_due = batch.max_timestamp > latest
            if end > indexed_end:
                _write(log, active, run)
                run, indexed_end = [], _indexed_end(active, config)
                is_due = is_due or active.indexes.is_full(config.segment_index_bytes)
            if is_due or not active.has_room(end, batch, config.segment_bytes):
                _write(log, active, run)
                active = _roll(log)
                run, end, indexed_end = [], 0, _indexed_end(active, config)
            if end == 0:
                latest = log.roll_clock.latest(batch.max_timestamp, config)
            run.append(batch)
            end += batch.size
        _write(log, active, run)


def _first_timestamp(active: Segment) -> int:
    try:
        return active.first_timestamp
    except CorruptBatch:
        return NO_TIMESTAMP  # reading it says so; what comes behind it can be appended


def _indexed_end(active: Segment, config: LogConfig) -> int:
    """Batches that begin up to here find room in the indexes for certain."""
    index_bytes = config.segment_index_bytes
    if active.indexes.fewest_entries(index_bytes) * config.index_interval_bytes > config.segment_bytes:
        return MAX_POSITION
    return active.indexes.room_until(index_bytes)


def _write(log: Log, active: Segment, run: Sequence[StoredBatch]) -> None:
    """Write batches that fit into the last segment: the bytes, then producers and epochs, then the view of readers."""
    if not run:
        return
    active.log.get_ready()
    log.guard.may_back_out = False
    log.unsynced.segment_written(active)
    active.append(run, read_soon=log.has_readers)
    producers, epochs = log.producers, log.epochs
    if producers is not None:
        producers.appended(active, run)
    last_epoch = epochs.last_epoch
    for batch in run:
        if batch.leader_epoch > last_epoch:
            last_epoch = batch.leader_epoch
            epochs.assign(last_epoch, batch.base_offset)
    view = log.view
    start_offset, end_offset, unstable, aborted = view.start_offset, run[-1].next_offset, log.unstable, view.aborted
    if active.transactions.has_entries and active.transactions not in aborted[-1:]:
        aborted = (*aborted, active.transactions)
    log.view = LogView(
        view.path, view.segments, view.bases, active.log.size, start_offset, end_offset, unstable, aborted
    )
    log.guard.may_back_out = True


def roll_unless_empty(log: Log) -> None:
    """Begin a new segment at the log's end, if the last one holds a record."""
    if log.end_offset > log.active.base_offset:
        _roll(log)
        log.unsynced.sync_names()


def _roll(log: Log) -> Segment:
    """Begin a new segment at the log's end.

    The new file comes last: where there is no descriptor for it, nothing has changed but caches and snapshots, which
    may lie there without it.
    """
    end_offset = log.end_offset
    assert end_offset > log.active.base_offset, "an empty segment takes any batch"
    if log.config.durable:
        log.unsynced.sync_segments()
    log.active.flush_caches()
    if log.producers is not None:
        log.producers.note_index(log.active, log.view.segments)
        log.producers.save(end_offset)
    log.active.log.give_room_back()
    segment = log.new_segment(end_offset)
    log.publish((*log.view.segments, segment), end_offset)
    return segment
