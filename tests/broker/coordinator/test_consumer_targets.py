"""When targets are computed, by which assignor, and what happens to a group meanwhile."""

from __future__ import annotations

import pytest

from quorumlog.settings.groups import ConsumerGroupConfig, GroupConfig
from quorumlog_broker.coordinator.group_turn import Write
from quorumlog_broker.coordinator.groups.consumer.assignors import SLICE
from quorumlog_broker.coordinator.groups.consumer.reconcile import PAUSED
from tests.broker.coordinator.consumer_world import ConsumerWorld, assignment, topic_id, topics
from tests.broker.coordinator.group_world import G, GroupWorld
from tests.rules import rule

MANY = 3 * SLICE


def test_the_next_target_waits_for_the_interval() -> None:
    world = ConsumerWorld(GroupConfig(consumer=ConsumerGroupConfig(assignment_interval_ms=1_000)))
    assert world.enter("m1").member_epoch == 2, "the first one does not wait"
    assert world.enter("m2").member_epoch == 2
    assert world.described().group_state == "Assigning"
    world.pass_ms(999)
    assert world.group.assignment_epoch == 2
    world.pass_ms(1)
    assert world.group.assignment_epoch == 3, "nobody has to say anything"
    assert assignment(world.told("m1", 2)) == {"foo": {0, 1}}


def test_a_deleted_topic_is_taken_from_a_member_by_the_next_target() -> None:
    """Not before, unless the member itself subscribes to others, as in Kafka. It is not told of meanwhile."""
    world = ConsumerWorld(GroupConfig(consumer=ConsumerGroupConfig(assignment_interval_ms=1_000)), foo=1, bar=1, baz=1)
    world.enter("m1", "foo bar baz")
    world.use(topics(2, foo=1, baz=1))
    assert world.told("m1", 2).assignment is None
    assert world.assigned("m1") == {"foo": {0}, "bar": {0}, "baz": {0}}
    (member,) = world.described().members
    for told in (member.assignment, member.target_assignment):
        assert [one.topic_name for one in told] == ["baz", "foo"]
    assert assignment(world.told("m1", 2, topics="bar baz")) == {"baz": {0}}
    world.pass_ms(1_000)
    assert world.told("m1", 2, {}).member_epoch > 2


def test_a_subscription_that_shrinks_twice_is_obeyed_twice() -> None:
    """The second time while the member has not given up yet what it has to."""
    world = ConsumerWorld(GroupConfig(consumer=ConsumerGroupConfig(assignment_interval_ms=1_000)), foo=1, bar=1, baz=1)
    world.enter("m1", "foo bar baz")
    assert assignment(world.told("m1", 2, topics="foo bar")) == {"foo": {0}, "bar": {0}}
    assert assignment(world.told("m1", 2, topics="foo")) == {"foo": {0}}


def test_a_group_has_settings_of_its_own() -> None:
    world = ConsumerWorld()
    names = ("consumer.assignment.interval.ms", "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms")
    world.use(topics(settings={(G, name): 14_000 for name in names}, foo=2))
    assert world.enter("m1").heartbeat_interval_ms == 14_000
    world.enter("m2")
    assert world.group.assignment_epoch == 2
    world.pass_ms(14_000)
    assert world.group.assignment_epoch == 3
    world.pass_ms(31_000)
    assert not world.group.members, "its session is not shorter than the broker's least"


@pytest.mark.parametrize(
    ("wishes", "used"), [((None, None), "uniform"), (("range", None), "range"), (("range", "uniform"), "uniform")]
)
def test_the_assignor_that_most_members_wish(wishes: tuple[str | None, ...], used: str) -> None:
    world = ConsumerWorld()
    for number, wish in enumerate(wishes):
        world.enter(f"m{number}", server_assignor=wish)
    assert world.described().assignor_name == used


@pytest.fixture
def large() -> ConsumerWorld:
    """Its targets are computed in slices, which nobody runs."""
    world = ConsumerWorld(foo=MANY)
    world.enter("m1", instance="i")
    world.enter("m2")
    world.works = False
    return world


def work(world: ConsumerWorld, slices: int = 1_000) -> int:
    done = 0
    while world.shard.has_work and done < slices:
        world.shard.at(world.now_ms, world.wall_ms)
        world.shard.work()
        GroupWorld._take(world)
        world.commit_all()
        done += 1
    return done


def target(world: ConsumerWorld, member_id: str) -> int:
    return sum(len(one.partitions) for one in world.group.target_of(member_id))


def test_a_large_target_takes_several_slices(large: ConsumerWorld) -> None:
    large.use(topics(1, foo=4 * SLICE))
    before = large.group.assignment_epoch
    large.told("m2", large.group.current_of("m2").epoch)
    assert large.group.assignment_epoch == before
    assert work(large) >= 3
    assert large.group.assignment_epoch == before + 1
    assert target(large, "m1") == target(large, "m2") == 2 * SLICE


def test_a_static_member_that_is_replaced_meanwhile_gets_its_target(large: ConsumerWorld) -> None:
    large.enter("m3")
    assert work(large, 1) == 1 and large.shard.has_work
    large.told("m1", PAUSED, instance="i")
    large.enter("m4", instance="i")
    work(large)
    assert {one: target(large, one) for one in large.group.members} == dict.fromkeys(("m2", "m3", "m4"), SLICE)


def test_a_member_that_leaves_meanwhile_makes_another_target_necessary(large: ConsumerWorld) -> None:
    large.enter("m3")
    assert work(large, 1) == 1 and large.shard.has_work
    large.told("m2", -1)
    work(large)
    assert large.group.assignment_epoch == large.group.epoch
    assert {one: target(large, one) for one in large.group.members} == dict.fromkeys(("m1", "m3"), MANY // 2)


def test_a_group_that_is_deleted_meanwhile_stays_so(large: ConsumerWorld) -> None:
    large.enter("m3")
    assert work(large, 1) == 1 and large.shard.has_work
    large.pass_ms(45_000)
    assert large.answers[large.call("delete_group", G)] == 0
    work(large)
    assert large.shard.group_ids() == ()
    assert set({write.key: write.value for write in large.log}.values()) == {None}


# --- the records ---


def type_and_value(write: Write) -> tuple[int, str]:
    return int.from_bytes(write.key[:2], "big"), "" if write.value is None else write.value.hex()


@rule("group 2.2")
def test_the_order_and_bytes_of_a_new_groups_records() -> None:
    world = ConsumerWorld(foo=2)
    world.enter("m1")
    found = [type_and_value(write) for write in world.log]
    assert [kind for kind, _ in found] == [5, 3, 7, 6, 8]
    member, group, target_member, target_metadata, current = (bytes.fromhex(value) for _, value in found)
    assert member.hex() == "0000000002630b2f3132372e302e302e310204666f6f000000ea600000"
    assert group[:6].hex() == "000000000002" and group[6:9].hex() == "010008" and len(group) == 17
    assert target_member.hex() == "000002" + topic_id("foo").hex() + "0300000000000000010000"
    assert target_metadata.hex() == "000000000002010008" + world.wall_ms.to_bytes(8, "big").hex()
    epochs = "010009030000000200000002"
    assert current.hex() == (
        "000000000002000000000002" + topic_id("foo").hex() + "030000000000000001" + epochs + "0100"
    )


@rule("group 2.2")
def test_the_order_of_the_records_of_a_member_that_leaves() -> None:
    world = ConsumerWorld(foo=2)
    world.enter("m1")
    before = len(world.log)
    world.told("m1", -1)
    found = [(int.from_bytes(write.key[:2], "big"), write.value is None) for write in world.log[before:]]
    assert found == [(8, True), (7, True), (5, True), (3, False)]


@rule("group 2.2")
def test_the_order_of_the_records_of_a_static_member_that_comes_back() -> None:
    world = ConsumerWorld(foo=2)
    world.enter("m1", instance="i")
    world.told("m1", PAUSED, instance="i")
    before = len(world.log)
    world.enter("m2", instance="i")
    found = [(int.from_bytes(write.key[:2], "big"), write.value is None) for write in world.log[before:]]
    assert found == [(8, True), (7, True), (5, True), (5, False), (7, False), (8, False), (8, False)]
