"""Unclean recovery: whom the controller asks, when it decides, and which log leads (KIP-966, strategy Balanced)."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from controller_world import World, cluster, registration, uuid
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest
from quorumlog.messages.brokers import UnregisterBrokerRequest
from quorumlog.messages.controller import GetReplicaLogInfoResponse, ReplicaLogInfo
from quorumlog.messages.reassignments import ElectionTopic, ElectLeadersRequest
from quorumlog_quorum.controller.partitions.unclean_recovery import (
    MAX_ASKED,
    MAX_LOOKS,
    RETRY_MS,
    Ask,
    LogEnd,
    Recoveries,
)
from quorumlog_quorum.controller.requests.alter_configs import SET
from quorumlog_quorum.metadata.registration import RECOVERING
from tests.parts import few
from tests.rules import rule

TIMEOUT_MS = 60_000
ENDS = {1: LogEnd(3, 10), 2: LogEnd(3, 20), 3: LogEnd(2, 90)}
BALANCED = {"unclean.recovery.strategy": "Balanced"}
TOPIC, BROKER = 2, 4


def at_a_loss(**configs: str) -> World:
    """Partition t-0 of brokers 1, 2, 3; broker 1 led alone, is gone, and may have lost what it had not synced."""
    world = cluster(1, 2, 3, unclean_recovery_timeout_ms=TIMEOUT_MS)
    world.create(replicas=(1, 2, 3), configs={"durability": "replicated", **configs})
    for broker_id in (2, 3, 1):
        world.fence(broker_id)
    world.ask(registration(1, 1))  # after an unclean stop
    partition = world.partition()
    assert (partition.isr, partition.eligible_leader_replicas, partition.last_known_elr) == ((), (), (1,))
    return world


def answer(world: World, ask: Ask, ends: dict[int, LogEnd]) -> None:
    """ends: a broker that is not in them does not answer."""
    end = ends.get(ask.broker_id)
    told = (
        ()
        if end is None
        else tuple(
            ReplicaLogInfo(
                topic_id=one.topic_id,
                index=one.index,
                last_written_leader_epoch=end.epoch,
                log_end_offset=end.end_offset,
            )
            for one in ask.queries
        )
    )
    epoch = world.tip.brokers[ask.broker_id].broker_epoch
    response = GetReplicaLogInfoResponse(broker_epoch=epoch, partitions=told)
    world.core.state.recoveries.on_answer(ask, None if end is None else response, world.now_ms)


def step(world: World) -> list[Ask]:
    asks, election = world.core.recover(world.now_ms)
    world.submit(election)
    world.finish()
    return asks


def recover(world: World, ends: dict[int, LogEnd]) -> list[int]:
    """All that happens now. Returns the brokers that were asked."""
    asked = []
    while asks := step(world):
        for ask in asks:
            asked.append(ask.broker_id)
            answer(world, ask, ends)
    return asked


@rule("kraft 9.24")
def test_the_longest_log_leads_once_the_last_known_leader_has_answered_too() -> None:
    world = at_a_loss(**BALANCED)
    world.start(2)
    world.start(3)
    assert recover(world, ENDS) == [2, 3]
    assert world.partition().leader == -1, "broker 1 led last: it may have more"
    world.heartbeat(1)
    assert recover(world, ENDS) == [1]
    partition = world.partition()
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (2, (2,), RECOVERING)
    assert world.core.counts.elections["unclean"] == 1 and len(world.core.state.recoveries) == 1
    world.now_ms += RETRY_MS
    assert recover(world, ENDS) == [] and len(world.core.state.recoveries) == 0


@rule("kraft 9.27")
def test_with_strategy_none_the_last_known_leader_leads_and_nobody_is_asked() -> None:
    world = at_a_loss()
    world.start(2)
    world.start(3)
    assert recover(world, ENDS) == [] and world.partition().leader == -1
    world.heartbeat(1)
    assert recover(world, ENDS) == [] and world.partition().leader == 1
    assert world.core.counts.elections["unclean"] == 1


def test_with_unclean_elections_enabled_the_first_live_replica_leads_at_once() -> None:
    world = at_a_loss(**BALANCED, **{"unclean.leader.election.enable": "true"})
    world.start(3)
    assert recover(world, ENDS) == [] and world.partition().leader == 3


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    ends: dict[int, LogEnd]
    alive: tuple[int, ...] = (1, 2, 3)
    waited_ms: int = 0
    leader: int
    asked: tuple[int, ...] = field(default=(1, 2, 3))


CASES = [
    Case(name="a later epoch is longer than more records", ends={**ENDS, 1: LogEnd(4, 1)}, leader=1),
    Case(name="of equal logs the last known leader's", ends=dict.fromkeys((1, 2, 3), LogEnd(3, 5)), leader=1),
    Case(name="an empty log", ends={1: LogEnd(-1, 0), 2: LogEnd(-1, 0), 3: LogEnd(0, 1)}, leader=3),
    Case(name="one that is alive does not answer", ends={1: ENDS[1], 3: ENDS[3]}, leader=-1),
    Case(
        name="one that is alive does not answer in time",
        ends={1: ENDS[1], 3: ENDS[3]},
        waited_ms=TIMEOUT_MS,
        leader=1,
    ),
    Case(name="the last known leader is away", ends=ENDS, alive=(2, 3), leader=-1, asked=(2, 3)),
    Case(
        name="the last known leader is away for too long",
        ends=ENDS,
        alive=(2, 3),
        waited_ms=TIMEOUT_MS,
        leader=2,
        asked=(2, 3),
    ),
    Case(name="another one is away", ends=ENDS, alive=(1, 3), leader=1, asked=(1, 3)),
    Case(name="nobody has answered in time", ends={}, waited_ms=TIMEOUT_MS, leader=-1, asked=(1, 2, 3, 1, 2, 3)),
]


@rule("kraft 9.23")
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_who_leads(case: Case) -> None:
    world = at_a_loss(**BALANCED)
    for broker_id in case.alive:
        world.heartbeat(broker_id) if broker_id == 1 else world.start(broker_id)
    asked = recover(world, case.ends)
    if case.waited_ms:
        world.now_ms += case.waited_ms
        asked += recover(world, case.ends)
    assert (world.partition().leader, tuple(asked)) == (case.leader, case.asked)


@rule("kraft 9.24")
def test_without_a_last_known_leader_every_replica_is_waited_for() -> None:
    world = World(unclean_recovery_timeout_ms=TIMEOUT_MS)
    for broker_id in (1, 2, 3):
        world.start(broker_id, log_directories=(uuid(broker_id), uuid(10 + broker_id)))
    world.create(replicas=(1, 2, 3), configs={"durability": "replicated", **BALANCED})
    for broker_id in (2, 3, 1):
        world.fence(broker_id)
    world.ask(registration(1, 1, log_directories=(uuid(21), uuid(22))))  # other disks, and it had told no directory
    assert (world.partition().eligible_leader_replicas, world.partition().last_known_elr) == ((), ())
    world.heartbeat(1)
    assert recover(world, ENDS) == [1] and world.partition().leader == -1
    world.start(2, 1)
    world.start(3, 1)
    assert recover(world, ENDS) == [2, 3] and world.partition().leader == 2


@rule("kraft 9.26")
def test_an_answer_of_an_older_process_does_not_count() -> None:
    world = at_a_loss(**BALANCED)
    world.heartbeat(1)
    (ask,) = step(world)
    world.fence(1)
    world.now_ms += 100_000
    old_epoch = world.tip.brokers[1].broker_epoch
    world.start(1, 2)
    (query,) = ask.queries
    told = ReplicaLogInfo(topic_id=query.topic_id, index=0, last_written_leader_epoch=3, log_end_offset=10)
    response = GetReplicaLogInfoResponse(broker_epoch=old_epoch, partitions=(told,))
    world.core.state.recoveries.on_answer(ask, response, world.now_ms)
    assert [again.broker_id for again in step(world)] == [1] and world.partition().leader == -1


@rule("kraft 9.26")
def test_an_answer_to_an_earlier_controller_does_not_count() -> None:
    world = at_a_loss(**BALANCED)
    world.heartbeat(1)
    (ask,) = step(world)
    world.new_controller()
    answer(world, ask, ENDS)
    assert [again.broker_id for again in step(world)] == [1] and world.partition().leader == -1


def test_a_replica_that_went_away_after_it_was_chosen_is_not_elected() -> None:
    world = at_a_loss(**BALANCED)
    world.heartbeat(1)
    (ask,) = step(world)
    answer(world, ask, ENDS)
    _, election = world.core.recover(world.now_ms)
    world.fence(1)
    world.submit(election)
    world.finish()
    assert world.partition().leader == -1 and world.core.counts.elections["unclean"] == 0


def test_a_failed_call_is_repeated_after_a_while() -> None:
    world = at_a_loss(**BALANCED)
    world.heartbeat(1)
    assert recover(world, {}) == [1]
    world.now_ms += RETRY_MS - 1
    assert recover(world, ENDS) == []
    world.now_ms += 1
    assert recover(world, ENDS) == [1] and world.partition().leader == 1


@rule("kraft 9.25")
def test_an_eligible_replica_that_is_away_is_waited_for() -> None:
    world = cluster(1, 2, 3, unclean_recovery_timeout_ms=0)
    world.create(replicas=(1, 2, 3), configs=BALANCED)
    for broker_id in (1, 2, 3):
        world.fence(broker_id)
    world.start(1, 1)
    world.now_ms += 1
    assert world.partition().eligible_leader_replicas == (3,)
    assert recover(world, ENDS) == [] and world.partition().leader == -1


def test_an_operator_need_not_wait() -> None:
    world = at_a_loss(**BALANCED)
    world.start(2)
    topics = (ElectionTopic(name="t", partitions=(0,)),)
    results = world.ask(ElectLeadersRequest(election_type=1, topics=topics, timeout_ms=1_000)).topics[0].partitions
    assert results[0].error_code == ErrorCode.NONE and "lost" in results[0].error_message
    assert world.partition().leader == 2 and recover(world, ENDS) == []


def test_a_broker_that_is_forgotten_is_no_longer_waited_for_in_the_elr() -> None:
    world = cluster(1, 2, 3, unclean_recovery_timeout_ms=TIMEOUT_MS)
    world.create(replicas=(1, 2, 3), configs=BALANCED)
    for broker_id in (2, 3, 1):
        world.fence(broker_id)
    world.start(2, 1)
    world.start(3, 1)
    assert recover(world, ENDS) == []
    world.ask(UnregisterBrokerRequest(broker_id=1))
    assert recover(world, ENDS) == [2, 3] and world.partition().leader == -1
    world.now_ms += TIMEOUT_MS
    recover(world, ENDS)
    assert world.partition().leader == 2


def test_the_strategy_is_set_while_partitions_wait_for_a_topic_and_for_all() -> None:
    for kind, name in ((TOPIC, "t"), (BROKER, "")):
        world = at_a_loss()
        world.start(2)
        assert recover(world, ENDS) == []
        change = AlterableConfig(name="unclean.recovery.strategy", operation=SET, value="Balanced")
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=(change,))
        (result,) = world.ask(IncrementalAlterConfigsRequest(resources=(resource,))).results
        assert result.error_code == ErrorCode.NONE and recover(world, ENDS) == [2]


def test_aggressive_is_refused_and_the_error_says_what_to_set_instead() -> None:
    world = cluster(1)
    result = world.create(replicas=(1,), configs={"unclean.recovery.strategy": "Aggressive"})
    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert "None, Balanced" in result.error_message and "unclean.leader.election.enable" in result.error_message


def test_many_partitions_are_asked_for_in_bounded_steps_and_calls() -> None:
    core = Recoveries(TIMEOUT_MS)
    world = cluster(1, 2, num_partitions=1)
    world.create(num_partitions=3 * MAX_LOOKS, replication_factor=1, configs=BALANCED)
    topic_id = world.tip.topic_ids["t"]
    for index in range(3 * MAX_LOOKS):
        core.want((topic_id, index), 0, 5)
    assert core.deadline_ms() == 5 and len(core) == 3 * MAX_LOOKS
    for left in (2, 1, 0):
        assert core.step(world.tip, 5) == ([], [])  # they have leaders
        assert len(core) == left * MAX_LOOKS
    assert MAX_ASKED == 1_000


@rule("kraft 9.23")
@settings(max_examples=few(40), deadline=None)
@given(st.integers(0, 2**32))
def test_whatever_happens_only_the_longest_log_that_answered_leads(seed: int) -> None:
    """Against a plain second answer: the largest of the ends that live replicas told, and nothing while one could be
    waited for."""
    rng = random.Random(seed)
    world = at_a_loss(**BALANCED)
    ends = {one: LogEnd(rng.randint(0, 2), rng.randint(0, 3)) for one in (1, 2, 3)}
    begun_ms = None
    for _ in range(30):
        partition = world.partition()
        if partition.leader != -1:
            break
        action, one = rng.choice(("start", "fence", "wait", "answer", "answer")), rng.randint(1, 3)
        match action:
            case "start" if world.tip.brokers[one].fenced:
                world.heartbeat(one)
            case "fence":
                world.fence(one)
            case "wait":
                world.now_ms += rng.choice((RETRY_MS, TIMEOUT_MS // 3))
        alive = [node for node in (1, 2, 3) if not world.tip.brokers[node].fenced]
        begun_ms = world.now_ms if alive and begun_ms is None else begun_ms
        deaf = [node for node in alive if rng.random() < 0.3]
        answering = {node: end for node, end in ends.items() if node not in deaf}
        asked = recover(world, answering)
        after = world.partition()
        if after.leader != -1:
            assert begun_ms is not None and after.leader in alive
            is_late = world.now_ms >= begun_ms + TIMEOUT_MS
            assert is_late or (1 in alive and ends[after.leader] == max(ends[node] for node in alive))
            sure = [ends[node] for node in alive if node in answering and (node in asked or not is_late)]
            assert ends[after.leader] >= max(sure, default=ends[after.leader])
            assert world.core.counts.elections["unclean"] == 1
