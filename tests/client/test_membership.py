"""The core of a group's member against the core of its coordinator: rebalances with and without faults."""

from __future__ import annotations

from random import Random

import pytest
from member_world import MemberWorld, Process

from quorumlog.client.group.effects import GiveUp, Send, State
from quorumlog.client.group.protocol import Subscription, read_subscription
from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import JoinGroupResponse

EAGER, COOPERATIVE = ("range", "cooperative-sticky"), ("cooperative-sticky",)
BOTH = pytest.mark.parametrize(
    "strategies", [EAGER, COOPERATIVE, ("roundrobin",)], ids=["range", "sticky", "roundrobin"]
)
CALM_MS = 90_000


def told(process: Process, kind: str) -> list[str]:
    return [" ".join(f"{t}{i}" for t, i in sorted(parts)) for what, parts in process.told if what == kind]


def test_a_member_that_is_alone_gets_everything() -> None:
    world = MemberWorld(Random(1))
    one = world.start("x")
    world.run_until_calm(5_000)
    assert told(one, "assigned") == ["a0 a1 a2 b0 b1"] and told(one, "revoked") == []
    assert one.core.leads and one.core.state is State.STABLE and one.core.is_member


@BOTH
def test_without_faults_each_record_is_read_once_and_in_order(strategies: tuple[str, ...]) -> None:
    """Members come, go, and change what they subscribe to."""
    check_reading(MemberWorld(Random(2)), strategies)


def check_reading(world: MemberWorld, strategies: tuple[str, ...] = ("range",)) -> None:
    first = world.start("x", strategies=strategies)
    world.run_until_calm(CALM_MS)
    second = world.start("y", strategies=strategies)
    world.run_until_calm(CALM_MS)
    third = world.start("z", strategies=strategies, topics=("b",))
    world.run_until_calm(CALM_MS)
    second.core.subscribe(("a",))
    world.run_until_calm(CALM_MS)
    world.close(first)
    world.run_until_calm(CALM_MS)
    assert {topic for topic, _ in third.core.owned} == {"b"} and {t for t, _ in second.core.owned} == {"a"}
    for partition, offsets in world.reads.items():
        assert offsets == list(range(len(offsets))), partition


def test_a_cooperative_member_keeps_what_does_not_move() -> None:
    world = MemberWorld(Random(3))
    first = world.start("x", strategies=COOPERATIVE, topics=("a",))
    world.run_until_calm(CALM_MS)
    second = world.start("y", strategies=COOPERATIVE, topics=("a",))
    world.run_until_calm(CALM_MS)
    assert told(first, "revoked") == ["a2"] and told(second, "assigned")[-1] == "a2"
    assert [one for one in told(first, "assigned") if one] == ["a0 a1 a2"]


def test_an_eager_member_gives_all_up_before_it_joins_again() -> None:
    world = MemberWorld(Random(3))
    first = world.start("x", topics=("a",))
    world.run_until_calm(CALM_MS)
    world.start("y", topics=("a",))
    world.run_until_calm(CALM_MS)
    assert told(first, "revoked") == ["a0 a1 a2"]
    assert len(first.core.owned) in (1, 2)


def test_an_application_that_does_not_poll_leaves_and_comes_back() -> None:
    world = MemberWorld(Random(4))
    slow, other = world.start("x"), world.start("y")
    world.run_until_calm(CALM_MS)
    had = slow.core.owned
    slow.polls = False
    world.run(25_000)
    assert slow.core.state is State.UNJOINED and not slow.core.is_member and slow.core.owned == had
    assert len(other.core.owned) == 5
    slow.polls = True
    world.run_until_calm(CALM_MS)
    assert [kind for kind, _ in slow.told][-2:] == ["lost", "assigned"] and len(slow.core.owned) in (2, 3)


def test_a_session_that_ended_is_noticed_by_its_member() -> None:
    world = MemberWorld(Random(5))
    first, second = world.start("x"), world.start("y")
    world.run_until_calm(CALM_MS)
    world.processes.remove(first)  # its process is stopped
    world.run(15_000)
    assert len(second.core.owned) == 5
    world.processes.append(first)
    world.run_until_calm(CALM_MS)
    assert ("lost" in [kind for kind, _ in first.told]) and len(first.core.owned) in (2, 3)


def test_a_static_member_comes_back_to_its_place_without_a_rebalance() -> None:
    world = MemberWorld(Random(6))
    first, second = world.start("x", instance_id="i1"), world.start("y", instance_id="i2")
    world.run_until_calm(CALM_MS)
    had, generation = first.core.owned, second.core.generation
    world.close(first)
    again = world.start("x", instance_id="i1")
    world.run_until_calm(5_000)
    assert (again.core.owned, second.core.generation) == (had, generation)
    assert len(told(second, "assigned")) <= 2


def test_a_member_whose_instance_id_another_took_is_fenced_for_good() -> None:
    world = MemberWorld(Random(7))
    first = world.start("x", instance_id="i1")
    world.run_until_calm(CALM_MS)
    second = world.start("y", instance_id="i1")
    world.run(5_000)
    assert first.core.state is State.FENCED and first.core.owned == frozenset()
    assert set(first.errors) == {ErrorCode.FENCED_INSTANCE_ID} and len(first.errors) > 1
    assert len(second.core.owned) == 5


def test_no_common_assignor_is_an_error_of_the_one_that_comes() -> None:
    world = MemberWorld(Random(8))
    first = world.start("x")
    world.run_until_calm(CALM_MS)
    second = world.start("y", strategies=("roundrobin",))
    world.run(3_000)
    assert ErrorCode.INCONSISTENT_GROUP_PROTOCOL in second.errors and len(first.core.owned) == 5


def test_a_member_that_lost_its_place_while_it_joins_claims_nothing() -> None:
    world = MemberWorld(Random(8))
    core = world.start("x", strategies=COOPERATIVE).core
    world.run_until_calm(CALM_MS)
    core.subscribe(("a",))
    change = core.change()
    assert isinstance(change, GiveUp) and change.partitions == {("b", 0), ("b", 1)}
    core.done(change, world.now_ms)
    (first,) = core.take()
    assert isinstance(first, Send) and said(first).owned == {("a", 0), ("a", 1), ("a", 2)}
    core.answered(first.number, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID), world.now_ms)
    core.tick(world.now_ms + 2_000)
    (second,) = core.take()
    assert isinstance(second, Send) and said(second) == Subscription(("a",), user_data=b"\xff" * 4)
    assert second.request.member_id == "" and core.change() == GiveUp(core.owned, lost=True)


def said(effect: Send) -> Subscription:
    return read_subscription(effect.request.protocols[0].metadata)


def test_more_partitions_begin_a_rebalance() -> None:
    world = MemberWorld(Random(9))
    first, second = world.start("x"), world.start("y")
    world.run_until_calm(CALM_MS)
    leader = first if first.core.leads else second
    assert leader.core.watched_topics == ("a", "b")
    leader.core.counts_seen({"a": 3, "b": 2})
    assert leader.core.change() is None
    world.topics["b"] = 4
    leader.core.counts_seen({"a": 3, "b": 4})
    world.run_until_calm(CALM_MS)
    assert len(first.core.owned | second.core.owned) == 7


@pytest.mark.parametrize("seed", range(24))
def test_members_find_together_after_any_faults(seed: int) -> None:
    rng = Random(seed)
    check_faults(rng, MemberWorld(rng, losses=0.05), rng.choice([EAGER, COOPERATIVE, ("roundrobin",)]))


def check_faults(rng: Random, world: MemberWorld, strategies: tuple[str, ...] = ("range",)) -> None:
    """Lost calls and answers, fail-overs, deaths, hanging applications, changing subscriptions."""
    for number in range(60):
        chance = rng.random()
        if chance < 0.25 and len(world.processes) < 5:
            world.start(f"m{number}", strategies=strategies, instance_id=rng.choice([None, None, f"i{number}"]))
        elif chance < 0.4 and world.processes:
            rng.choice([world.kill, world.close])(rng.choice(world.processes))
        elif chance < 0.55:
            world.fail_over()
        elif chance < 0.65 and world.processes:
            rng.choice(world.processes).core.subscribe(rng.choice([("a",), ("b",), ("a", "b")]))
        elif chance < 0.8 and world.processes:
            one = rng.choice(world.processes)
            one.polls = not one.polls
        world.run(rng.choice([200, 1_000, 8_000]))
    world.losses = 0.0
    if not world.processes:
        world.start("last", strategies=strategies)
    for one in world.processes:
        one.polls = True
    world.run_until_calm(CALM_MS)
    for partition, offsets in world.reads.items():
        assert set(offsets) == set(range(max(offsets) + 1)), f"{partition} has a gap"
