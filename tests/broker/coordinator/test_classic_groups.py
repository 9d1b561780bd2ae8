"""Classic groups: joins, rebalances, heartbeats, static members, and what each is answered."""

from __future__ import annotations

import pytest

from quorumlog.errors import ErrorCode as E
from quorumlog.messages.groups import LeavingMember
from quorumlog.settings.groups import GroupConfig
from tests.broker.coordinator.group_world import REBALANCE_MS, SESSION_MS, G, GroupWorld
from tests.rules import rule


@pytest.fixture
def world() -> GroupWorld:
    return GroupWorld()


# --- joining ---


def test_a_lone_member_leads_the_first_generation(world: GroupWorld) -> None:
    asked = world.join()
    member_id = world.answers[asked].member_id
    assert (world.code(asked), member_id) == (E.MEMBER_ID_REQUIRED, "c-u1")
    answer = world.joined(world.join(member_id, protocols="range:r sticky:s"))
    assert (answer.generation_id, answer.leader, answer.protocol_name) == (1, member_id, "range")
    assert [(one.member_id, one.metadata) for one in answer.members] == [(member_id, b"r")]
    assert world.synced(world.sync(member_id, 1, {member_id: b"all"})).assignment == b"all"
    assert world.state() == "Stable"


@rule("group 3.3")
def test_before_version_4_a_member_joins_at_once(world: GroupWorld) -> None:
    answer = world.joined(world.join(takes_member_id=False))
    assert answer.member_id == "c-u1" and answer.leader == "c-u1"


@rule("group 3.1")
@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"group": ""}, E.INVALID_GROUP_ID),
        ({"session_timeout_ms": 5_999}, E.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, E.INVALID_SESSION_TIMEOUT),
        ({"member_id": "who"}, E.UNKNOWN_MEMBER_ID),
        ({"protocols": ""}, E.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, E.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_join_that_is_refused(more: dict[str, object], code: E, world: GroupWorld) -> None:
    assert world.code(world.join(**more)) == code  # type: ignore[arg-type]
    assert world.log == []


@rule("group 3.1")
@pytest.mark.parametrize("more", [{"protocols": "sticky"}, {"protocol_type": "connect"}])
def test_a_member_has_to_have_a_protocol_that_all_have(more: dict[str, str], world: GroupWorld) -> None:
    world.stable(1)
    assert world.code(world.join(**more)) == E.INCONSISTENT_GROUP_PROTOCOL  # type: ignore[arg-type]


@rule("group 3.6")
def test_the_protocol_with_the_most_votes_wins(world: GroupWorld) -> None:
    first = world.member(protocols="a b")
    second = world.join(world.answers[world.join(protocols="b a")].member_id, protocols="b a")
    third = world.join(world.answers[world.join(protocols="b a")].member_id, protocols="b a")
    world.join(first, protocols="a b")
    assert world.joined(second).protocol_name == world.joined(third).protocol_name == "b"


@rule("group 3.4")
def test_a_first_rebalance_waits_for_more_members() -> None:
    world = GroupWorld(GroupConfig(initial_rebalance_delay_ms=3_000))
    first = world.join(takes_member_id=False)
    world.pass_ms(2_999)
    second = world.join(takes_member_id=False)
    world.pass_ms(1)
    assert not {first, second} & set(world.answers), "a new member came, so the delay begins again"
    world.pass_ms(3_000)
    assert world.joined(first).generation_id == world.joined(second).generation_id == 1
    assert len(world.joined(first).members) == 2 and world.joined(second).members == ()


@rule("group 3.4")
def test_new_members_extend_the_first_delay_up_to_the_rebalance_timeout_only() -> None:
    world = GroupWorld(GroupConfig(initial_rebalance_delay_ms=3_000))
    first = world.join(takes_member_id=False, rebalance_timeout_ms=7_000)
    for _ in range(6):
        world.pass_ms(1_000)
        world.join(takes_member_id=False, rebalance_timeout_ms=7_000)
    assert first not in world.answers
    world.pass_ms(1_000)
    assert world.joined(first).generation_id == 1


@rule("group 3.3", "bug 7909")
def test_a_pending_id_holds_the_rebalance_up_until_its_session_ends(world: GroupWorld) -> None:
    ids, generation = world.stable(1)
    world.join()  # is given an id, and never comes back with it
    again = world.join(ids[0], protocols="range:new")
    assert again not in world.answers
    world.pass_ms(SESSION_MS)
    assert world.joined(again).generation_id == generation + 1


@rule("group 3.2", "bug 9844")
def test_a_group_that_is_full_takes_no_more() -> None:
    world = GroupWorld(GroupConfig(initial_rebalance_delay_ms=0, max_size=2))
    world.stable(2)
    assert world.code(world.join()) == E.GROUP_MAX_SIZE_REACHED


@rule("group 3.2", "bug 9844")
def test_in_a_rebalance_places_go_to_those_that_wait() -> None:
    world = GroupWorld(GroupConfig(initial_rebalance_delay_ms=3_000, max_size=2))
    numbers = [world.join(takes_member_id=False) for _ in range(3)]
    assert world.code(numbers[2]) == E.GROUP_MAX_SIZE_REACHED
    world.pass_ms(6_000)
    assert [world.joined(number).generation_id for number in numbers[:2]] == [1, 1]


# --- joining again ---


@rule("group 3.7")
def test_a_member_that_asks_again_gets_its_generation(world: GroupWorld) -> None:
    (leader, follower), generation = world.stable(2)
    answer = world.joined(world.join(follower))
    assert (answer.generation_id, answer.leader, answer.members) == (generation, leader, ())
    assert world.state() == "Stable"


@rule("group 3.7")
@pytest.mark.parametrize("protocols", ["range", "range:other"])
def test_the_leader_or_a_change_rebalances(protocols: str, world: GroupWorld) -> None:
    (leader, follower), generation = world.stable(2)
    again = world.join(leader if protocols == "range" else follower, protocols=protocols)
    assert again not in world.answers
    other = follower if protocols == "range" else leader
    assert world.heartbeat(other, generation) == E.REBALANCE_IN_PROGRESS
    world.join(other)
    assert world.joined(again).generation_id == generation + 1


@rule("group 3.7")
def test_a_lost_answer_is_given_again_while_the_leader_assigns(world: GroupWorld) -> None:
    member_id = world.answers[world.join()].member_id
    first = world.joined(world.join(member_id))
    assert world.joined(world.join(member_id)) == first
    assert world.heartbeat(member_id, 1) == E.NONE


@rule("group 3.5")
def test_members_that_do_not_join_again_are_dropped(world: GroupWorld) -> None:
    (leader, follower), generation = world.stable(2)
    again = world.join(leader)
    for _ in range(REBALANCE_MS // SESSION_MS * 2):
        assert world.heartbeat(follower, generation) == E.REBALANCE_IN_PROGRESS
        world.pass_ms(SESSION_MS // 2)
    assert [one.member_id for one in world.joined(again).members] == [leader]
    assert world.heartbeat(follower, generation) == E.UNKNOWN_MEMBER_ID


def test_an_older_call_of_a_member_is_answered_when_it_joins_again() -> None:
    world = GroupWorld()
    (leader, _), _ = world.stable(2)
    first = world.join(leader)
    second = world.join(leader)
    assert world.code(first) == E.REBALANCE_IN_PROGRESS and second not in world.answers


# --- assigning ---


def test_followers_wait_for_the_leader(world: GroupWorld) -> None:
    first = world.member()
    world.member()
    second_answer = world.join(first)
    generation = world.joined(second_answer).generation_id
    ids = [one.member_id for one in world.joined(second_answer).members]
    follower = next(one for one in ids if one != first)
    waiting = world.sync(follower, generation)
    assert waiting not in world.answers
    world.sync(first, generation, {first: b"1"})
    assert world.synced(waiting).assignment == b"", "the leader gave it nothing"
    assert world.synced(world.sync(first, generation)).assignment == b"1", "asked again"


@rule("group 3.10")
def test_an_assignment_is_told_once_it_is_committed() -> None:
    world = GroupWorld(autocommit=False)
    member_id = world.answers[world.join()].member_id
    world.join(member_id)
    synced = world.sync(member_id, 1, {member_id: b"all"})
    assert synced not in world.answers and len(world.log) == 1
    world.commit_all()
    assert world.synced(synced).assignment == b"all"


@rule("group 3.10")
def test_an_assignment_that_another_rebalance_overtook_is_not_told() -> None:
    world = GroupWorld(autocommit=False)
    member_id = world.answers[world.join()].member_id
    world.join(member_id)
    synced = world.sync(member_id, 1, {member_id: b"all"})
    world.join(takes_member_id=False)
    assert world.code(synced) == E.REBALANCE_IN_PROGRESS
    world.commit_all()
    assert world.state() == "PreparingRebalance"


@rule("group 3.10")
@pytest.mark.parametrize(
    ("member", "generation", "more", "code"),
    [
        ("who", 1, {}, E.UNKNOWN_MEMBER_ID),
        (None, 2, {}, E.ILLEGAL_GENERATION),
        (None, 1, {"protocol_name": "sticky"}, E.INCONSISTENT_GROUP_PROTOCOL),
        (None, 1, {"protocol_type": "connect"}, E.INCONSISTENT_GROUP_PROTOCOL),
        (None, 1, {"group_instance_id": "i"}, E.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_sync_that_is_refused(
    member: str | None, generation: int, more: dict[str, str], code: E, world: GroupWorld
) -> None:
    ids, _ = world.stable(1)
    assert world.code(world.sync(member or ids[0], generation, **more)) == code


@rule("group 3.11", "bug 12890")
def test_members_that_never_sync_lose_their_place(world: GroupWorld) -> None:
    first = world.member()
    second = world.join(takes_member_id=False)
    generation = world.joined(world.join(first)).generation_id
    silent = world.joined(second).member_id
    world.sync(first, generation, {first: b"1"})
    for _ in range(REBALANCE_MS // 5_000 - 1):
        world.pass_ms(5_000)
        assert world.heartbeat(first, generation) == E.NONE
        assert world.heartbeat(silent, generation) == E.NONE
    world.pass_ms(5_000)
    assert world.heartbeat(silent, generation) == E.UNKNOWN_MEMBER_ID
    assert world.heartbeat(first, generation) == E.REBALANCE_IN_PROGRESS


@rule("bug 12890")
def test_a_group_whose_leader_never_syncs_does_not_stay_completing(world: GroupWorld) -> None:
    leader = world.member()
    second = world.join(takes_member_id=False)
    generation = world.joined(world.join(leader)).generation_id
    waiting = world.sync(world.joined(second).member_id, generation)
    world.pass_ms(SESSION_MS)
    assert world.code(waiting) == E.REBALANCE_IN_PROGRESS
    again = world.joined(world.join(world.joined(second).member_id))
    assert (again.leader, again.generation_id) == (again.member_id, generation + 1)


# --- heartbeats and leaving ---


def test_a_member_that_is_silent_for_its_session_is_removed(world: GroupWorld) -> None:
    (leader, follower), generation = world.stable(2)
    world.pass_ms(SESSION_MS - 1)
    assert world.heartbeat(leader, generation) == E.NONE
    world.pass_ms(1)
    assert world.heartbeat(follower, generation) == E.UNKNOWN_MEMBER_ID
    assert world.heartbeat(leader, generation) == E.REBALANCE_IN_PROGRESS


def test_the_last_member_leaves_an_empty_generation_behind(world: GroupWorld) -> None:
    ids, generation = world.stable(1)
    assert world.leave(ids[0]) == [E.NONE]
    assert world.state() == "Empty"
    world.fail_over()
    assert world.state() == "Empty"
    member = world.joined(world.join(takes_member_id=False))
    assert member.generation_id == generation + 2, "the empty generation counts"


@rule("group 3.12")
def test_leaving_tells_of_each(world: GroupWorld) -> None:
    (leader, follower), generation = world.stable(2)
    pending = world.answers[world.join()].member_id
    gone = LeavingMember(group_instance_id="nobody")
    assert world.leave(follower, "who", pending, gone) == [E.NONE, E.UNKNOWN_MEMBER_ID, E.NONE, E.UNKNOWN_MEMBER_ID]
    assert world.heartbeat(leader, generation) == E.REBALANCE_IN_PROGRESS
    assert world.joined(world.join(leader)).generation_id == generation + 1


@rule("group 4.16")
def test_a_group_that_nobody_made_knows_no_members(world: GroupWorld) -> None:
    assert world.leave("a", "b") == [E.UNKNOWN_MEMBER_ID] * 2
    assert world.heartbeat("a", 1) == E.UNKNOWN_MEMBER_ID
    assert world.state() == "Dead"


# --- static members (KIP-345) ---


def static_group(world: GroupWorld) -> tuple[str, str, int]:
    first = world.joined(world.join(group_instance_id="a"))
    second = world.join(group_instance_id="b")
    generation = world.joined(world.join(first.member_id, group_instance_id="a")).generation_id
    other = world.joined(second).member_id
    world.sync(other, generation, group_instance_id="b")
    world.sync(first.member_id, generation, {first.member_id: b"A", other: b"B"}, group_instance_id="a")
    return first.member_id, other, generation


@rule("group 3.8", "group 3.9", "bug 10284")
def test_a_static_member_comes_back_without_a_rebalance(world: GroupWorld) -> None:
    leader, other, generation = static_group(world)
    answer = world.joined(world.join(group_instance_id="b"))
    assert (answer.generation_id, answer.leader, answer.skip_assignment) == (generation, leader, False)
    assert answer.member_id not in (leader, other)
    synced = world.synced(world.sync(answer.member_id, generation, group_instance_id="b"))
    assert synced.assignment == b"B"
    assert world.heartbeat(leader, generation) == E.NONE
    assert world.heartbeat(other, generation, group_instance_id="b") == E.FENCED_INSTANCE_ID
    world.fail_over()
    assert world.heartbeat(answer.member_id, generation, group_instance_id="b") == E.NONE


@rule("group 3.9", "bug 10284")
@pytest.mark.parametrize("knows", [True, False])
def test_a_static_leader_that_comes_back_keeps_the_assignment(knows: bool, world: GroupWorld) -> None:
    leader, _, generation = static_group(world)
    answer = world.joined(world.join(group_instance_id="a", takes_skip_assignment=knows))
    assert answer.generation_id == generation and answer.skip_assignment is knows
    assert answer.leader == (answer.member_id if knows else leader)
    assert len(answer.members) == (2 if knows else 0)


@rule("group 3.8")
def test_a_static_member_is_answered_once_its_new_id_is_committed(world: GroupWorld) -> None:
    static_group(world)
    world.autocommit = False
    number = world.join(group_instance_id="b")
    assert number not in world.answers
    world.commit_all()
    assert world.joined(number).generation_id == 2


@rule("group 3.8")
def test_calls_of_a_fenced_life_are_answered(world: GroupWorld) -> None:
    leader, other, _ = static_group(world)
    parked = world.join(leader, group_instance_id="a", protocols="range:x")
    number = world.join(group_instance_id="a")
    assert world.code(parked) == E.FENCED_INSTANCE_ID
    world.join(other, group_instance_id="b")
    assert world.joined(number).member_id not in (leader, other)


@rule("group 3.5")
def test_a_static_member_keeps_its_place_through_a_rebalance(world: GroupWorld) -> None:
    leader, other, generation = static_group(world)
    again = world.join(leader, group_instance_id="a", protocols="range:x", session_timeout_ms=120_000)
    world.pass_ms(SESSION_MS - 1)
    world.heartbeat(other, generation, group_instance_id="b")
    assert again not in world.answers
    world.join(other, group_instance_id="b")
    assert {one.group_instance_id for one in world.joined(again).members} == {"a", "b"}


@rule("group 3.12")
def test_an_administrator_removes_a_static_member(world: GroupWorld) -> None:
    leader, other, generation = static_group(world)
    assert world.leave(LeavingMember(group_instance_id="b")) == [E.NONE]
    assert world.leave(LeavingMember(member_id="old", group_instance_id="a")) == [E.FENCED_INSTANCE_ID]
    assert world.heartbeat(other, generation, group_instance_id="b") == E.UNKNOWN_MEMBER_ID
    assert world.heartbeat(leader, generation) == E.REBALANCE_IN_PROGRESS


# --- the next leader of the partition ---


def test_a_stable_group_goes_on_at_the_next_coordinator(world: GroupWorld) -> None:
    ids, generation = world.stable(3)
    world.fail_over()
    assert world.state() == "Stable"
    assert [world.heartbeat(one, generation) for one in ids] == [E.NONE] * 3
    assert world.synced(world.sync(ids[2], generation)).assignment == ids[2].encode()


def test_a_rebalance_that_was_lost_begins_again(world: GroupWorld) -> None:
    (leader, follower), generation = world.stable(2)
    world.join(leader)
    world.fail_over()
    assert world.heartbeat(follower, generation) == E.NONE
    again = world.join(leader)
    world.join(follower)
    assert world.joined(again).generation_id == generation + 1


@rule("group 1.10")
def test_members_of_a_loaded_group_have_a_whole_session(world: GroupWorld) -> None:
    (first, silent), generation = world.stable(2)
    world.pass_ms(SESSION_MS - 1)
    world.fail_over()
    world.pass_ms(SESSION_MS - 1)
    assert world.heartbeat(first, generation) == E.NONE
    world.pass_ms(1)
    assert world.heartbeat(first, generation) == E.REBALANCE_IN_PROGRESS
    assert world.heartbeat(silent, generation) == E.UNKNOWN_MEMBER_ID


@rule("group 3.13")
def test_a_group_that_has_become_too_large_rebalances(world: GroupWorld) -> None:
    ids, generation = world.stable(2)
    world.config = GroupConfig(initial_rebalance_delay_ms=0, max_size=1)
    world.fail_over()
    assert world.heartbeat(ids[0], generation) == E.REBALANCE_IN_PROGRESS


@rule("group 4.15")
def test_only_an_empty_group_is_deleted(world: GroupWorld) -> None:
    ids, _ = world.stable(1)
    world.commit({("t", 0): 5}, ids[0], 1)
    assert world.answers[world.call("delete_group", G)] == E.NON_EMPTY_GROUP
    world.leave(ids[0])
    assert world.answers[world.call("delete_group", G)] == E.NONE
    assert world.answers[world.call("delete_group", G)] == E.GROUP_ID_NOT_FOUND
    assert world.state() == "Dead" and world.fetched(("t", 0)) == {("t", 0): -1}
    world.fail_over()
    assert world.state() == "Dead" and world.shard.list() == ()


@rule("bug 16831")
def test_an_assignment_that_the_log_does_not_take_is_refused(world: GroupWorld) -> None:
    member = world.member()
    number = world.sync(member, 1, {member: bytes(2_000_000)})
    assert world.code(number) == E.UNKNOWN_SERVER_ERROR
    assert world.heartbeat(member, 1) == E.REBALANCE_IN_PROGRESS and not world.log
    joined = world.joined(world.join(member))
    assert world.synced(world.sync(member, joined.generation_id, {member: b"less"})).assignment == b"less"


def test_while_a_group_rebalances_its_members_are_described_with_what_they_had(world: GroupWorld) -> None:
    (leader, *_), _ = world.stable(1)
    world.join(leader)
    found = world.answers[world.call("describe", G)]
    (member,) = found.members
    assert found.group_state == "CompletingRebalance"
    assert (member.member_assignment, member.member_metadata) == (leader.encode(), b"")


def test_people_are_told_of_rebalances_and_of_who_is_out(world: GroupWorld) -> None:
    world.stable(2)
    texts = [text for group, text in world.shard.take_notices() if group == G]
    assert any("a rebalance began" in one for one in texts) and any("with 2 members" in one for one in texts)
    assert world.shard.take_notices() == []
    world.pass_ms(SESSION_MS)
    out = [text for _, text in world.shard.take_notices()]
    assert f"member c-u1 was not heard of for {SESSION_MS} ms, its session, and is out" in out
    assert f"a rebalance began after generation 2: its member has {REBALANCE_MS} ms to join again" in out


def test_that_the_last_member_is_gone_is_no_rebalance_that_waits(world: GroupWorld) -> None:
    (member,), _ = world.stable(1)
    world.shard.take_notices()
    world.leave(member)
    assert "a rebalance began after generation 1: its last member is gone" in [
        text for _, text in world.shard.take_notices()
    ]
