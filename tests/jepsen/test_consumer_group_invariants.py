"""The invariants of a consumer group: a group that keeps them, and one that breaks each."""

from __future__ import annotations

import pytest

from jepsen.sim.invariants.coordinators.consumer_groups import broken_invariants
from quorumlog.records.coordinator.consumer_groups import (
    AssignedPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from quorumlog_broker.coordinator.groups.consumer.reconcile import MemberState
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup

TOPIC = bytes(range(16))


def group(epoch: int = 3, target_epoch: int = 3) -> ConsumerGroup:
    found = ConsumerGroup("g")
    found.replay(ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(epoch))
    found.replay(
        ConsumerGroupTargetAssignmentMetadataKey("g"), ConsumerGroupTargetAssignmentMetadataValue(target_epoch, 0)
    )
    return found


def owns(
    found: ConsumerGroup, member: str, *partitions: int, epoch: int = 3, state: int = 0, revoking: tuple[int, ...] = ()
) -> None:
    def of(numbers: tuple[int, ...]) -> tuple[AssignedPartitions, ...]:
        return (AssignedPartitions(TOPIC, numbers, (epoch,) * len(numbers)),) if numbers else ()

    value = ConsumerGroupCurrentMemberAssignmentValue(epoch, epoch - 1, state, of(partitions), of(revoking))
    found.replay(ConsumerGroupCurrentMemberAssignmentKey("g", member), value)


def names(found: ConsumerGroup) -> set[str]:
    return {name for name, _ in broken_invariants(found)}


def test_a_group_that_keeps_them() -> None:
    found = group()
    owns(found, "a", 0, 1)
    owns(found, "b", 2, epoch=2, state=MemberState.UNREVOKED.value, revoking=(3,))
    assert names(found) == set()
    assert len(found.owners) == 4


def test_two_owners() -> None:
    found = group()
    owns(found, "a", 0)
    owns(found, "b", 0)
    assert names(found) == {"owner-map"}


def test_a_map_that_forgets() -> None:
    found = group()
    owns(found, "a", 0, 1)
    found._owners.clear()
    assert names(found) == {"owner-map"}


@pytest.mark.parametrize(("epoch", "target", "member"), [(3, 4, 3), (3, 3, 4)])
def test_epochs(epoch: int, target: int, member: int) -> None:
    found = group(epoch, target)
    owns(found, "a", 0, epoch=member)
    assert names(found) == {"group-epochs"}


@pytest.mark.parametrize(("state", "revoking"), [(MemberState.UNREVOKED, ()), (MemberState.STABLE, (1,))])
def test_unrevoked(state: MemberState, revoking: tuple[int, ...]) -> None:
    found = group()
    owns(found, "a", 0, state=state.value, revoking=revoking)
    assert names(found) == {"unrevoked"}
