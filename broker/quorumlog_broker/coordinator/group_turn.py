"""The turn of the core of a partition of `__consumer_offsets`, and what the timers of groups are about.

Each kind of timer has its name in it: equal tuples of two kinds would be one timer.
"""

from __future__ import annotations

from typing import NamedTuple

from quorumlog_broker.coordinator.turn import MAX_RECORD_BYTES, Answer, Call, Producer, Write
from quorumlog_broker.coordinator.turn import Turn as CoordinatorTurn

__all__ = ["Answer", "Call", "GROUP_UNITS", "MAX_RECORD_BYTES", "Producer", "Turn", "Write"]


class SessionEnds(NamedTuple):
    """A timer: nothing was heard of a member, or of an id that was given out."""

    group_id: str
    member_id: str
    kind: str = "session ends"


class DelayEnds(NamedTuple):
    """A timer: the delay of a group's first rebalance."""

    group_id: str
    kind: str = "delay ends"


class JoinEnds(NamedTuple):
    """A timer: members that have not joined again lose their place."""

    group_id: str
    kind: str = "join ends"


class SyncEnds(NamedTuple):
    """A timer: members that have not sent SyncGroup lose their place."""

    group_id: str
    kind: str = "sync ends"


class ConsumerSessionEnds(NamedTuple):
    """A timer: nothing was heard of a member of a consumer group."""

    group_id: str
    member_id: str
    kind: str = "consumer session ends"


class RevocationEnds(NamedTuple):
    """A timer: a member of a consumer group has not given up what it has to."""

    group_id: str
    member_id: str
    kind: str = "revocation ends"


class AssignmentDue(NamedTuple):
    """A timer: the next target assignment of a consumer group may be computed."""

    group_id: str
    kind: str = "assignment due"


class MemberJoinEnds(NamedTuple):
    """A timer: a member of a consumer group that speaks the classic protocol has not joined again."""

    group_id: str
    member_id: str
    kind: str = "member join ends"


class MemberSyncEnds(NamedTuple):
    """A timer: such a member has not fetched its assignment by SyncGroup."""

    group_id: str
    member_id: str
    kind: str = "member sync ends"


ClassicTimer = SessionEnds | DelayEnds | JoinEnds | SyncEnds
ConsumerTimer = ConsumerSessionEnds | RevocationEnds | AssignmentDue | MemberJoinEnds | MemberSyncEnds
GroupTimer = ClassicTimer | ConsumerTimer


Turn = CoordinatorTurn[GroupTimer]

GROUP_UNITS = 8  # of a slice: what a group takes beside its offsets
