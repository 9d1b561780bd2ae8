"""What holds of a group of the consumer protocol after each of its records (numbers as in the design).

- owner-map (11): each partition has one owner, and the map of owners says what the members' assignments say.
- group-epochs (13): no member is ahead of the target assignment, which is not ahead of the group.
- settled: what is counted of the members is what a look at all of them finds.
- unrevoked (14): a member is asked to give partitions up exactly as long as there are some.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from quorumlog_broker.coordinator.groups.consumer.assignment import Partition
from quorumlog_broker.coordinator.groups.consumer.reconcile import PAUSED, MemberState
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup

Broken = tuple[str, str]  # the invariant, and the evidence


def broken_invariants(group: ConsumerGroup) -> Iterator[Broken]:
    yield from _owners(group)
    yield from _counted(group)
    if not group.assignment_epoch <= group.epoch:
        yield "group-epochs", f"target assignment {group.assignment_epoch}, group {group.epoch}"
    for member_id in group.current:
        current = group.current_of(member_id)
        what = f"{member_id} in epoch {current.epoch}, target assignment {group.assignment_epoch}"
        if current.epoch > group.assignment_epoch:
            yield "group-epochs", what
        is_asked = current.state is MemberState.UNREVOKED
        if current.epoch != PAUSED and is_asked != bool(current.revoking):
            yield "unrevoked", f"{what}: {current.state.name}, to be given up {sorted(current.revoking)}"


def _counted(group: ConsumerGroup) -> Iterator[Broken]:
    """What is counted as records come is what a look at all members finds."""
    of_epoch = (MemberState.STABLE, group.assignment_epoch)
    found = [group.current_of(member_id) for member_id in group.members if member_id in group.current]
    settled = sum((one.state, one.epoch) == of_epoch for one in found)
    if group.is_settled != (settled == len(group.members)):
        yield "settled", f"{settled} of {len(group.members)} members are, and the group says {group.is_settled}"
    wishes = Counter(member.server_assignor for member in group.members.values() if member.server_assignor)
    if wishes != group.assignors:
        yield "settled", f"members ask for {wishes}, and the group says {group.assignors}"


def _owners(group: ConsumerGroup) -> Iterator[Broken]:
    owners: dict[Partition, str] = {}
    for member_id in group.current:
        for partition in sorted(group.owned(member_id)):
            other = owners.setdefault(partition, member_id)
            if other != member_id:
                yield "owner-map", f"{other} and {member_id} own {partition}"
    if owners != group.owners:
        yield "owner-map", f"{group.owners}, and the assignments say {owners}"


def durable_state(group: ConsumerGroup) -> dict[str, Any]:
    """What records alone decide, in any order of the tables."""
    return {
        "metadata": group.metadata,
        "target metadata": group.target_metadata,
        "members": dict(group.members),
        "current": dict(group.current),
        "target": dict(group.target),
        "regexes": dict(group.regexes),
        "static": dict(group.static),
        "owners": dict(group.owners),
    }
