"""What readers of a log see: one immutable view of it, and how a range of offsets is found and read in it.

The writer publishes a new view after each change has happened. A reader takes one and works with that, so it sees
records only after their write has returned, whatever the writer does meanwhile.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog_storage.producers.transactions import STABLE, Unstable
from quorumlog_storage.segment.segment import Segment
from quorumlog_storage.segment.transaction_index import AbortedTransaction, TransactionIndexFile


class OffsetOutOfRange(Exception):
    """A read from an offset that the log does not hold. The log is [start, end)."""

    def __init__(self, path: str, offset: Offset, start: Offset, end: Offset) -> None:
        super().__init__(
            f"{path} holds offsets {start} to {end} (exclusive), not {offset}; "
            "start again from the first or the last of them"
        )
        self.offset, self.start, self.end = offset, start, end


class LogPart(NamedTuple):
    """Whole batches. is_cut: more of them lie below the reader's bound, here or in the next segment.

    aborted: transactions that these batches belong to and that did not happen, where the reader has asked for them.
    """

    data: bytes
    is_cut: bool
    aborted: tuple[AbortedTransaction, ...] = ()


NOTHING = LogPart(b"", is_cut=False)


class LogView(NamedTuple):
    """Published state. At least one segment, in order of base offset; each ends where the next one begins.

    bases: of the segments. last_size: bytes published of the last one. end_offset: exclusive.
    unstable: of the records before end_offset. aborted: the transaction indexes that have entries, by base offset.
    """

    path: str
    segments: tuple[Segment, ...]
    bases: tuple[Offset, ...]
    last_size: int
    start_offset: Offset
    end_offset: Offset
    unstable: Unstable = STABLE
    aborted: tuple[TransactionIndexFile, ...] = ()

    def limit(self, number: int) -> int:
        """Published bytes of a segment."""
        return self.last_size if number == len(self.segments) - 1 else self.segments[number].size

    def number_for(self, offset: Offset) -> int:
        """Which segment an offset belongs to."""
        return max(0, bisect_right(self.bases, offset) - 1)

    def read(self, offset: Offset, max_bytes: int, upper_bound: Offset) -> LogPart:
        """See `Log.read_part`."""
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(self.path, offset, self.start_offset, self.end_offset)
        if offset >= upper_bound or offset >= self.end_offset:
            return NOTHING
        number = self.number_for(offset)
        segment = self.segments[number]
        start = segment.find(offset, self.limit(number))
        limit = self._limit_below(number, upper_bound)
        if start >= limit:
            return NOTHING
        end = segment.floor_boundary(start + max_bytes, limit)
        if end <= start:
            end = segment.batch_end(start, limit)
        in_next = number < len(self.segments) - 1 and upper_bound > self.bases[number + 1]
        return LogPart(segment.log.read(start, end - start), end < limit or in_next)

    def _limit_below(self, number: int, upper_bound: Offset) -> int:
        """The end, in a segment's bytes, of the batches that hold nothing at or after `upper_bound`."""
        limit = self.limit(number)
        is_last = number == len(self.segments) - 1
        end_offset = self.end_offset if is_last else self.bases[number + 1]
        return limit if upper_bound >= end_offset else self.segments[number].find(upper_bound, limit)


def view_of(
    path: str,
    segments: tuple[Segment, ...],
    start_offset: Offset,
    end_offset: Offset,
    unstable: Unstable = STABLE,
) -> LogView:
    """The view of everything that these segments hold now. unstable: as the producer state says."""
    bases = tuple(segment.base_offset for segment in segments)
    aborted = tuple(segment.transactions for segment in segments if segment.transactions.has_entries)
    return LogView(path, segments, bases, segments[-1].size, start_offset, end_offset, unstable, aborted)
