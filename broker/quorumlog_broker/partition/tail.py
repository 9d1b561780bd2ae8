"""The recently appended batches of each partition, in memory, so that reads near the end need no disk and no thread.

A batch is added only after its write returned. All partitions of a broker share one budget; the oldest batches are
dropped first, whichever partition they belong to. Whole frames are charged, because a view keeps alive the frame that
it arrived in; a chunk of less than a quarter of its frame is copied instead.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog.messages.buffer import Buffer
from quorumlog_storage.segment.batch import StoredBatch

COPY_BELOW_SHARE = 4  # a chunk smaller than its frame divided by this is copied
MAX_BATCHES_READ = 4_096  # by one fetch: each costs its time, whatever its size


class TailRead(NamedTuple):
    """Whole batches. is_cut: more batches lie below the reader's bound; a limit of the read kept them out."""

    parts: list[Buffer]
    size_bytes: int
    batches: int
    is_cut: bool


class TailCount(NamedTuple):
    """first_bytes: the size of the first batch; 0 if there is none."""

    size_bytes: int
    batches: int
    first_bytes: int


@dataclass(slots=True)
class _Chunk:
    """The batches of one append; they share a frame."""

    owner: Tail
    batches: tuple[StoredBatch, ...]
    charged_bytes: int
    dropped: bool = False


class TailBudget:
    """Keeps the charged bytes of all tails of a broker at or below `limit_bytes`."""

    def __init__(self, limit_bytes: int) -> None:
        assert limit_bytes >= 0
        self.limit_bytes = limit_bytes
        self._oldest_first: deque[_Chunk] = deque()
        self.charged_bytes = 0

    def charge(self, chunk: _Chunk) -> None:
        self._oldest_first.append(chunk)
        self.charged_bytes += chunk.charged_bytes
        while self.charged_bytes > self.limit_bytes:
            self._oldest_first[0].owner.drop_oldest(self._oldest_first[0])  # it calls `refund`

    def refund(self, chunk: _Chunk) -> None:
        assert not chunk.dropped
        chunk.dropped = True
        chunk.batches = ()
        self.charged_bytes -= chunk.charged_bytes
        while self._oldest_first and self._oldest_first[0].dropped:
            self._oldest_first.popleft()


class Tail:
    """Contiguous batches [start_offset, end_offset) of one partition; both are -1 if it is empty."""

    def __init__(self, budget: TailBudget) -> None:
        self._budget = budget
        self._chunks: deque[_Chunk] = deque()
        self._batches: list[StoredBatch] = []  # of all chunks, in order; the first `_gone` are dropped
        self._gone = 0

    @property
    def start_offset(self) -> Offset:
        return self._batches[self._gone].base_offset if self._gone < len(self._batches) else -1

    @property
    def end_offset(self) -> Offset:
        return self._batches[-1].next_offset if self._gone < len(self._batches) else -1

    def put(self, batches: Sequence[StoredBatch], frame_bytes: int) -> None:
        """Add batches that are in the log now. frame_bytes: size of the memory that their parts are views of.

        If they do not follow the last batch here, everything before them is dropped.
        """
        assert batches
        if self._chunks and self.end_offset != batches[0].base_offset:
            self.clear()
        size_bytes = sum([batch.size for batch in batches])
        if size_bytes * COPY_BELOW_SHARE < frame_bytes:
            batches = [_copied(batch) for batch in batches]
            frame_bytes = size_bytes
        chunk = _Chunk(self, tuple(batches), max(frame_bytes, size_bytes))
        self._chunks.append(chunk)
        self._batches.extend(batches)
        self._budget.charge(chunk)

    def read(
        self, offset: Offset, max_bytes: int, upper_bound: Offset, max_batches: int = MAX_BATCHES_READ
    ) -> TailRead | None:
        """Whole batches, from the one that contains `offset`; None if the tail does not contain it.

        upper_bound: exclusive; no record at or past it is returned. At least one batch is returned if one lies below
        upper_bound, even if it is larger than max_bytes; then as many as fit, and no more than max_batches (>= 1).
        """
        first = self._index_of(offset)
        if first is None:
            return None
        parts: list[Buffer] = []
        taken_bytes, index, is_cut = 0, first, False
        while index < len(self._batches):
            batch = self._batches[index]
            if batch.next_offset > upper_bound:
                break
            if parts and (taken_bytes + batch.size > max_bytes or index - first == max_batches):
                is_cut = True
                break
            parts.extend(batch.parts)
            taken_bytes += batch.size
            index += 1
        return TailRead(parts, taken_bytes, index - first, is_cut)

    def count(self, offset: Offset, upper_bound: Offset) -> TailCount | None:
        """How much `read` would return without its limits, counted without the batches' parts."""
        first = self._index_of(offset)
        if first is None:
            return None
        end = bisect_right(self._batches, upper_bound, lo=first, key=attrgetter("next_offset"))
        sizes = [batch.size for batch in self._batches[first:end]]
        return TailCount(sum(sizes), len(sizes), sizes[0] if sizes else 0)

    def batches_from(self, offset: Offset, count: int) -> list[StoredBatch]:
        """`count` batches from the one that contains `offset`, which the tail contains."""
        first = self._index_of(offset)
        assert first is not None
        return self._batches[first : first + count]

    def _index_of(self, offset: Offset) -> int | None:
        """Of the batch that contains `offset`; None if the tail does not contain it."""
        if self._gone == len(self._batches) or not self.start_offset <= offset < self.end_offset:
            return None
        return bisect_right(self._batches, offset, lo=self._gone, key=attrgetter("base_offset")) - 1

    def clear(self) -> None:
        """Drop everything: the log was truncated, or this replica does not lead any more."""
        for chunk in self._chunks:
            self._budget.refund(chunk)
        self._chunks.clear()
        self._batches.clear()
        self._gone = 0

    def drop_before(self, offset: Offset) -> None:
        """Drop every append that began before `offset`: compaction is about to change the log up to there.

        The transaction indexes will not name what it removes, so aborted records would be taken for committed ones.
        """
        while self._chunks and self._chunks[0].batches[0].base_offset < offset:
            self.drop_oldest(self._chunks[0])

    def drop_oldest(self, chunk: _Chunk) -> None:
        assert self._chunks[0] is chunk, "a tail drops its oldest chunk first"
        self._chunks.popleft()
        count = len(chunk.batches)
        self._budget.refund(chunk)
        self._gone += count
        if self._gone * 2 > len(self._batches):  # amortised: each batch is moved at most once on average
            del self._batches[: self._gone]
            self._gone = 0
        else:
            self._batches[self._gone - count : self._gone] = [_DROPPED] * count  # frees the memory


_DROPPED = StoredBatch((), 0, -1, -1, -1, -1)


def frame_bytes(buffer: Buffer) -> int:
    """Size of the memory that `buffer` keeps alive."""
    if isinstance(buffer, memoryview):
        return max(len(buffer), len(buffer.obj)) if isinstance(buffer.obj, bytes | bytearray) else len(buffer)
    return len(buffer)


def _copied(batch: StoredBatch) -> StoredBatch:
    return batch._replace(parts=(b"".join(batch.parts),))
