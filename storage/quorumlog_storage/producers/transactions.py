"""The transactions of one log: which are open, and which have ended where replicas may not know it yet.

Rules (Kafka's `ProducerStateManager`):

1. A transaction begins with the first transactional batch of a producer that has none open here. It ends with the
   producer's next marker. A marker of a producer without an open transaction ends nothing.
2. Everything from the first offset of an open transaction on is unstable: nobody knows yet whether it counts.
3. What has ended stays unstable until the high watermark has passed its marker. Otherwise a reader could be told of a
   decision that a failover takes back for a while.

Pure. The log's writer changes it; `unstable` is immutable and may be read by any thread.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog.records.format.batch import MAX_OFFSET

NEVER: Offset = MAX_OFFSET
MAX_ENDED = 1_000  # ended transactions that are kept apart while the high watermark stands still


class EndedTransaction(NamedTuple):
    """last_offset: of the marker. last_stable_offset: where the earliest transaction that was open then begins."""

    producer_id: int
    first_offset: Offset
    last_offset: Offset
    last_stable_offset: Offset
    committed: bool


class Unstable(NamedTuple):
    """What a read_committed consumer may not see yet. Immutable.

    first_open: of the earliest open transaction; NEVER if none is open. ended: (offset of the marker, first offset) of
    ended ones that may not be replicated; both columns rise.
    """

    first_open: Offset = NEVER
    ended: tuple[tuple[Offset, Offset], ...] = ()

    def first(self, high_watermark: Offset) -> Offset:
        """The first unstable offset; NEVER if there is none."""
        ended = self.ended
        if not ended:
            return self.first_open
        waiting = bisect_left(ended, (high_watermark,))  # from here on the markers lie at or above it
        return min(self.first_open, ended[waiting][1]) if waiting < len(ended) else self.first_open


STABLE = Unstable()


class Transactions:
    """Changed by the log's writer only."""

    def __init__(self, ongoing: Iterable[tuple[Offset, int]] = ()) -> None:
        """ongoing: (first offset, producer id) of the open ones, in any order."""
        self._ongoing: OrderedDict[Offset, int] = OrderedDict(sorted(ongoing))
        self.unstable = STABLE
        self._publish(())

    @property
    def ongoing(self) -> dict[Offset, int]:
        """A copy: the producer by the first offset of its open transaction, which rises."""
        return dict(self._ongoing)

    @property
    def oldest(self) -> int | None:
        """The producer of the earliest open transaction; for any thread. None: none is open, or it changes just now."""
        try:
            return next(iter(self._ongoing.values()), None)
        except RuntimeError:
            return None

    def begin(self, producer_id: int, first_offset: Offset) -> None:
        self._ongoing[first_offset] = producer_id
        if self.unstable.first_open == NEVER:
            self._publish(self.unstable.ended)

    def end(
        self, producer_id: int, first_offset: Offset, marker_offset: Offset, *, committed: bool
    ) -> EndedTransaction:
        """The marker at `marker_offset` has ended the producer's open transaction."""
        self._ongoing.pop(first_offset, None)
        kept = list(self.unstable.ended)
        while kept and kept[-1][1] >= first_offset:  # it becomes replicated no later, and hides nothing more
            kept.pop()
        if len(kept) >= MAX_ENDED:
            first_offset_kept = kept.pop()[1]  # two are told as one, which is safe: they become stable together
            kept.append((marker_offset, first_offset_kept))
        else:
            kept.append((marker_offset, first_offset))
        self._publish(tuple(kept))
        stable = min(self.unstable.first_open, marker_offset + 1)
        return EndedTransaction(producer_id, first_offset, marker_offset, stable, committed)

    def forget_replicated(self, high_watermark: Offset) -> None:
        """Markers below `high_watermark` are on all in-sync replicas."""
        ended = self.unstable.ended
        if ended and ended[0][0] < high_watermark:
            self._publish(ended[bisect_left(ended, (high_watermark,)) :])

    def keep_ended(self, before: Unstable, end_offset: Offset) -> None:
        """Take over what had ended in the state that this one replaces, as far as the log still holds the markers."""
        ended = {marker: first for marker, first in before.ended if marker < end_offset}
        ended.update(self.unstable.ended)
        kept: list[tuple[Offset, Offset]] = []
        for marker, first in sorted(ended.items()):
            while kept and kept[-1][1] >= first:
                kept.pop()
            kept.append((marker, first))
        self._publish(tuple(kept))

    def _publish(self, ended: tuple[tuple[Offset, Offset], ...]) -> None:
        first_open = next(iter(self._ongoing), NEVER)
        self.unstable = Unstable(first_open, ended) if ended or first_open != NEVER else STABLE
