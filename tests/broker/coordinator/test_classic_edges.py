"""Classic groups at the edges of their rules: found by leaving out each rule in turn (docs/group-rules.md)."""

from __future__ import annotations

import pytest

from quorumlog.errors import ErrorCode as E
from quorumlog.settings.groups import GroupConfig
from tests.broker.coordinator.group_world import REBALANCE_MS, SESSION_MS, GroupWorld
from tests.rules import rule

LONG_MS = 3_600_000


@pytest.fixture
def world() -> GroupWorld:
    return GroupWorld()


# --- joining ---


@rule("group 3.1")
def test_an_id_in_a_group_that_does_not_exist_makes_no_group(world: GroupWorld) -> None:
    assert world.code(world.join("who")) == E.UNKNOWN_MEMBER_ID
    assert world.state() == "Dead" and world.shard.list() == ()
    world.stable(1)
    assert world.code(world.join("who")) == E.UNKNOWN_MEMBER_ID
    assert world.state() == "Stable"


@rule("group 3.2")
def test_a_member_that_joins_again_late_may_find_its_place_taken() -> None:
    world = GroupWorld(GroupConfig(initial_rebalance_delay_ms=0, max_size=2))
    (leader, follower), generation = world.stable(2)
    first, second = world.join(leader), world.join(takes_member_id=False)
    assert world.code(world.join(follower)) == E.GROUP_MAX_SIZE_REACHED
    world.pass_ms(REBALANCE_MS)
    assert len(world.joined(first).members) == 2
    assert world.joined(first).generation_id == world.joined(second).generation_id == generation + 1
    assert world.heartbeat(follower, generation) == E.UNKNOWN_MEMBER_ID


@rule("bug 7909")
def test_a_new_member_does_not_wait_for_others_for_ever(world: GroupWorld) -> None:
    """Its process has ended (KAFKA-9752): it is dropped, however long the others may take to join again."""
    member_id = world.member(rebalance_timeout_ms=LONG_MS)
    new = world.join(takes_member_id=False, rebalance_timeout_ms=LONG_MS)
    for _ in range(world.config.new_member_join_timeout_ms // (SESSION_MS // 2)):
        assert new not in world.answers
        world.pass_ms(SESSION_MS // 2)
        world.heartbeat(member_id, 1)
    assert world.code(new) == E.UNKNOWN_MEMBER_ID
    again = world.joined(world.join(member_id, rebalance_timeout_ms=LONG_MS))
    assert [one.member_id for one in again.members] == [member_id]


@rule("group 4.18")
def test_a_group_that_somebody_is_about_to_join_does_not_expire(world: GroupWorld) -> None:
    member_id = world.answers[world.join()].member_id
    world.call_expire()
    assert world.joined(world.join(member_id)).generation_id == 1


# --- static members ---


@rule("group 3.8")
def test_a_sync_of_a_fenced_life_is_answered(world: GroupWorld) -> None:
    world.joined(world.join(group_instance_id="a"))
    second = world.join(group_instance_id="b")
    generation = world.joined(world.join(group_instance_id="a")).generation_id
    parked = world.sync(world.joined(second).member_id, generation, group_instance_id="b")
    world.join(group_instance_id="b")
    assert world.code(parked) == E.FENCED_INSTANCE_ID


@rule("group 3.8")
def test_a_static_member_that_changes_the_groups_protocol_rebalances(world: GroupWorld) -> None:
    first = world.joined(world.join(group_instance_id="a", protocols="range sticky"))
    world.sync(first.member_id, 1, {first.member_id: b"A"}, group_instance_id="a")
    back = world.joined(world.join(group_instance_id="a", protocols="sticky range"))
    assert (first.protocol_name, back.protocol_name, back.generation_id) == ("range", "sticky", 2)


# --- assigning ---


@rule("group 3.10")
@pytest.mark.parametrize("fenced", [False, True])
def test_who_may_not_sync(fenced: bool, world: GroupWorld) -> None:
    old = world.joined(world.join(group_instance_id="a")).member_id
    world.sync(old, 1, {old: b"A"}, group_instance_id="a")
    if fenced:
        world.join(group_instance_id="a")
        assert world.code(world.sync(old, 1, group_instance_id="a")) == E.FENCED_INSTANCE_ID
    else:
        world.join(takes_member_id=False)
        assert world.state() == "PreparingRebalance"
        assert world.code(world.sync(old, 1, group_instance_id="a")) == E.REBALANCE_IN_PROGRESS


@rule("group 3.10")
def test_a_sync_to_no_group(world: GroupWorld) -> None:
    assert world.code(world.sync("who", 1)) == E.UNKNOWN_MEMBER_ID


@rule("group 3.10")
def test_the_assignment_of_an_earlier_generation_is_not_that_of_the_next() -> None:
    """It is committed only when the next generation waits for its own."""
    world = GroupWorld(autocommit=False)
    first = world.joined(world.join(takes_member_id=False)).member_id
    world.sync(first, 1, {first: b"old"})
    again = world.join(first, protocols="range:new")
    assert world.joined(again).generation_id == 2
    world.commit_all()
    assert world.state() == "CompletingRebalance"
    synced = world.sync(first, 2, {first: b"new"})
    world.commit_all()
    assert world.synced(synced).assignment == b"new"
