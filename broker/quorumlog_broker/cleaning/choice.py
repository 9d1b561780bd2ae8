"""Which part of a log may be cleaned, and which log comes next (Kafka's `LogCleanerManager`; KIP-58, KIP-354).

The boundary: nothing is cleaned at or behind the last stable offset, the last segment, or the first dirty segment with
a record younger than `min.compaction.lag.ms`. Only whole segments are cleaned, so an offset inside one stands for its
beginning.

A log is due if its dirty share reaches `min.cleanable.dirty.ratio`, or if something in it has been dirty for longer
than `max.compaction.lag.ms`. The largest share comes first. Of equal ones,
the smaller name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog_storage.segment.log_config import NEVER

UNKNOWN_MS = -1


class SegmentFacts(NamedTuple):
    """first_ms, largest_ms: timestamps of its records; UNKNOWN_MS where nobody asked for them or there are none."""

    base_offset: Offset
    size: int
    first_ms: int = UNKNOWN_MS
    largest_ms: int = UNKNOWN_MS


class LogFacts(NamedTuple):
    """A log at one moment. segments: all, the last one is written to. noted: the checkpoint's first dirty offset."""

    segments: tuple[SegmentFacts, ...]
    start_offset: Offset
    end_offset: Offset
    last_stable_offset: Offset
    noted: Offset
    min_dirty_ratio: float
    min_lag_ms: int
    max_lag_ms: int
    now_ms: int  # wall clock


class Dirt(NamedTuple):
    """What `judge` finds. boundary: exclusive. reason: why the boundary is not the last segment; "" if it is.

    must_be_noted: the checkpoint is outside of the log, so it was reset to the log's start.
    overdue_ms: by how much the oldest dirty record is older than `max.compaction.lag.ms`.
    """

    first_dirty: Offset
    boundary: Offset
    clean_bytes: int
    dirty_bytes: int  # up to the boundary
    blocked_bytes: int  # dirty, behind the boundary
    must_be_noted: bool
    overdue_ms: int
    is_due: bool
    reason: str

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


def judge(log: LogFacts) -> Dirt:
    first_dirty, must_be_noted = log.noted, False
    if not log.start_offset <= log.noted <= log.end_offset:
        first_dirty, must_be_noted = log.start_offset, True
    boundary, reason = _boundary(log, first_dirty)
    ends = [*(segment.base_offset for segment in log.segments[1:]), log.end_offset]
    clean = dirty = blocked = 0
    oldest_ms = log.now_ms
    for segment, end in zip(log.segments, ends, strict=True):
        if end <= first_dirty:
            clean += segment.size
        elif end <= boundary:
            dirty += segment.size
            if segment.first_ms > 0:
                oldest_ms = min(oldest_ms, segment.first_ms)
        else:
            blocked += segment.size
    overdue_ms = max(0, log.now_ms - log.max_lag_ms - oldest_ms) if log.max_lag_ms < NEVER else 0
    found = Dirt(first_dirty, boundary, clean, dirty, blocked, must_be_noted, overdue_ms, False, reason)
    is_due = dirty > 0 and (found.ratio >= log.min_dirty_ratio or overdue_ms > 0)
    return found._replace(is_due=is_due)


def _boundary(log: LogFacts, first_dirty: Offset) -> tuple[Offset, str]:
    """Where a segment begins."""
    last = log.segments[-1].base_offset
    boundary, reason = last, ""
    ends = [segment.base_offset for segment in log.segments[1:]]
    for segment, end in zip(log.segments, ends, strict=False):
        if end > log.last_stable_offset:
            boundary, reason = segment.base_offset, f"the last stable offset is {log.last_stable_offset}"
            break
        is_young = log.min_lag_ms > 0 and segment.largest_ms > log.now_ms - log.min_lag_ms
        if end > first_dirty and is_young:
            boundary, reason = segment.base_offset, "a record is younger than min.compaction.lag.ms"
            break
    return boundary, reason


def needs_times(min_lag_ms: int, max_lag_ms: int) -> bool:
    """Whether the timestamps of dirty segments decide anything."""
    return min_lag_ms > 0 or max_lag_ms < NEVER


def filthiest(candidates: Iterable[tuple[str, Dirt]]) -> str | None:
    """The name of the log that comes next; None: no log is due."""
    due = [(-dirt.ratio, name) for name, dirt in candidates if dirt.is_due]
    return min(due)[1] if due else None
