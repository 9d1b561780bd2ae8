"""Sequences of an idempotent producer's batches, per partition, so that a leader knows a repeated batch. Pure.

Rules (Kafka's `TransactionManager` for producers without transactions, KIP-98, KIP-360), and why:

1. A batch gets its number when it is first sent and keeps it in every try: that is what a repetition is known by.
2. Until a leader has taken a batch of an epoch, one batch goes at a time: a leader that knows nothing of a producer
   takes any number, so a second batch could overtake a first that was refused, and lock it out for good.
3. A numbered batch that ended without success leaves the numbers behind it in doubt. What was sent after it is tried
   on, in order, until each is known to be there or not; new batches wait, and begin a new epoch.
4. A refusal as out of order of the oldest batch that is under way proves that none of them is in the log: whatever was
   before them is lost, or was never there. When nothing is under way any more they get new numbers in a new epoch.
   A leader that has seen the new epoch takes nothing of the old one.

An epoch is of one partition: brokers compare nothing else, and partitions need not wait for each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

SEQUENCES = 1 << 31
MAX_PRODUCER_EPOCH = 2**15 - 1
MAX_IN_FLIGHT = 5  # as many as a broker remembers


class Identity(NamedTuple):
    """Of a producer, given by the cluster."""

    producer_id: int
    epoch: int


class Number(NamedTuple):
    """Of a batch, as its header has it."""

    producer_id: int
    epoch: int
    base_sequence: int

    @property
    def identity(self) -> Identity:
        return Identity(self.producer_id, self.epoch)


@dataclass(slots=True)
class Numbering:
    """Of one partition. proven: a leader has taken a batch of this identity. in_doubt: rule 3. lost: rule 4."""

    identity: Identity
    next_sequence: int = 0
    proven: bool = False
    in_doubt: bool = False
    lost: bool = False

    def next(self, count: int) -> Number:
        """For a batch of `count` records that goes now."""
        assert not self.in_doubt and not self.lost and count > 0
        number = Number(*self.identity, self.next_sequence)
        self.next_sequence = (self.next_sequence + count) % SEQUENCES
        return number

    def delivered(self, number: Number) -> None:
        self.proven = self.proven or number.identity == self.identity

    def new_epoch(self) -> bool:
        """Begin again at 0. False where there is no epoch left: another producer id is needed."""
        if self.identity.epoch >= MAX_PRODUCER_EPOCH:
            return False
        self.identity = Identity(self.identity.producer_id, self.identity.epoch + 1)
        self.next_sequence, self.proven, self.in_doubt, self.lost = 0, False, False, False
        return True
