"""What drivers and tasks of joint transactions write down, and what the log of their coordinator says.

Times are ns of one clock that does not jump. A record's value is `group/sequence/token/n`, and is sent by one attempt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

NO_OFFSET = -1
OPEN_NS = 1 << 62


def value_of(group: str, sequence: int, token: str, number: int) -> str:
    return f"{group}/{sequence}/{token}/{number}"


@dataclass(slots=True)
class Row:
    """A record of an attempt. offset: as acknowledged; NO_OFFSET if it was not, or not told."""

    partition: int
    value: str
    acked: bool = False
    offset: int = NO_OFFSET


@dataclass(slots=True)
class Attempt:
    """One call of `write`. token: drawn for it alone. rows: that it has sent, or tried to send."""

    group: str
    sequence: int
    run: str
    location: str
    token: str
    rows: list[Row] = field(default_factory=list)


class Begun(NamedTuple):
    """An answer of BeginJoint. child: its id, producer id and epoch; None: the sequence is decided."""

    group: str
    sequence: int
    location: str
    token: str
    child: tuple[str, int, int] | None
    invoked_ns: int


@dataclass(slots=True)
class Commit:
    """What one CommitJoint asks for, however often it is sent. tokens: of the children. rows: its only fact.

    acked_ns: of the first answer without an error; OPEN_NS: none has come.
    """

    group: str
    sequence: int
    run: str
    location: str
    tokens: frozenset[str]
    rows: int
    acked_ns: int = OPEN_NS


class Abort(NamedTuple):
    """What one AbortJoint asks for, however often it is sent. run, token: empty: of any."""

    group: str
    sequence: int
    location: str
    run: str = ""
    token: str = ""


class AbortAnswer(NamedTuple):
    """Without an error."""

    abort: Abort
    decided: bool
    invoked_ns: int
    answered_ns: int = OPEN_NS


class Missing(NamedTuple):
    """DECISION_MISSING was told."""

    group: str
    sequence: int
    invoked_ns: int


class Poll(NamedTuple):
    """A read of committed records: all of start..next (exclusive), with what it showed."""

    partition: int
    start: int
    next: int
    offsets: Sequence[int]
    values: Sequence[str]
    final: bool = False


class Decided(NamedTuple):
    """A decision, as the log has it. tokens: of the children that commit."""

    group: str
    sequence: int
    run: str
    location: str
    rows: int
    tokens: frozenset[str]


@dataclass(frozen=True, slots=True)
class ChildRecord:
    """A record of a child's id. status: Kafka's number. cause: why it aborts."""

    transactional_id: str
    group: str
    slot: int
    token: str
    run: str
    sequence: int
    location: str
    producer_id: int
    epoch: int
    status: int
    cause: int = 0


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """children: epochs by slot. kind: 0: a stream."""

    group: str
    kind: int
    location: str
    run: str
    sequence: int
    facts: Mapping[str, int]
    children: Mapping[int, int]
