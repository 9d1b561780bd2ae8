"""A finished group takes the place of its sources, by the log's writer and so that no crash leaves a hole.

1. The outputs get the suffix `.swap`, the last one first, each name durable before the next: if one has it, all behind
   it have. From now on a start completes the exchange (`swap_files.py`).
2. Readers see the outputs. Who holds an older view reads on in the sources.
3. The sources' names go, durably: a source that came back beside an output would overlap it.
4. The outputs lose the suffix.

Before that the epochs are noted on disk: a start could not read them any more from batches that have gone.
The outputs' bytes are synced before the writer gets them. An output begins where the one before it ends, the first one
where the sources began, and the last one ends where they ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorumlog.ids import Offset
from quorumlog_storage.files.names import CLEANED_SUFFIX, SWAP_SUFFIX
from quorumlog_storage.log.log_errors import reading
from quorumlog_storage.log.log_view import view_of
from quorumlog_storage.segment.segment import Segment

if TYPE_CHECKING:
    from quorumlog_storage.log.log import Log


class Superseded(Exception):
    """The log has changed below the round: a source was cut, or has left it. Nothing was exchanged."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}; the cleaned segments are dropped, and a later round begins anew")
        self.path = path


def replace_segments(log: Log, sources: Sequence[Segment], outputs: Sequence[tuple[Offset, int]], cuts: int) -> None:
    """sources: neighbours, as they were when the round began. outputs: (base offset, bytes), under `.cleaned`.
    cuts: of the log when the round began; a truncation since then may have changed what was read.

    Durable when it returns. Raises Superseded, LogClosed, LogUnreadable, where nothing has changed; DiskError.
    """
    log.guard.check_open()
    view, first, after = log.view, sources[0], sources[-1]
    if log.cuts != cuts:
        raise Superseded(log.path, "the log was truncated while it was cleaned")
    if first not in view.segments[:-1]:
        raise Superseded(log.path, f"segment {first.base_offset} has left the log while it was cleaned")
    at = view.segments.index(first)
    until = at + len(sources)
    if view.segments[at:until] != tuple(sources) or after is view.segments[-1]:
        raise Superseded(log.path, f"segment {after.base_offset} is not closed any more")
    assert outputs and outputs[0][0] == first.base_offset, f"{outputs} do not begin at {first.base_offset}"
    cleaned = _found(log, outputs, view.bases[until])
    with log.guard:
        log.unsynced.sync_epochs(log.end_offset)
        for segment in reversed(cleaned):
            segment.rename(SWAP_SUFFIX)
            log.unsynced.names_changed()
            log.unsynced.sync_names()
        segments = (*view.segments[:at], *cleaned, *view.segments[until:])
        log.unsynced.keep_only(segments)
        log.view = view_of(log.path, segments, view.start_offset, view.end_offset, log.unstable)
        log.retire(reversed(sources))
        if log.producers is not None:
            log.producers.forget_between(first.base_offset, view.bases[until])
        log.unsynced.names_changed()
        log.unsynced.sync_names()
        for segment in cleaned:
            segment.rename("")
            if log.producers is not None:
                log.producers.note_index(segment, segments)
        log.unsynced.names_changed()
        log.unsynced.sync_names()


def _found(log: Log, outputs: Sequence[tuple[Offset, int]], end_offset: Offset) -> list[Segment]:
    """The outputs, whose ends meet. Raises LogUnreadable, DiskError, Superseded."""
    cleaned = [
        Segment(log.disk, log.path, base, log.config.index_interval_bytes, CLEANED_SUFFIX) for base, _ in outputs
    ]
    ends = [*(base for base, _ in outputs[1:]), end_offset]
    try:
        with reading(log.path):
            for segment, (_, size), end in zip(cleaned, outputs, ends, strict=True):
                if segment.size != size or segment.end_offset() != end:
                    raise Superseded(log.path, f"{segment.log.path} is not what the round has written")
    except Exception:
        for segment in cleaned:
            segment.let_go()
        raise
    return cleaned
