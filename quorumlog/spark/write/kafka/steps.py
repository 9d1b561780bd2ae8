"""What the core asks its shell to do, and the answers. Pure.

The core is a generator: it yields a step and is sent the answer. The shell carries out one step after the other, so a
process may die between any two of them, and a test counts them.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from quorumlog.errors import ErrorCode
from quorumlog.spark.write.kafka.decisions import Child, Decision

T = TypeVar("T")


class Verdict(Enum):
    """What an answer to EndTxn means."""

    ENDED = "ended"
    AGAIN = "again"
    UNCLEAR = "the log tells"


class Fate(Enum):
    """Of a transaction, as its markers tell. UNKNOWN: they are gone, or the topic is; that never changes."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"
    UNKNOWN = "unknown"


def verdict_of(code: ErrorCode) -> Verdict:
    """Without an error it has ended as asked. What others say differs by version and by expiry."""
    if code is ErrorCode.NONE:
        return Verdict.ENDED
    if code is ErrorCode.CONCURRENT_TRANSACTIONS or code.retriable:
        return Verdict.AGAIN
    return Verdict.UNCLEAR


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """As the coordinator tells it. Times in ms, of the start since 1970; -1: none."""

    state: str
    producer_id: int
    producer_epoch: int
    started_at_ms: int
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class TakeOver:
    """InitProducerId of the group's driver: what earlier drivers have open aborts, and they write nothing more.
    Answer: None. Raises RunOver."""

    group: str


@dataclass(frozen=True, slots=True)
class Read:
    """The group's last decision that was committed before this step. Answer: Decision | None. Raises DecisionsRefused,
    also for a topic that is not to be trusted.

    patient: wait for open transactions, which may hide it. Without that the answer may be an earlier decision: a driver
    that died in the middle of its write would keep every task waiting until its time is over.
    """

    group: str
    patient: bool


@dataclass(frozen=True, slots=True)
class Write:
    """Begin a transaction of the driver and write the record; None: a tombstone, which forgets the group.

    Answer: None. Raises RunOver if another driver has taken over; after any other error the transaction can be dropped.
    """

    group: str
    decision: Decision | None


@dataclass(frozen=True, slots=True)
class Commit:
    """That transaction. Answer: None. Raises RunOver also if it may be committed, or not."""


@dataclass(frozen=True, slots=True)
class Drop:
    """That transaction. Answer: None."""


@dataclass(frozen=True, slots=True)
class Describe:
    """Answer: by id, Described; those that no coordinator knows are absent."""

    transactional_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class End:
    """EndTxn of each, once. Answer: by id, Verdict."""

    children: tuple[Child, ...]
    commit: bool


@dataclass(frozen=True, slots=True)
class Fates:
    """What the logs tell. Answer: by id, Fate."""

    children: tuple[Child, ...]


@dataclass(frozen=True, slots=True)
class ListOpen:
    """Answer: transactional ids with this prefix whose transaction is open."""

    prefix: str


@dataclass(frozen=True, slots=True)
class Fence:
    """InitProducerId of each, so that its transaction aborts. Best effort: what stays open ends by its time-out.
    Answer: None."""

    transactional_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Now:
    """Answer: ms since 1970."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Answer: None."""

    ms: int


Step = TakeOver | Read | Write | Commit | Drop | Describe | End | Fates | ListOpen | Fence | Now | Wait
Steps = Generator[Step, Any, T]
