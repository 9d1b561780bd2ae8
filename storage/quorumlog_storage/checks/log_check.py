"""The check of one log while it is in use: its closed segments one after the other, in slices, and what is mended.

A reader thread looks (`LogCheck.step`), the log's writer replaces what is wrong (`mend`). In between the segment may
have left the log, or may have been compacted or cut: then what was found counts for nothing, because the names that
were read may have been another segment's. The active segment is not checked: the writer's memory holds its indexes.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog_storage.checks.segment_check import SLICE_BYTES, Outcome, SegmentCheck
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_view import LogView
from quorumlog_storage.producers.producer_state import ProducerStates
from quorumlog_storage.segment.segment import Segment


class Step(NamedTuple):
    """batches, size_bytes: that were looked at. outcome: of a segment of which this was the last slice."""

    batches: int
    size_bytes: int
    outcome: Outcome | None = None


class LogCheck:
    """`Log.look_up(check.step)` until it is None. For one thread at a time; a step that failed may be repeated."""

    def __init__(self, log: Log, slice_bytes: int = SLICE_BYTES) -> None:
        self.log, self.cuts = log, log.cuts
        self._slice_bytes = slice_bytes
        self._next: Offset = log.segment_bases[0]  # where the next segment begins
        self._states: ProducerStates | None = ProducerStates() if self._next == 0 else None  # there; None: not known
        self._current: SegmentCheck | None = None

    def step(self, view: LogView) -> Step | None:
        """None: all closed segments were looked at. Raises FileMissing, CorruptBatch, DiskError; see `Log.look_up`."""
        current = self._current
        if current is None or current.segment not in view.segments[:-1]:
            self._forget_states(current)
            current = self._current = self._begin(view)
        if current is None:
            return None
        before = current.position
        batches = current.read()
        size = current.position - before
        if not current.is_done:
            return Step(batches, size)
        self._current, self._next = None, view.bases[view.segments.index(current.segment) + 1]
        self._states = current.states if current.is_exact else None
        return Step(batches, size, current.outcome())

    def _forget_states(self, current: SegmentCheck | None) -> None:
        """The segment that was under way has left the log."""
        if current is not None:
            self._current, self._states = None, None

    def _begin(self, view: LogView) -> SegmentCheck | None:
        for number in range(bisect_left(view.bases, self._next), len(view.segments) - 1):
            segment = view.segments[number]
            if segment.base_offset != self._next:
                self._states = None
            if segment.size and not _is_ahead(segment):
                return self._check(segment, view.bases[number + 1])
            self._next, self._states = view.bases[number + 1], None if segment.size else self._states
        return None

    def _check(self, segment: Segment, end_offset: Offset) -> SegmentCheck:
        log, producers = self.log, self.log.producers
        states, noted = self._states, None
        if producers is not None:
            states = producers.snapshot_at(segment.base_offset) if states is None else states
            noted = producers.noted_index(segment.base_offset)
        interval = log.config.index_interval_bytes
        return SegmentCheck(log.disk, segment, interval, states, noted, end_offset, self._slice_bytes)


def _is_ahead(segment: Segment) -> bool:
    """The writer is about to write its indexes: the next pass looks at them."""
    return segment.transactions.must_build or any(cache.is_held for cache in segment.caches)


def mend(log: Log, cuts: int, outcome: Outcome) -> bool:
    """Replace the indexes that are wrong, in memory and on disk. In the log's writer.

    cuts: of the log when its check began. False: the segment is not what was looked at any more. Raises DiskError.
    """
    view, segment = log.view, outcome.segment
    if log.cuts != cuts or log.guard.is_closed or log.failure is not None or segment not in view.segments[:-1]:
        return False
    if outcome.build is not None:
        segment.indexes.install(outcome.build, outcome.slots)
        segment.save_rebuilt()
    if outcome.aborted is not None and log.producers is not None:
        log.producers.take_index(view.segments, view.segments.index(segment), outcome.aborted)
    if outcome.must_build:
        segment.transactions.must_build = True
        log.mend_indexes()
    if outcome.must_build or outcome.aborted is not None:
        log.publish(view.segments, log.end_offset)  # readers ask only the indexes that had entries
    return True
