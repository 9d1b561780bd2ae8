"""What the timers of groups are about. Dataclasses and not tuples: equal tuples of two kinds would be one timer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionEnds:
    """A timer: nothing was heard of a member, or of an id that was given out."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class DelayEnds:
    """A timer: the delay of a group's first rebalance."""

    group_id: str


@dataclass(frozen=True, slots=True)
class JoinEnds:
    """A timer: members that have not joined again lose their place."""

    group_id: str


@dataclass(frozen=True, slots=True)
class SyncEnds:
    """A timer: members that have not sent SyncGroup lose their place."""

    group_id: str


@dataclass(frozen=True, slots=True)
class ConsumerSessionEnds:
    """A timer: nothing was heard of a member of a consumer group."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class RevocationEnds:
    """A timer: a member of a consumer group has not given up what it has to."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class AssignmentDue:
    """A timer: the next target assignment of a consumer group may be computed."""

    group_id: str


@dataclass(frozen=True, slots=True)
class MemberJoinEnds:
    """A timer: a member of a consumer group that speaks the classic protocol has not joined again."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class MemberSyncEnds:
    """A timer: such a member has not fetched its assignment by SyncGroup."""

    group_id: str
    member_id: str


ClassicTimer = SessionEnds | DelayEnds | JoinEnds | SyncEnds
ConsumerTimer = ConsumerSessionEnds | RevocationEnds | AssignmentDue | MemberJoinEnds | MemberSyncEnds
GroupTimer = ClassicTimer | ConsumerTimer
