"""Guards of transactional batches that would begin a transaction here (KIP-890, part 1).

A batch that is late, from a transaction which has ended meanwhile, would begin another one that nobody ends. So a
leader asks the coordinator whether the transaction is under way, and takes a guard before it asks. The batch may be
appended only while that guard holds: a marker that comes in between takes it away, and so does the first batch, after
which the open transaction itself is the proof.

Pure. Of one leadership; used by its loop only.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_GUARDS = 10_000  # of one partition; the oldest one is dropped, and its batch has to be verified again


class Guard:
    """Told apart by identity only."""

    __slots__ = ()


@dataclass(slots=True)
class _Verification:
    """lowest_sequence: of the batches that wait for the coordinator's answer. The first one appended has it."""

    guard: Guard
    producer_epoch: int
    lowest_sequence: int
    epoch_per_transaction: bool
    since_ms: int


class Verifications:
    """Of the producers that have no transaction open on a partition."""

    def __init__(self) -> None:
        self._by_producer: dict[int, _Verification] = {}  # the oldest first

    def __len__(self) -> int:
        return len(self._by_producer)

    def begin(
        self, producer_id: int, producer_epoch: int, sequence: int, *, epoch_per_transaction: bool = False, now_ms: int
    ) -> Guard:
        """The guard for a batch. Batches of a producer that are verified at the same time share it.

        epoch_per_transaction: as transaction.version 2 has it (KIP-890, part 2).
        """
        known = self._by_producer.get(producer_id)
        if known is None:
            if len(self._by_producer) >= MAX_GUARDS:
                del self._by_producer[next(iter(self._by_producer))]
            known = _Verification(Guard(), producer_epoch, sequence, epoch_per_transaction, now_ms)
            self._by_producer[producer_id] = known
        elif producer_epoch > known.producer_epoch:
            known.producer_epoch, known.lowest_sequence = producer_epoch, sequence
        elif producer_epoch == known.producer_epoch:
            known.lowest_sequence = min(known.lowest_sequence, sequence)
        return known.guard

    def holds(self, producer_id: int, guard: Guard | None) -> bool:
        known = self._by_producer.get(producer_id)
        return known is not None and known.guard is guard

    def lowest_sequence(self, producer_id: int) -> int | None:
        """What the first batch of the producer has to begin with at most; None: nothing is known."""
        known = self._by_producer.get(producer_id)
        return None if known is None else known.lowest_sequence

    def begins_at_0(self, producer_id: int) -> bool:
        """An unknown producer that has an epoch for each transaction begins with sequence 0."""
        known = self._by_producer.get(producer_id)
        return known is not None and known.epoch_per_transaction

    def end(self, producer_id: int) -> None:
        """A transactional batch of the producer was appended."""
        self._by_producer.pop(producer_id, None)

    def end_by_marker(self, producer_id: int, marker_epoch: int) -> None:
        """A marker was appended.

        Where each transaction has its epoch, a marker carries the next one. So a guard of the marker's own epoch is of
        the transaction that follows, and a marker that its coordinator sends twice does not end it.
        """
        known = self._by_producer.get(producer_id)
        if known is not None and not (known.epoch_per_transaction and known.producer_epoch >= marker_epoch):
            del self._by_producer[producer_id]

    def expire(self, now_ms: int, max_age_ms: int) -> None:
        for producer_id, known in list(self._by_producer.items()):
            if now_ms - known.since_ms >= max_age_ms:
                del self._by_producer[producer_id]

    def clear(self) -> None:
        self._by_producer.clear()
