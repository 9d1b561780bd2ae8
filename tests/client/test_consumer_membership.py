"""The core of a member of the consumer protocol against its coordinator's core, with and without faults."""

from __future__ import annotations

from random import Random

import pytest
from member_world import MemberWorld
from test_membership import CALM_MS, check_faults, check_reading, told

from quorumlog.client.group.consumer_membership import ConsumerMembership
from quorumlog.client.group.effects import GroupSettings, Send, State
from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse


def new_world(seed: int, losses: float = 0.0) -> MemberWorld:
    return MemberWorld(Random(seed), losses=losses, protocol="consumer")


def test_without_faults_each_record_is_read_once_and_in_order() -> None:
    check_reading(new_world(2))


def test_a_member_keeps_what_does_not_move() -> None:
    world = new_world(3)
    first = world.start("x", topics=("a",))
    world.run_until_calm(CALM_MS)
    second = world.start("y", topics=("a",))
    world.run_until_calm(CALM_MS)
    assert len(first.core.owned) == 2 and len(second.core.owned) == 1
    assert [len(one.split()) for one in told(first, "revoked")] == [1]


def test_an_application_that_does_not_poll_leaves_and_comes_back() -> None:
    world = new_world(4)
    slow, other = world.start("x"), world.start("y")
    world.run_until_calm(CALM_MS)
    slow.polls = False
    world.run(25_000)
    assert slow.core.state is State.UNJOINED and len(other.core.owned) == 5
    slow.polls = True
    world.run_until_calm(CALM_MS)
    assert "lost" in [kind for kind, _ in slow.told] and len(slow.core.owned) in (2, 3)


def test_a_session_that_ended_is_noticed_by_its_member() -> None:
    world = new_world(5)
    first, second = world.start("x"), world.start("y")
    world.run_until_calm(CALM_MS)
    world.processes.remove(first)
    world.run(15_000)
    assert len(second.core.owned) == 5
    world.processes.append(first)
    world.run_until_calm(CALM_MS)
    assert "lost" in [kind for kind, _ in first.told] and len(first.core.owned) in (2, 3)


def test_a_static_member_comes_back_to_its_place_without_a_rebalance() -> None:
    world = new_world(6)
    first, second = world.start("x", instance_id="i1"), world.start("y", instance_id="i2")
    world.run_until_calm(CALM_MS)
    had = first.core.owned
    changes = len(second.told)
    world.close(first)
    again = world.start("x", instance_id="i1")
    world.run_until_calm(5_000)
    assert again.core.owned == had and len(second.told) == changes


def test_an_instance_id_in_use_is_an_error_of_the_one_that_comes() -> None:
    world = new_world(7)
    first = world.start("x", instance_id="i1")
    world.run_until_calm(CALM_MS)
    second = world.start("y", instance_id="i1")
    world.run(3_000)
    assert set(second.errors) == {ErrorCode.UNRELEASED_INSTANCE_ID} and len(first.core.owned) == 5


def test_the_coordinator_finds_the_topics_of_a_pattern() -> None:
    world = new_world(8)
    process = world.start("x", topics=())
    assert process.core.subscribe_regex("a|c")
    world.run(5_000)
    assert {topic for topic, _ in process.core.owned} == {"a"}
    process.core.subscribe(("b",))
    world.run_until_calm(CALM_MS)
    assert {topic for topic, _ in process.core.owned} == {"b"}


def test_more_partitions_are_read_soon() -> None:
    world = new_world(9)
    world.start("x")
    world.run_until_calm(CALM_MS)
    world.add_partitions(b=4)
    world.run_until_calm(10_000)
    assert ("b", 3) in world.processes[0].core.owned


def test_a_wrong_pattern_is_an_error_with_the_coordinators_words() -> None:
    world = new_world(10)
    process = world.start("x", topics=())
    process.core.subscribe_regex("(")
    world.run(2_000)
    assert set(process.errors) == {ErrorCode.INVALID_REGULAR_EXPRESSION}


def test_heartbeats_say_what_has_changed_and_everything_after_a_lost_answer() -> None:
    core = ConsumerMembership(GroupSettings("g", remote_assignor="range"), lambda _: 100, "m")
    core.subscribe(("t",))
    change = core.change()
    assert change is not None
    core.done(change, 0)
    join = beat(core)
    assert join.member_epoch == 0 and join.server_assignor == "range" and join.rebalance_timeout_ms == 300_000
    assert join.subscribed_topic_names is not None and join.topic_partitions is not None
    core.answered(1, ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=3, heartbeat_interval_ms=1_000), 0)
    assert core.next_ms() == 1_000
    core.tick(1_000)
    quiet = beat(core)
    assert (quiet.member_epoch, quiet.rebalance_timeout_ms, quiet.topic_partitions) == (3, -1, None)
    assert quiet.subscribed_topic_names is None and quiet.subscribed_topic_regex is None
    core.failed(2, 1_000)
    core.tick(1_100)
    whole = beat(core)
    assert whole.member_epoch == 3 and whole.topic_partitions is not None and whole.rebalance_timeout_ms == 300_000


def beat(core: ConsumerMembership) -> ConsumerGroupHeartbeatRequest:
    (effect,) = core.take()
    assert isinstance(effect, Send) and isinstance(effect.request, ConsumerGroupHeartbeatRequest)
    return effect.request


@pytest.mark.parametrize("seed", range(16))
def test_members_find_together_after_any_faults(seed: int) -> None:
    check_faults(Random(seed), new_world(seed, losses=0.05))
