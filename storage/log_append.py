"""Appending to a log: which batches may follow its end, and how they are written, segment by segment.

Rules (DESIGN §6 and §13, RELIABILITY 6.1):

- A leader's batches take exactly the next offsets. A follower's may leave gaps, because compaction left gaps in the log
  that they come from; their offsets rise. Epochs never fall.
- A gap lies inside a segment: the new segment's base is the end of the log, also where the first batch in it begins
  later. So each segment ends where the next one begins, and where two do not meet, something was lost. A gap is
  shorter than 2^31, because a segment is.
- In a durable log the old segment is synced before the name of its successor exists. So after a crash only the last
  segment can be damaged. Where durability is left to the page cache, a successor may survive a crash that damaged the
  old one; recovery then finds the damage by scanning from the recovery point, which is moved by real syncs only.
- A batch is visible to readers after its write returned; before that, its producer and its epoch are noted.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.ids import Epoch, Offset
from storage.batch import StoredBatch
from storage.log_errors import UnexpectedAppend
from storage.log_parts import LogParts
from storage.log_view import LogView
from storage.offset_index import MAX_RELATIVE_OFFSET
from storage.segment import Segment


def check_append(
    path: str, batches: Sequence[StoredBatch], end_offset: Offset, last_epoch: Epoch, *, gaps: bool
) -> tuple[Offset, Epoch]:
    """(end offset, last epoch) of a log with these, after the batches. Raises UnexpectedAppend; changes nothing.

    gaps: the offsets may leave gaps.
    """
    for batch in batches:
        base_offset, last_offset, epoch = batch.base_offset, batch.last_offset, batch.leader_epoch
        if (base_offset != end_offset and not (gaps and base_offset > end_offset)) or last_offset < base_offset:
            raise UnexpectedAppend(path, f"offsets {base_offset} to {last_offset} where {end_offset} is next")
        if last_offset - end_offset > MAX_RELATIVE_OFFSET:
            raise UnexpectedAppend(path, f"no segment holds both offset {end_offset} and offset {last_offset}")
        if epoch < last_epoch or epoch < 0:
            raise UnexpectedAppend(path, f"epoch {epoch} after epoch {last_epoch}")
        end_offset, last_epoch = last_offset + 1, epoch
    return end_offset, last_epoch


def append_checked(log: LogParts, batches: Sequence[StoredBatch]) -> None:
    """Write batches that `check_append` has accepted, with one vectored write per segment, and publish them.

    Raises LogClosed; DiskError or any other exception of the write, after which the log has failed. Where the process
    is short of descriptors or memory, the log holds the batches up to the end that it has published then, and goes on.
    """
    with log.guard:
        log.guard.may_back_out = True
        segment_bytes = log.config.segment_bytes
        active = log.view.segments[-1]
        end = active.log.size
        run: list[StoredBatch] = []
        for batch in batches:
            if not active.has_room(end, batch, segment_bytes):
                _write(log, active, run)
                active = _roll(log)
                run, end = [], 0
            run.append(batch)
            end += batch.size
        _write(log, active, run)


def _write(log: LogParts, active: Segment, run: Sequence[StoredBatch]) -> None:
    """Write batches that fit into the last segment: the bytes, then producers and epochs, then the view of readers."""
    if not run:
        return
    active.log.get_ready()
    log.guard.may_back_out = False
    log.unsynced.segment_written(active)
    active.append(run, read_soon=log.has_readers)
    producers, epochs = log.producers, log.epochs
    last_epoch = epochs.last_epoch
    for batch in run:
        if producers is not None:
            producers.states.note(batch)
        if batch.leader_epoch != last_epoch:
            last_epoch = batch.leader_epoch
            log.unsynced.epochs_changed(epochs.assign(last_epoch, batch.base_offset))
    view = log.view
    log.view = LogView(view.path, view.segments, view.bases, active.log.size, view.start_offset, run[-1].next_offset)
    log.guard.may_back_out = True


def _roll(log: LogParts) -> Segment:
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
        log.producers.save(end_offset)
    segment = log.new_segment(end_offset)
    log.publish((*log.view.segments, segment), end_offset)
    return segment
