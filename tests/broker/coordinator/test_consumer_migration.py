"""Groups that change their protocol, and members of both protocols in one group (KIP-848)."""

from __future__ import annotations

from typing import Any

import pytest

from quorumlog.errors import ErrorCode as E
from quorumlog.messages.groups import GroupProtocol, JoinGroupRequest, JoinGroupResponse, LeavingMember
from quorumlog.records.format.corrupt import CorruptRecords
from quorumlog.settings.groups import ConsumerGroupConfig, GroupConfig
from quorumlog_broker.coordinator.groups.classic.consumer_protocol import (
    read_assignment,
    read_subscription,
    read_topics,
    write_assignment,
)
from quorumlog_broker.coordinator.groups.consumer.reconcile import PAUSED
from tests.broker.coordinator.consumer_world import ConsumerWorld, Owned, assignment, named
from tests.broker.coordinator.group_world import REBALANCE_MS, SESSION_MS, G
from tests.rules import rule


def subscription(topics: str = "foo", owned: Owned | None = None, version: int = 1, rack: str | None = None) -> bytes:
    """As a Java client writes it."""
    names = topics.split()
    data = version.to_bytes(2, "big") + len(names).to_bytes(4, "big")
    data += b"".join(len(name).to_bytes(2, "big") + name.encode() for name in names) + b"\xff\xff\xff\xff"
    if version >= 1:
        data += write_assignment(0, {name: sorted(ones) for name, ones in (owned or {}).items()})[2:-4]
    if version >= 2:
        data += (7).to_bytes(4, "big")
    if version >= 3:
        data += b"\xff\xff" if rack is None else len(rack).to_bytes(2, "big") + rack.encode()
    return data


class MixedWorld(ConsumerWorld):
    def __init__(self, config: GroupConfig | None = None, **partitions: int) -> None:
        super().__init__(config, **partitions)

    def classic(self, member_id: str = "", owned: Owned | None = None, *, topics: str = "foo", **more: Any) -> int:
        """The call of a JoinGroup."""
        metadata = subscription(topics, owned)
        request = JoinGroupRequest(
            group_id=G,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=member_id,
            protocol_type=more.pop("protocol_type", "consumer"),
            protocols=tuple(
                GroupProtocol(name=name, metadata=metadata) for name in more.pop("protocols", "range").split()
            ),
            **more,
        )
        return self.call("join", request)

    def classic_joins(self, member_id: str = "", owned: Owned | None = None, **more: Any) -> JoinGroupResponse:
        if not member_id and "group_instance_id" not in more:
            member_id = self.answers[self.classic(**more)].member_id
        return self.joined(self.classic(member_id, owned, **more))

    def synced_to(self, joined: JoinGroupResponse) -> Owned:
        answer = self.synced(self.sync(joined.member_id, joined.generation_id))
        return {name: set(indexes) for name, indexes in read_assignment(answer.assignment).partitions}

    def classic_group(self, members: int = 1) -> tuple[list[str], int]:
        """A stable classic group of which the first member has foo 0 and 1, and the second 2 and 3."""
        ids = []
        for _ in range(members):
            ids.append(self.answers[self.classic()].member_id)
            self.classic(ids[-1])
        calls = [self.classic(one) for one in ids]
        generation = self.answers[calls[0]].generation_id
        for one in ids[1:]:
            self.sync(one, generation)
        plan = {one: write_assignment(1, {"foo": [2 * n, 2 * n + 1]}) for n, one in enumerate(ids)}
        self.sync(ids[0], generation, plan)
        assert self.state() == "Stable"
        return ids, generation


@pytest.fixture
def world() -> MixedWorld:
    return MixedWorld()


# --- the bytes of clients ---


def test_assignment_bytes() -> None:
    data = write_assignment(1, {"foo": [0, 2], "b": [1]})
    assert data.hex() == "00010000000200016200000001000000010003666f6f000000020000000000000002ffffffff"
    assert read_assignment(data).partitions == (("b", (1,)), ("foo", (0, 2)))
    assert read_assignment(data[:-4] + b"\0\0\0\2hi").user_data == b"hi"
    assert read_assignment(b"").partitions == ()


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_subscription_bytes(version: int) -> None:
    data = subscription("foo bar", {"foo": {1}}, version, "r1")
    found = read_subscription(data)
    assert (found.version, found.topics) == (version, ("foo", "bar"))
    assert found.owned == ((("foo", (1,)),) if version >= 1 else ())
    assert found.rack == ("r1" if version >= 3 else None)
    assert read_topics(data + b"more") == ("foo", "bar")


@pytest.mark.parametrize("data", [b"", b"\xff\xff", b"\0\1\0\0", subscription("foo", None, 3)[:-1]])
def test_bytes_that_are_no_subscription(data: bytes) -> None:
    with pytest.raises(CorruptRecords):
        read_subscription(data)


# --- empty groups ---


def test_an_empty_classic_group_becomes_a_consumer_group_and_keeps_its_offsets(world: MixedWorld) -> None:
    ids, generation = world.classic_group()
    world.commit({("foo", 0): 5}, ids[0], generation)
    world.leave(*ids)
    assert world.enter("m1").member_epoch == 2
    assert world.fetched(("foo", 0)) == {("foo", 0): 5}
    assert [one.group_type for one in world.shard.list()] == ["consumer"]


def test_an_empty_consumer_group_becomes_a_classic_group(world: MixedWorld) -> None:
    world.enter("m1")
    world.commit({("foo", 0): 5}, "m1", 2)
    world.told("m1", -1)
    world.classic_group()
    assert [one.group_type for one in world.shard.list()] == ["classic"]
    assert world.shard._consumers.groups.ids() == ()
    assert world.fetched(("foo", 0)) == {("foo", 0): 5}


# --- upgrade ---


@rule("group 5.9")
def test_a_classic_group_goes_on_as_a_consumer_group(world: MixedWorld) -> None:
    ids, generation = world.classic_group(2)
    world.commit({("foo", 0): 5}, ids[0], generation)
    answer = world.enter("m1")
    assert (answer.member_epoch, assignment(answer)) == (generation + 1, {})
    assert world.fetched(("foo", 0)) == {("foo", 0): 5}
    assert world.assigned(ids[0]) == {"foo": {0, 1}} and world.assigned(ids[1]) == {"foo": {2, 3}}
    assert {one.member_id: one.member_type for one in world.described().members} == {ids[0]: 0, ids[1]: 0, "m1": 1}
    assert world.code(world.call("describe", G)) == E.GROUP_ID_NOT_FOUND
    # the classic members are told to join again, and give up what they must
    assert world.heartbeat(ids[0], generation) == E.REBALANCE_IN_PROGRESS
    for one in ids:
        joined = world.classic_joins(one)  # eager: it owns nothing by then
        assert (joined.generation_id, joined.protocol_name, joined.leader) == (generation + 1, "range", "")
        assert len(world.synced_to(joined)["foo"]) in (1, 2)
        assert world.heartbeat(one, generation + 1) == E.NONE
    world.told("m1", generation + 1)
    owned = [world.assigned(one)["foo"] for one in (*ids, "m1")]
    assert set().union(*owned) == {0, 1, 2, 3} and sum(map(len, owned)) == 4
    assert world.described().group_state == "Stable"


def test_parked_calls_are_sent_to_join_again(world: MixedWorld) -> None:
    ids, _ = world.classic_group(2)
    parked = world.classic(ids[0])
    assert parked not in world.answers
    world.enter("m1")
    assert world.code(parked) == E.REBALANCE_IN_PROGRESS


def test_an_upgrade_survives_a_failover(world: MixedWorld) -> None:
    ids, generation = world.classic_group(2)
    world.enter("m1")
    world.fail_over()
    assert set(world.group.members) == {*ids, "m1"}
    assert world.heartbeat(ids[0], generation) == E.REBALANCE_IN_PROGRESS
    world.pass_ms(SESSION_MS)
    assert set(world.group.members) == {"m1"}, "the classic members' sessions are as they said"


@rule("group 5.9")
@pytest.mark.parametrize("policy", ["downgrade", "disabled"])
def test_a_policy_that_does_not_allow_it(policy: str) -> None:
    world = MixedWorld(GroupConfig(initial_rebalance_delay_ms=0, consumer=ConsumerGroupConfig(migration_policy=policy)))
    ids, generation = world.classic_group()
    assert world.refused("m1", 0, topics="foo") == E.GROUP_ID_NOT_FOUND
    assert world.heartbeat(ids[0], generation) == E.NONE


@rule("group 5.9")
def test_a_group_of_another_type_stays(world: MixedWorld) -> None:
    world.classic_joins(protocol_type="connect")
    assert world.refused("m1", 0, topics="foo") == E.GROUP_ID_NOT_FOUND


@rule("group 5.9")
@pytest.mark.parametrize(("most", "code"), [(1, E.GROUP_ID_NOT_FOUND), (2, E.GROUP_MAX_SIZE_REACHED)])
def test_a_group_that_has_no_place_for_the_member_stays(most: int, code: E) -> None:
    world = MixedWorld(GroupConfig(initial_rebalance_delay_ms=0, consumer=ConsumerGroupConfig(max_size=most)))
    ids, generation = world.classic_group(2)
    assert world.refused("m1", 0, topics="foo") == code
    assert world.heartbeat(ids[0], generation) == E.NONE
    assert [one.group_type for one in world.shard.list()] == ["classic"]


def test_data_of_an_assignor_of_the_clients_is_not_lost(world: MixedWorld) -> None:
    ids, _ = world.classic_group()
    again = world.classic(ids[0])
    data = write_assignment(1, {"foo": [0]})[:-4] + b"\0\0\0\1x"
    world.sync(ids[0], world.answers[again].generation_id, {ids[0]: data})
    assert world.refused("m1", 0, topics="foo") == E.GROUP_ID_NOT_FOUND
    assert world.state() == "Stable"


def test_metadata_that_cannot_be_read(world: MixedWorld) -> None:
    world.stable(1)
    assert world.refused("m1", 0, topics="foo") == E.GROUP_ID_NOT_FOUND


def test_a_classic_group_does_not_know_epochs(world: MixedWorld) -> None:
    world.classic_group()
    assert world.refused("m1", 5) == E.GROUP_ID_NOT_FOUND
    assert world.refused("m1", -1) == E.GROUP_ID_NOT_FOUND


# --- classic members inside ---


def mixed(world: MixedWorld) -> JoinGroupResponse:
    """m1 has foo 0 and 1, the classic member has 2 and 3."""
    world.enter("m1")
    joined = world.classic_joins()
    assert world.synced_to(joined) == {}
    world.told("m1", 2)
    world.told("m1", 2, {"foo": {0, 1}})
    assert world.heartbeat(joined.member_id, 3) == E.REBALANCE_IN_PROGRESS, "what it waits for is free"
    joined = world.classic_joins(joined.member_id)
    assert world.synced_to(joined) == {"foo": {2, 3}}
    assert world.described().group_state == "Stable"
    return joined


def test_a_classic_member_joins_a_consumer_group(world: MixedWorld) -> None:
    joined = mixed(world)
    assert world.heartbeat(joined.member_id, joined.generation_id) == E.NONE


def test_a_cooperative_member_gives_up_only_what_it_must(world: MixedWorld) -> None:
    joined = mixed(world)
    member_id = joined.member_id
    world.enter("m2")
    world.enter("m3")
    assert world.heartbeat(member_id, 3) == E.REBALANCE_IN_PROGRESS
    joined = world.classic_joins(member_id, {"foo": {2, 3}})
    assert joined.generation_id == 3, "it has to give up something first"
    assert world.synced_to(joined) == {"foo": {2}}
    assert world.heartbeat(member_id, 3) == E.REBALANCE_IN_PROGRESS
    assert assignment(world.told("m3", 5)) is None
    joined = world.classic_joins(member_id, {"foo": {2}})
    assert joined.generation_id == 5 and world.synced_to(joined) == {"foo": {2}}
    assert sum(len(world.assigned(one).get("foo", ())) for one in ("m1", "m2", "m3", member_id)) >= 3


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"protocol_type": "connect"}, E.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": "sticky"}, E.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ""}, E.INCONSISTENT_GROUP_PROTOCOL),
        ({"group_instance_id": "i", "member_id": "who"}, E.UNKNOWN_MEMBER_ID),
        ({}, E.MEMBER_ID_REQUIRED),
    ],
)
def test_a_classic_join_that_is_refused(more: dict[str, Any], code: E, world: MixedWorld) -> None:
    mixed(world)
    assert world.code(world.classic(more.pop("member_id", ""), **more)) == code


def test_who_may_speak_as_a_classic_member(world: MixedWorld) -> None:
    joined = mixed(world)
    assert world.heartbeat(joined.member_id, 2) == E.ILLEGAL_GENERATION
    assert world.heartbeat("m1", 3) == E.UNKNOWN_MEMBER_ID, "it speaks the other protocol"
    assert world.heartbeat("who", 3) == E.UNKNOWN_MEMBER_ID
    assert world.code(world.sync(joined.member_id, 2)) == E.ILLEGAL_GENERATION
    assert world.code(world.sync(joined.member_id, 3, protocol_name="sticky")) == E.INCONSISTENT_GROUP_PROTOCOL
    world.enter("m2")
    assert world.code(world.sync(joined.member_id, 3)) == E.REBALANCE_IN_PROGRESS


def test_a_classic_member_that_does_not_join_again_is_fenced(world: MixedWorld) -> None:
    joined = mixed(world)
    world.enter("m2")
    for _ in range(REBALANCE_MS // 5_000 - 1):
        assert world.heartbeat(joined.member_id, 3) == E.REBALANCE_IN_PROGRESS
        world.told("m2", world.group.current_of("m2").epoch)
        world.pass_ms(5_000)
    assert joined.member_id in world.group.members
    world.pass_ms(5_000)
    assert joined.member_id not in world.group.members


def test_a_classic_member_that_never_syncs_is_fenced(world: MixedWorld) -> None:
    world.enter("m1", timeout_ms=600_000)
    joined = world.classic_joins()
    for _ in range(REBALANCE_MS // 5_000):
        world.told("m1", 2)
        world.heartbeat(joined.member_id, 3)
        world.pass_ms(5_000)
    assert joined.member_id not in world.group.members


def test_a_silent_classic_member_is_fenced_at_the_end_of_its_own_session(world: MixedWorld) -> None:
    joined = mixed(world)
    world.pass_ms(SESSION_MS)
    assert set(world.group.members) == {"m1"} and joined.member_id not in world.group.members


def test_leaving_and_being_removed(world: MixedWorld) -> None:
    joined = mixed(world)
    world.enter("m2", instance="i")
    gone = LeavingMember(group_instance_id="i")
    assert world.leave("who", joined.member_id, joined.member_id, gone) == [25, 0, 25, 0]
    assert set(world.group.members) == {"m1"}
    assert assignment(world.told("m1", 3)) == {"foo": {0, 1, 2, 3}}


def test_a_static_classic_member_comes_back(world: MixedWorld) -> None:
    world.enter("m1")
    first = world.joined(world.classic(group_instance_id="i"))
    second = world.joined(world.classic(group_instance_id="i"))
    assert second.member_id != first.member_id and second.generation_id == first.generation_id
    assert world.heartbeat(first.member_id, 3, group_instance_id="i") == E.FENCED_INSTANCE_ID


@rule("bug 17228")
def test_a_static_classic_member_makes_way_for_its_next_life(world: MixedWorld) -> None:
    """It is restarted with group.protocol=consumer."""
    world.enter("m1")
    world.classic(group_instance_id="i")
    answer = world.enter("m2", instance="i")
    assert set(world.group.members) == {"m1", "m2"} and answer.member_epoch == 3


# --- downgrade ---


@rule("group 5.9")
def test_the_last_consumer_member_leaves(world: MixedWorld) -> None:
    joined = mixed(world)
    world.commit({("foo", 0): 5}, "m1", 3)
    world.told("m1", -1)
    assert [(one.group_type, one.state) for one in world.shard.list()] == [("classic", "PreparingRebalance")]
    assert world.heartbeat(joined.member_id, 3) == E.REBALANCE_IN_PROGRESS
    again = world.joined(world.classic(joined.member_id))
    assert (again.generation_id, again.leader) == (4, joined.member_id)
    assert world.fetched(("foo", 0)) == {("foo", 0): 5}


@rule("bug 17228")
def test_the_last_consumer_member_is_fenced(world: MixedWorld) -> None:
    joined = mixed(world)
    for _ in range(9):
        world.pass_ms(5_000)
        world.heartbeat(joined.member_id, 3)
    assert world.state() == "PreparingRebalance"


@rule("bug 17228")
def test_the_last_consumer_member_is_replaced_by_a_classic_one(world: MixedWorld) -> None:
    """KAFKA-19546: the group has to rebalance."""
    world.enter("m1", instance="i")
    joined = world.classic_joins()
    world.told("m1", PAUSED, instance="i")
    call = world.classic(group_instance_id="i")
    assert world.state() == "PreparingRebalance" and call not in world.answers
    world.classic(joined.member_id)
    assert world.joined(call).generation_id == 4


@rule("bug 17228")
def test_a_downgrade_that_did_not_rebalance_before_a_failover_does_so_then(world: MixedWorld) -> None:
    joined = mixed(world)
    world.told("m1", -1)
    world.fail_over()
    assert world.heartbeat(joined.member_id, 3) == E.REBALANCE_IN_PROGRESS


@rule("group 5.9")
@pytest.mark.parametrize("policy", ["upgrade", "disabled"])
def test_without_downgrades_the_group_stays_what_it_is(policy: str) -> None:
    consumer = ConsumerGroupConfig(migration_policy=policy, assignment_interval_ms=0)
    world = MixedWorld(GroupConfig(initial_rebalance_delay_ms=0, consumer=consumer))
    joined = mixed(world)
    world.told("m1", -1)
    assert set(world.group.members) == {joined.member_id}
    assert world.heartbeat(joined.member_id, 3) == E.REBALANCE_IN_PROGRESS
    assert world.synced_to(world.classic_joins(joined.member_id)) == {"foo": {0, 1, 2, 3}}


@rule("group 5.9")
def test_up_and_down_and_up_again(world: MixedWorld) -> None:
    """KAFKA-17228, KAFKA-17317"""
    joined = mixed(world)
    world.told("m1", -1)
    again = world.joined(world.classic(joined.member_id))
    world.sync(joined.member_id, again.generation_id, {joined.member_id: write_assignment(1, {"foo": [0, 1, 2, 3]})})
    assert world.enter("m2").member_epoch == again.generation_id + 1
    assert world.assigned(joined.member_id) == {"foo": {0, 1, 2, 3}}
    assert named(world.group.target_of("m2")) != {}


def test_a_classic_member_is_told_its_own_first_protocol_whoever_joins_after_it() -> None:
    """As in Kafka 4.3: the coordinator assigns, so members need not agree, and what a member was told stays true."""
    world = MixedWorld()
    world.enter("m1")
    first = world.classic_joins(protocols="range rr")
    second = world.classic_joins(protocols="rr range")
    third = world.classic_joins(protocols="rr")
    assert [one.protocol_name for one in (first, second, third)] == ["range", "rr", "rr"]
    for one, name, code in (
        (first, "range", E.REBALANCE_IN_PROGRESS),
        (first, "rr", E.INCONSISTENT_GROUP_PROTOCOL),
        (third, "rr", E.NONE),
    ):
        assert world.code(world.sync(one.member_id, one.generation_id, protocol_name=name)) == code
