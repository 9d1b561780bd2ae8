"""Both indexes of a segment made again from its log file, some batches at a time.

The headers of a segment of a gigabyte take a second to read. A reader thread that did it in one go would make every
other reader of the directory wait. So whoever runs look-ups in shared threads wraps them in `leaving_rebuilds`: a
look-up that finds an index wrong then raises RebuildNeeded, the caller has `IndexPair.rebuild_step` run again and
again, with other work in between, and repeats the look-up. Without the wrapper, for example in the log's writer or
while a log is opened, the look-up builds the indexes at once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from quorumlog.ids import Offset
from quorumlog_storage.segment.offset_index import MAX_POSITION, MAX_RELATIVE_OFFSET, OffsetIndex
from quorumlog_storage.segment.segment_file import IndexedBatch
from quorumlog_storage.segment.time_entries import NO_TIME, TimeEntries, TimeEntry
from quorumlog_storage.segment.time_index import largest_of

if TYPE_CHECKING:
    from quorumlog_storage.segment.index_pair import IndexPair

SLICE_BATCHES = 500  # looked at in one step: some 3 ms

T = TypeVar("T")

_leaves_rebuilds: ContextVar[bool] = ContextVar("look-ups leave rebuilds to others", default=False)


class RebuildNeeded(Exception):
    """A look-up found an index that is wrong. `rebuild_step` until it says so, then repeat the look-up."""

    def __init__(self, path: str, indexes: IndexPair) -> None:
        super().__init__(f"{path} does not agree with its log; it is built again, repeat the look-up after that")
        self.indexes = indexes


def leaving_rebuilds(look_up: Callable[[], T]) -> T:
    """What `look_up` finds. Raises RebuildNeeded where it would have to read a whole segment first."""
    token = _leaves_rebuilds.set(True)
    try:
        return look_up()
    finally:
        _leaves_rebuilds.reset(token)


def rebuilds_are_left() -> bool:
    """Called in a look-up: its caller has wrapped it in `leaving_rebuilds`."""
    return _leaves_rebuilds.get()


class ImpossibleOffset(Exception):
    """No index holds these batches: the log is damaged where no checksum covers it."""


class IndexBuild:
    """The two indexes of the batches from the first one on; `add` each in order.

    largest: the largest timestamp so far, and the first batch that has it. end: of the batches so far, in bytes.
    """

    def __init__(self, base_offset: Offset, interval_bytes: int) -> None:
        self.offsets, self.times, self.largest = OffsetIndex(), TimeEntries(), NO_TIME
        self.end = 0
        self._last = -1  # offset of the last record so far, relative
        self._base_offset, self._interval = base_offset, interval_bytes

    def add(self, batch: IndexedBatch) -> TimeEntry:
        """Returns `largest`. Raises ImpossibleOffset where a batch does not follow the one before it."""
        last = batch.last_offset - self._base_offset
        if not self._last < last <= MAX_RELATIVE_OFFSET or self.end > MAX_POSITION:
            raise ImpossibleOffset(
                f"a batch that ends at offset {batch.last_offset} cannot follow one that ends at "
                f"offset {self._base_offset + self._last}"
            )
        self._last = last
        one, count = (batch,), len(self.offsets)
        self.offsets.note(one, self.end, self._base_offset, self._interval)
        self.largest = largest_of(one, self._base_offset, self.largest)
        if len(self.offsets) > count:
            self.times.append_if_later(self.largest)
        self.end += batch.size
        return self.largest
