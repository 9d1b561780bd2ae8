"""How a member comes from what it owns to what it shall own, one heartbeat at a time (KIP-848).

The rules are those of Kafka's CurrentAssignmentBuilder. A member first gives up what it shall not keep, and says so;
only then it enters the target's epoch, with those new partitions that their owners have let go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from enum import IntEnum

from quorumlog.ids import Epoch
from quorumlog.records.coordinator.consumer_groups import ConsumerGroupCurrentMemberAssignmentValue
from quorumlog_broker.coordinator.groups.consumer.assignment import Partition, flat, to_assigned, with_epochs

PAUSED: Epoch = -2
"""The epoch of a static member that has left for a while: what it owns is kept for it."""


class MemberState(IntEnum):
    """The numbers of the record."""

    STABLE = 0
    UNREVOKED = 1  # it has to give up partitions
    UNRELEASED = 2  # it waits for partitions that others still own
    UNKNOWN = 127  # of software that is newer


_STATES = {int(state): state for state in MemberState}


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """What a member owns. assigned, revoking: each partition with the epoch in which the member got it (KIP-1251).

    revoking is not empty exactly if the state is UNREVOKED. Nobody else owns any partition of either.
    """

    epoch: Epoch = 0
    previous_epoch: Epoch = 0
    state: MemberState = MemberState.STABLE
    assigned: Mapping[Partition, Epoch] = field(default_factory=dict)
    revoking: Mapping[Partition, Epoch] = field(default_factory=dict)

    @classmethod
    def of(cls, value: ConsumerGroupCurrentMemberAssignmentValue | None) -> Current:
        """None: there is no record yet."""
        if value is None:
            return cls()
        return cls(
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=_STATES.get(value.state, MemberState.UNKNOWN),
            assigned=with_epochs(value.assigned_partitions, value.member_epoch),
            revoking=with_epochs(value.partitions_pending_revocation, value.member_epoch),
        )

    def to_value(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        return ConsumerGroupCurrentMemberAssignmentValue(
            self.epoch, self.previous_epoch, int(self.state), to_assigned(self.assigned), to_assigned(self.revoking)
        )


def owned_by(value: ConsumerGroupCurrentMemberAssignmentValue) -> set[Partition]:
    """Nobody else may have these."""
    return flat(value.assigned_partitions) | flat(value.partitions_pending_revocation)


class MustStartAnew(Exception):
    """The member's state cannot be told: it has to give up everything and join again."""


def reconcile(
    current: Current,
    *,
    target_epoch: Epoch,
    target: Set[Partition],
    is_subscribed: Callable[[Partition], bool] | None,
    owned: Set[Partition] | None,
    is_free: Callable[[Partition], bool],
) -> Current:
    """One step. The same object if there is nothing to do.

    target: of subscribed topics only. is_subscribed: None: the member's subscription is what it was. A topic that was
    deleted meanwhile stays with the member until the next target, which has it no more.
    owned: what the member says that it has; None: all that it had. is_free: nobody owns it, or this member alone.
    Raises MustStartAnew.
    """
    match current.state:
        case MemberState.STABLE if current.epoch == target_epoch:
            return current if is_subscribed is None else _without_unsubscribed(current, is_subscribed, owned)
        case MemberState.UNREVOKED if _hits(owned, current.revoking):
            return current if is_subscribed is None else _without_unsubscribed(current, is_subscribed, owned)
        case MemberState.UNKNOWN if owned is None or owned:
            raise MustStartAnew
    return _next(current, target_epoch, target, owned, is_free)


def _hits(owned: Set[Partition] | None, revoking: Mapping[Partition, Epoch]) -> bool:
    return bool(revoking) if owned is None else not owned.isdisjoint(revoking)


def _without_unsubscribed(
    current: Current, is_subscribed: Callable[[Partition], bool], owned: Set[Partition] | None
) -> Current:
    """The subscription has shrunk, and the next target is not there yet, or the member still gives up partitions."""
    revoke = {one: epoch for one, epoch in current.assigned.items() if not is_subscribed(one)}
    if not revoke:
        return current
    keep = {one: epoch for one, epoch in current.assigned.items() if one not in revoke}
    revoking = {**current.revoking, **revoke}
    if _hits(owned, revoking):
        return _changed(current, current.epoch, MemberState.UNREVOKED, keep, revoking)
    return _changed(current, current.epoch, current.state, keep, current.revoking)


def _next(
    current: Current,
    target_epoch: Epoch,
    target: Set[Partition],
    owned: Set[Partition] | None,
    is_free: Callable[[Partition], bool],
) -> Current:
    keep = {one: epoch for one, epoch in current.assigned.items() if one in target}
    revoke = {one: epoch for one, epoch in current.assigned.items() if one not in target}
    if _hits(owned, revoke):
        return _changed(current, current.epoch, MemberState.UNREVOKED, keep, revoke)
    want = target - keep.keys()
    free = {one for one in want if is_free(one)}
    state = MemberState.STABLE if len(free) == len(want) else MemberState.UNRELEASED
    return _changed(current, target_epoch, state, {**keep, **dict.fromkeys(free, target_epoch)}, {})


def _changed(
    current: Current,
    epoch: Epoch,
    state: MemberState,
    assigned: Mapping[Partition, Epoch],
    revoking: Mapping[Partition, Epoch],
) -> Current:
    """The previous epoch is the one that the member may still be in, because its answer may be lost."""
    if (epoch, state, assigned, revoking) == (current.epoch, current.state, current.assigned, current.revoking):
        return current
    return Current(epoch=epoch, previous_epoch=current.epoch, state=state, assigned=assigned, revoking=revoking)
