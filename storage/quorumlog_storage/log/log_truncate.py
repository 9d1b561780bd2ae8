"""Shortening a log, at its end or at its start.

A truncation at the end is durable when it returns: otherwise an old record could come back behind a new one. It changes
first what readers see, then names, then bytes. So a crash leaves a prefix of the old log.

A start inside a segment is kept in memory only; quorumlog_storage/directory/partition_log.py notes it on disk first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorumlog.ids import Offset
from quorumlog_storage.log.log_errors import reading
from quorumlog_storage.log.log_view import view_of
from quorumlog_storage.segment.segment import Segment

if TYPE_CHECKING:
    from quorumlog_storage.log.log import Log


def truncate_to(log: Log, offset: Offset) -> None:
    """See `Log.truncate_to`."""
    if offset >= log.end_offset:
        with log.guard:
            _forget_epochs_from(log, offset)
        return
    assert offset >= log.start_offset, f"truncate to {offset}, before the start {log.start_offset}"
    log.guard.check_open()
    view = log.view
    number = view.number_for(offset)
    last = view.segments[number]
    with reading(log.path):
        position = last.find(offset, view.limit(number))
        end_offset = last.end_offset_before(position) if position else last.base_offset
    with log.guard:
        _shorten(log, view.segments[: number + 1], position, end_offset)


def truncate_fully(log: Log, start_offset: Offset) -> None:
    """See `Log.truncate_fully`. The new segment's name is on disk before the first one leaves.

    So a crash leaves the first segment, or nothing. Its bytes are not cut here, which takes long for a large file: it
    is retired like any other, unless the new segment takes its name.
    """
    with log.guard:
        view, old = log.view, log.view.segments[0]
        if log.producers is not None:
            log.producers.clear()
        if start_offset == old.base_offset:
            _shorten(log, (old,), 0, old.base_offset)
            log.publish((old,), start_offset)
            return
        _shorten(log, (old,), view.limit(0), view.bases[1] if len(view.bases) > 1 else view.end_offset)
        fresh = log.new_segment(start_offset)
        log.unsynced.sync_names()
        log.view = view_of(log.path, (fresh,), start_offset, start_offset)
        log.synced_end = start_offset
        log.unsynced.keep_only((fresh,))
        log.retire([old])
        log.unsynced.sync_names()
        _forget_epochs_from(log, old.base_offset)


def advance_start(log: Log, offset: Offset) -> None:
    """See `Log.advance_start`."""
    view = log.view
    assert offset <= view.end_offset, f"start {offset} after the end {view.end_offset}"
    offset = max(offset, view.start_offset)
    if offset == view.start_offset and not view.number_for(offset):
        return  # otherwise segments that were begun since then lie before the start
    assert offset <= log.synced_end, f"start {offset} after the synced end {log.synced_end}"
    with log.guard:
        number = view.number_for(offset)
        kept = view.segments[number:]
        aborted = tuple(index for index in view.aborted if index.base_offset >= view.bases[number])
        log.view = view._replace(segments=kept, bases=view.bases[number:], start_offset=offset, aborted=aborted)
        log.unsynced.keep_only(kept)
        log.epochs.truncate_from_start(offset)
        if number and log.producers is not None:
            log.producers.start_at(kept[0].base_offset, view.end_offset)
        log.retire(view.segments[:number])


def _shorten(log: Log, kept: tuple[Segment, ...], position: int, end_offset: Offset) -> None:
    """Cut the last of `kept` at `position` and remove the segments after it, the last one first.

    Their names are removed durably before anything new is written. The caches are removed too: an old one must not
    describe new bytes.
    """
    removed, last = log.view.segments[len(kept) :], kept[-1]
    log.cuts += 1
    log.synced_end = min(log.synced_end, end_offset)
    log.unsynced.keep_only(kept)
    last.truncate_to(position)
    if position == 0:
        log.roll_clock.begin()
    log.publish(kept, end_offset)
    log.retire(reversed(removed))
    last.remove_caches()
    if log.producers is not None:
        log.producers.cut(end_offset)
    log.unsynced.names_changed()
    log.unsynced.sync_names()
    last.log.cut()
    last.log.flush()
    if log.producers is not None:
        log.producers.reload(kept, end_offset)
        log.publish(kept, end_offset)  # with the transactions as they are now
    _forget_epochs_from(log, end_offset)


def _forget_epochs_from(log: Log, offset: Offset) -> None:
    """Durable. An epoch that began where the log ends has no records: a follower that truncates there forgets it."""
    log.epochs.truncate_from_end(offset)
    log.unsynced.sync_epochs(log.end_offset)
