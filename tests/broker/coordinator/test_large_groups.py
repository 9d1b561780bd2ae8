"""Groups of thousands of members: what is done in steps, and what other calls see meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import MemberAssignment, SyncGroupRequest
from quorumlog.records.coordinator import consumer_groups as modern
from quorumlog.records.coordinator import encode_key
from quorumlog.records.coordinator.offsets import (
    GROUP_METADATA,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from quorumlog.settings.groups import GroupConfig
from quorumlog.slices import UNITS_A_SLICE, Sliced, at_once
from quorumlog_broker.coordinator.group_turn import Call, Write
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup
from quorumlog_broker.coordinator.groups.consumer.targets import RECORDS_A_SLICE
from quorumlog_broker.coordinator.groups.shard import TIMERS_A_TURN, GroupShard
from quorumlog_broker.coordinator.runtime import coordinator as runtime
from quorumlog_broker.coordinator.runtime.group_coordinator import GroupCoordinator
from quorumlog_broker.coordinator.runtime.long_calls import WAITING_A_TURN, LongCalls
from quorumlog_broker.coordinator.runtime.pending_answer import PendingAnswer
from tests.broker.coordinator.consumer_world import ConsumerWorld, topic_id
from tests.broker.coordinator.coordinator_cluster import CALLER, CoordinatorCluster, join
from tests.broker.coordinator.group_world import WALL_MS, G, GroupWorld, replay

MANY = 4 * UNITS_A_SLICE
EPOCH = 5


def consumer_group(members: int) -> list[Write]:
    """The log of one that is stable."""
    records: list[tuple[object, bytes]] = [
        (modern.ConsumerGroupMetadataKey(G), modern.GROUP.encode(modern.ConsumerGroupMetadataValue(EPOCH), 0)),
        (
            modern.ConsumerGroupTargetAssignmentMetadataKey(G),
            modern.TARGET.encode(modern.ConsumerGroupTargetAssignmentMetadataValue(EPOCH), 0),
        ),
    ]
    for number in range(members):
        member, foo = f"m{number}", topic_id("foo")
        records += (
            (
                modern.ConsumerGroupMemberMetadataKey(G, member),
                modern.MEMBER.encode(
                    modern.ConsumerGroupMemberMetadataValue(None, None, "c", "/h", ("foo",), None, 60_000, None), 0
                ),
            ),
            (
                modern.ConsumerGroupTargetAssignmentMemberKey(G, member),
                modern.TARGET_MEMBER.encode(
                    modern.ConsumerGroupTargetAssignmentMemberValue((modern.TargetPartitions(foo, (number,)),)), 0
                ),
            ),
            (
                modern.ConsumerGroupCurrentMemberAssignmentKey(G, member),
                modern.CURRENT_MEMBER.encode(
                    modern.ConsumerGroupCurrentMemberAssignmentValue(
                        EPOCH, EPOCH, 0, (modern.AssignedPartitions(foo, (number,), (EPOCH,)),), ()
                    ),
                    0,
                ),
            ),
        )
    return [Write(encode_key(key), value) for key, value in records]


def classic_group(members: int) -> list[Write]:
    """As `consumer_group`."""
    found = tuple(
        MemberMetadata(f"m{number}", "c", "/h", 45_000, b"said", b"mine", 60_000) for number in range(members)
    )
    value = GroupMetadataValue("consumer", 1, "range", "m0", found, WALL_MS)
    return [Write(encode_key(GroupMetadataKey(G)), GROUP_METADATA.encode(value, 3))]


def of_consumers() -> ConsumerWorld:
    world = ConsumerWorld(foo=MANY)
    world.log = consumer_group(MANY)
    world.fail_over()
    return world


@pytest.mark.parametrize("group", [consumer_group, classic_group])
def test_a_large_group_is_loaded_in_steps(group: Callable[[int], list[Write]]) -> None:
    shard, log = GroupShard(GroupConfig(), lambda: "u"), group(MANY)
    replay(log, shard)
    steps = sum(1 for _ in shard.load_groups(len(log)))
    assert steps >= 2 * MANY // UNITS_A_SLICE


def test_a_large_group_is_described_in_steps_and_as_it_was_when_the_call_came() -> None:
    world = of_consumers()
    steps = world.shard.describe_consumer_groups(Call(1, "c", "/h"), G)
    assert steps is not None and world.shard.take()[1] == []
    for number in (0, MANY - 1):
        for key in (modern.ConsumerGroupMemberMetadataKey, modern.ConsumerGroupCurrentMemberAssignmentKey):
            world.shard.replay_bytes(10 * MANY, encode_key(key(G, f"m{number}")), None)
    world.shard.replay_bytes(
        10 * MANY, encode_key(modern.ConsumerGroupTargetAssignmentMemberKey(G, f"m{MANY - 2}")), None
    )
    number_of_steps = 1 + sum(1 for _ in steps)
    assert number_of_steps >= 2 * MANY // UNITS_A_SLICE
    (answer,) = world.shard.take()[1]
    assert answer.response.group_state == "Stable"
    assert [one.member_id for one in answer.response.members] == [f"m{number}" for number in range(MANY)]
    for number, one in enumerate(answer.response.members):
        for given in (one.assignment, one.target_assignment):
            assert [(part.topic_name, part.partitions) for part in given] == [("foo", (number,))]


def test_the_state_of_a_large_group_is_known_without_a_look_at_its_members(monkeypatch: pytest.MonkeyPatch) -> None:
    """ListGroups asks for hundreds of groups in one turn."""
    world = of_consumers()
    monkeypatch.setattr(ConsumerGroup, "current_of", lambda *_: pytest.fail("a member was looked at"))
    assert [one.state for one in world.shard.list()] == ["Stable"]
    world.shard.replay_bytes(10 * MANY, encode_key(modern.ConsumerGroupCurrentMemberAssignmentKey(G, "m7")), None)
    assert [one.state for one in world.shard.list()] == ["Reconciling"]


def test_other_calls_of_the_group_go_on_while_it_is_described() -> None:
    """What the description tells is a copy, so nothing has to wait for it."""
    order: list[str] = []

    def told() -> Sliced[None] | None:
        def steps() -> Sliced[None]:
            for _ in range(3):
                yield
            order.append("described")

        return steps()

    def heartbeat() -> None:
        order.append("heartbeat")

    async def calls() -> None:
        long = LongCalls(lambda step: step())
        long.call_beside(G, told)
        assert not long.is_busy(G)
        long.call(G, heartbeat)
        for _ in range(10):
            await asyncio.sleep(0)

    asyncio.run(calls())
    assert order == ["heartbeat", "described"]


def test_a_description_waits_for_a_long_call_of_its_group_and_then_nobody_for_it() -> None:
    order: list[str] = []

    def steps(name: str) -> Sliced[None]:
        for _ in range(3):
            yield
        order.append(name)

    async def calls() -> None:
        long = LongCalls(lambda step: step())
        long.call(G, lambda: steps("deleted"))
        long.call_beside(G, lambda: steps("described"))
        long.call(G, lambda: order.append("heartbeat"))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not long.is_busy(G)

    asyncio.run(calls())
    assert order == ["deleted", "heartbeat", "described"]


def test_calls_that_have_waited_run_some_a_turn() -> None:
    a_turn: list[int] = [0]

    def counted(step: object) -> None:
        assert callable(step)
        a_turn.append(0)
        step()

    def call() -> None:
        a_turn[-1] += 1

    async def calls() -> None:
        long = LongCalls(counted)
        long.call(G, lambda: iter([None]))
        for _ in range(5 * WAITING_A_TURN):
            long.call(G, call)
        for _ in range(10):
            await asyncio.sleep(0)

    asyncio.run(calls())
    assert sum(a_turn) == 5 * WAITING_A_TURN and max(a_turn) == WAITING_A_TURN


# --- classic groups ---


def completing() -> GroupWorld:
    """All members of a large group have joined again; generation 2."""
    world = GroupWorld(GroupConfig(initial_rebalance_delay_ms=0))
    world.log = classic_group(MANY)
    world.fail_over()
    calls = [world.join(f"m{number}", protocols="range:said") for number in range(MANY)]
    assert {world.answers[call].generation_id for call in calls} == {2}
    return world


def leaders_sync() -> SyncGroupRequest:
    given = tuple(MemberAssignment(member_id=f"m{number}", assignment=b"new") for number in range(MANY))
    return SyncGroupRequest(group_id=G, generation_id=2, member_id="m0", assignments=given)


def test_the_leader_of_a_large_group_brings_its_assignment_in_steps() -> None:
    world = completing()
    followers = [world.sync(f"m{number}", 2) for number in (1, MANY - 1)]
    steps = world.shard.sync_group(Call(-1, "c", "/h"), leaders_sync())
    assert steps is not None and world.shard.take() == ([], [])
    assert sum(1 for _ in steps) + 1 >= MANY // UNITS_A_SLICE
    world._take()
    assert len(world.log) == 2
    world.commit_all()
    assert [world.answers[call].assignment for call in (-1, *followers)] == [b"new"] * 3
    assert world.heartbeat("m1", 2) == 0


def test_an_assignment_that_another_rebalance_has_overtaken_is_not_written() -> None:
    """A timer runs between two steps, and takes a member."""
    world = completing()
    steps = world.shard.sync_group(Call(-1, "c", "/h"), leaders_sync())
    assert steps is not None
    group = world.shard._groups[G]
    world.shard._generation._rebalance.remove(group, group.members["m7"])
    world.shard._generation.went(group)
    at_once(steps)
    world._take()
    assert len(world.log) == 1
    assert world.answers[-1].error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_of_a_large_group_that_falls_silent_some_members_are_taken_a_turn() -> None:
    world = of_consumers()
    world.shard.at(10**6, WALL_MS)
    group = world.shard._consumers.groups[G]
    left = [len(group.members)]
    while group.members:
        world.shard.timers_due()
        left.append(len(group.members))
        assert left[-2] - left[-1] == TIMERS_A_TURN or not group.members
        assert not group.members or (world.shard.next_timer_ms() or 10**9) <= 10**6


def test_many_answers_leave_some_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "ANSWERS_A_TURN", 2)
    given: list[int] = []
    answer_some = GroupCoordinator._answer_some

    def counted(self: GroupCoordinator) -> None:
        before = len(self._answers)
        answer_some(self)
        given.append(before - len(self._answers))

    monkeypatch.setattr(GroupCoordinator, "_answer_some", counted)
    cluster = CoordinatorCluster()
    cluster.create()
    ids = [cluster.ask(GroupShard.join, join()).member_id for _ in range(7)]
    joins: list[PendingAnswer] = [cluster.begin(GroupShard.join, join(member_id)) for member_id in ids]
    cluster.run_until(lambda: all(one.is_settled for one in joins))
    assert max(given) == 2
    assert [cluster.ended(one).member_id for one in joins] == ids


def test_answers_that_have_not_left_when_the_leadership_ends_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "ANSWERS_A_TURN", 1)
    cluster = CoordinatorCluster()
    cluster.create()
    calls: list[PendingAnswer] = []

    async def ask() -> None:
        coordinator = cluster.coordinator()
        monkeypatch.setattr(coordinator, "_answer_some", lambda: None)
        calls.append(coordinator.call(GroupShard.join, CALLER, join("unknown")))
        coordinator.close()

    cluster.nodes[1].run(ask())
    assert calls[0].is_settled
    with pytest.raises(Exception, match="does not lead"):
        cluster.ended(calls[0])


# --- the target of a large group ---


def test_targets_are_written_some_a_step_and_not_for_those_who_have_left() -> None:
    members = 3 * RECORDS_A_SLICE
    world = ConsumerWorld(foo=2 * members)
    world.works = False
    for number in range(members):
        world.enter(f"m{number}")
    written = list(_writes_by_slice(world))
    assert max(written) <= RECORDS_A_SLICE + 1
    assert sum(written) == members + 1
    assert world.group.assignment_epoch == world.group.epoch


def _writes_by_slice(world: ConsumerWorld) -> Iterator[int]:
    while world.shard.has_work:
        before = len(world.log)
        world.shard.work()
        world._take()
        yield len(world.log) - before
    world.commit_all()
