"""What clients of transactions write down, in the order in which it ended.

Times are ns of one clock that does not jump. A value is an int that is sent once: `value_of(transaction, index)`. So a
checker knows who has sent it without a table. Transactions are numbered from 0, without large gaps; each has its number
before it begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

VALUES_MAX = 8  # of one transaction
NOT_IN_ONE = -1  # the transaction of a poll outside of transactions
NO_OFFSET = -1
OPEN_NS = 1 << 62


class Outcome(IntEnum):
    """UNKNOWN: it may have been committed, or be committed later."""

    UNKNOWN = 0
    COMMITTED = 1
    ABORTED = 2


class Sent(NamedTuple):
    """offset: as acknowledged, NO_OFFSET if it was not."""

    partition: int
    value: int
    offset: int = NO_OFFSET


class Consumed(NamedTuple):
    """Input that a transaction has taken: records start..end of a unit; it commits `end` for its group.

    unit: one group's offset of one partition.
    """

    unit: int
    start: int
    end: int


class Transaction(NamedTuple):
    """ending_ns: when its end was asked for the first time, OPEN_NS if never. ended_ns: of the answer, or OPEN_NS.

    session: index of the `Session` that it belongs to; -1 if none was noted.
    """

    number: int
    client: int
    outcome: Outcome
    ending_ns: int
    ended_ns: int
    sent: Sequence[Sent] = ()
    consumed: Sequence[Consumed] = ()
    session: int = -1


class Poll(NamedTuple):
    """A read_committed read of one partition: from position `start` (inclusive) to `next` (exclusive).

    final: one of the reads of the whole log after the end of everything.
    """

    partition: int
    start: int
    next: int
    offsets: Sequence[int]
    values: Sequence[int]
    ended_ns: int
    transaction: int = NOT_IN_ONE
    final: bool = False


class OffsetShown(NamedTuple):
    """An OffsetFetch that requires stable offsets; offset: NO_OFFSET if none is committed."""

    unit: int
    offset: int
    invoked_ns: int
    ended_ns: int
    final: bool = False


class Session(NamedTuple):
    """An InitProducerId that was answered."""

    transactional_id: str
    producer_id: int
    epoch: int
    invoked_ns: int
    ended_ns: int


def value_of(transaction: int, index: int) -> int:
    assert 0 <= index < VALUES_MAX
    return transaction * VALUES_MAX + index


def writer_of(value: int) -> int:
    return value // VALUES_MAX
