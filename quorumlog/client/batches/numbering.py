"""Sequence numbers of an idempotent producer, per partition, by which a leader recognizes a repeated batch. Pure.

Rules (Kafka's `TransactionManager` for producers without transactions, KIP-98, KIP-360), and why:
1. A batch gets its number when it is first sent and keeps it in every retry. The leader recognizes a retry by it.
2. Until a leader has accepted a batch of an epoch, only one batch is in flight. A leader that does not know the
   producer accepts any number, so a second batch could overtake a refused first batch, which would then be refused for
   good.
3. A numbered batch that ended without success leaves the numbers after it in doubt. Batches sent after it are retried
   in order until each outcome is known. New batches wait, and then begin a new epoch.
4. If the leader refuses the oldest batch in flight as out of order, none of the batches in flight is in the log: the
   batches before them are lost, or never arrived. When nothing is in flight any more, they get new numbers in a new
   epoch. A leader that has seen the new epoch refuses batches of the old one.

Each partition has its own epoch: brokers compare nothing across partitions, and no partition waits for another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

SEQUENCES = 1 << 31
MAX_PRODUCER_EPOCH = 2**15 - 1
MAX_IN_FLIGHT = 5  # a broker remembers this many batches of a producer


class Identity(NamedTuple):
    """A producer's id and epoch, assigned by the cluster."""

    producer_id: int
    epoch: int


class Number(NamedTuple):
    """A batch's producer id, epoch and first sequence number, as in its header."""

    producer_id: int
    epoch: int
    base_sequence: int

    @property
    def identity(self) -> Identity:
        return Identity(self.producer_id, self.epoch)


@dataclass(slots=True)
class Numbering:
    """The numbering of one partition.

    proven: a leader has accepted a batch of this identity (rule 2). in_doubt: rule 3. lost: rule 4.
    """

    identity: Identity
    next_sequence: int = 0
    proven: bool = False
    in_doubt: bool = False
    lost: bool = False

    def next(self, count: int) -> Number:
        """The number of a batch of `count` records that is sent now."""
        assert not self.in_doubt and not self.lost and count > 0
        number = Number(*self.identity, self.next_sequence)
        self.next_sequence = (self.next_sequence + count) % SEQUENCES
        return number

    def delivered(self, number: Number) -> None:
        self.proven = self.proven or number.identity == self.identity

    def new_epoch(self) -> bool:
        """Begin the next epoch at sequence 0. False if the epochs are used up: a new producer id is needed."""
        if self.identity.epoch >= MAX_PRODUCER_EPOCH:
            return False
        self.identity = Identity(self.identity.producer_id, self.identity.epoch + 1)
        self.next_sequence, self.proven, self.in_doubt, self.lost = 0, False, False, False
        return True
