"""Markers on their way: what is sent where and when, and what coordinators hear of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from marker_source import Decisions
from transaction_peers import FakePeers, LoopClock, run, until

from quorumlog.errors import ApiError
from quorumlog.errors import ErrorCode as E
from quorumlog.messages.transactions import (
    TransactionPartitionResult,
    TransactionTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    WrittenMarker,
)
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import NotDelivered, OutcomeUnknown
from quorumlog.turn import Turn
from quorumlog_broker.coordinator.runtime.marker_sender import MarkerSender
from quorumlog_broker.coordinator.runtime.peers import Peers
from quorumlog_broker.coordinator.transactions import marker_lanes, markers
from quorumlog_broker.coordinator.transactions.marker_lanes import Owner
from quorumlog_broker.coordinator.transactions.markers import MarkerQueues, MarkerResult
from quorumlog_broker.coordinator.transactions.state.completion import DecidedTransaction
from quorumlog_broker.coordinator.transactions.state.table import Partition
from quorumlog_broker.produce.transactional import EndTransaction
from tests.rules import rule

A, B, C = ("a", 0), ("a", 1), ("b", 0)
OWNER = Owner(3, 8)


@pytest.fixture(autouse=True)
def short_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (marker_lanes, markers):
        monkeypatch.setattr(module, "RETRY_MS", 2)


def answer(
    request: WriteTxnMarkersRequest, codes: dict[Partition, E] | None = None, *, lacks: Partition | None = None
) -> WriteTxnMarkersResponse:
    """With this error for a partition, else with none; without what it lacks."""
    written = [
        WrittenMarker(
            producer_id=marker.producer_id,
            topics=tuple(
                TransactionTopicResult(
                    name=topic.name,
                    partitions=tuple(
                        TransactionPartitionResult(index=index, error_code=(codes or {}).get((topic.name, index), 0))
                        for index in topic.partitions
                        if (topic.name, index) != lacks
                    ),
                )
                for topic in marker.topics
            ),
        )
        for marker in request.markers
    ]
    return WriteTxnMarkersResponse(markers=tuple(written))


class World:
    """Leaders 1 and 2."""

    def __init__(self, peers: FakePeers, turn: Turn, nursery: Nursery) -> None:
        self.peers = peers
        self.leaders: dict[Partition, int | None] = {A: 1, B: 2, C: 1}
        self.told: list[tuple[str, Partition, bool]] = []
        queues = MarkerQueues(lambda *one: self.leaders[one], lambda *one: one in self.leaders, 100)
        self.sources: dict[Owner, Decisions] = {}
        clock = LoopClock()
        self.sender = MarkerSender(queues, cast(Peers, peers), self.hear, clock=clock, turn=turn, nursery=nursery)

    def hear(self, results: Any) -> None:
        found: list[MarkerResult] = list(results)
        self.told += [(one.marker.transactional_id, one.marker.partition, one.is_written) for one in found]
        for one in found:
            self.sources[one.marker.owner].ended(one)

    def decide(
        self, *partitions: Partition, owner: Owner = OWNER, transactional_id: str = "x", producer_id: int = 7
    ) -> None:
        ending = EndTransaction(producer_id, 1, True, owner.leader_epoch, 2)
        source = self.sources.setdefault(owner, Decisions())
        source.add(DecidedTransaction(transactional_id, ending, partitions))
        self.sender.offer(owner, source)

    async def all_confirmed(self) -> None:
        await until(lambda: len(self.sender) == 0)

    def sent(self) -> list[tuple[int, list[Partition]]]:
        return [
            (
                broker,
                [(t.name, i) for one in request.markers for t in one.topics for i in t.partitions],
            )
            for broker, request in self.peers.calls
        ]


def in_world(scenario: Callable[[World], Any]) -> None:
    run(lambda peers, turn, nursery: scenario(World(peers, turn, nursery)))


def test_each_leader_gets_its_markers_in_one_request() -> None:
    async def scenario(world: World) -> None:
        world.peers.plan(1, answer)
        world.peers.plan(2, answer)
        world.decide(A, B, C)
        await world.all_confirmed()
        assert sorted(world.sent()) == [(1, [A, C]), (2, [B])]
        assert sorted(world.told) == [("x", A, True), ("x", B, True), ("x", C, True)]

    in_world(scenario)


@pytest.mark.parametrize(
    "failure",
    [
        NotDelivered("gone"),
        OutcomeUnknown("late"),
        ApiError(E.UNKNOWN_SERVER_ERROR, "its own fault"),
        lambda request: answer(request, {A: E.NOT_LEADER_OR_FOLLOWER}),
        lambda request: answer(request, {A: E.NOT_ENOUGH_REPLICAS}),
        lambda request: answer(request, {A: E.KAFKA_STORAGE_ERROR}),
        lambda request: answer(request, lacks=A),
    ],
)
def test_a_marker_is_sent_until_its_leader_has_confirmed_it(failure: Any) -> None:
    async def scenario(world: World) -> None:
        world.peers.plan(1, failure, failure, answer)
        world.decide(A)
        await world.all_confirmed()
        assert world.sent() == [(1, [A])] * 3
        assert world.told == [("x", A, True)]

    in_world(scenario)


def test_only_what_was_not_confirmed_is_sent_again() -> None:
    async def scenario(world: World) -> None:
        world.peers.plan(1, lambda request: answer(request, {C: E.NOT_LEADER_OR_FOLLOWER}), answer)
        world.decide(A, C)
        await world.all_confirmed()
        assert world.sent() == [(1, [A, C]), (1, [C])]
        assert world.told == [("x", A, True), ("x", C, True)]

    in_world(scenario)


def test_a_marker_follows_its_partition_to_the_next_leader() -> None:
    async def scenario(world: World) -> None:
        def moved(request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
            world.leaders[A] = 2
            return answer(request, {A: E.NOT_LEADER_OR_FOLLOWER})

        world.peers.plan(1, moved)
        world.peers.plan(2, answer)
        world.decide(A)
        await world.all_confirmed()
        assert world.sent() == [(1, [A]), (2, [A])]

    in_world(scenario)


def test_a_partition_without_a_leader_is_waited_for_and_a_deleted_one_is_not() -> None:
    async def scenario(world: World) -> None:
        world.leaders[A] = None
        world.decide(A, B)
        world.peers.plan(2, answer)
        await until(lambda: world.told == [("x", B, True)])
        assert len(world.sender) == 1
        del world.leaders[A]
        await world.all_confirmed()
        assert world.sent() == [(2, [B])] and world.told[-1] == ("x", A, True)

    in_world(scenario)


@pytest.mark.parametrize("code", [E.INVALID_PRODUCER_EPOCH, E.TRANSACTION_COORDINATOR_FENCED])
def test_a_fenced_marker_is_given_up(code: E) -> None:
    async def scenario(world: World) -> None:
        world.peers.plan(1, lambda request: answer(request, {A: code}))
        world.decide(A)
        await world.all_confirmed()
        assert world.sent() == [(1, [A])] and world.told == [("x", A, False)]

    in_world(scenario)


def test_a_leader_has_one_request_at_a_time() -> None:
    async def scenario(world: World) -> None:
        world.peers.plan(1, answer, answer)
        world.peers.plan(2, answer)
        world.peers.gate.clear()
        world.decide(A)
        await until(lambda: len(world.peers.calls) == 1)
        world.decide(C, transactional_id="y")
        world.decide(B, transactional_id="z")
        await until(lambda: len(world.peers.calls) == 2)
        assert world.sent() == [(1, [A]), (2, [B])]
        world.peers.gate.set()
        await world.all_confirmed()
        assert world.sent()[2:] == [(1, [C])]

    in_world(scenario)


def test_a_request_has_a_limited_number_of_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markers, "MAX_MARKERS", 2)

    async def scenario(world: World) -> None:
        many = [("c", index) for index in range(5)]
        world.leaders.update(dict.fromkeys(many, 1))
        world.peers.plan(1, answer, answer, answer)
        world.decide(*many)
        await world.all_confirmed()
        assert [len(partitions) for _, partitions in world.sent()] == [2, 2, 1]

    in_world(scenario)


def test_what_a_coordinator_that_has_resigned_had_to_send_is_forgotten() -> None:
    """The next leader of its partition sends it."""

    async def scenario(world: World) -> None:
        world.peers.plan(1, NotDelivered("gone"))
        world.peers.gate.clear()
        world.decide(A)
        await until(lambda: len(world.peers.calls) == 1)
        world.sender.remove(OWNER)
        world.peers.gate.set()
        await world.all_confirmed()
        await asyncio.sleep(0.02)
        assert world.sent() == [(1, [A])] and world.told == []

    in_world(scenario)


@rule("group 6.19")
def test_answers_are_told_and_the_next_are_sent_one_slice_in_a_turn_of_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three leaders that answer together make no turn three times as long."""
    for name, value in (("RESULTS_A_TURN", 2), ("TRANSACTIONS_A_TURN", 2)):
        monkeypatch.setattr(markers, name, value)

    async def scenario(world: World) -> None:
        in_turn: dict[int, int] = {}
        turn, loop = 0, asyncio.get_running_loop()

        def next_turn() -> None:
            nonlocal turn
            turn += 1
            loop.call_soon(next_turn)

        def told(results: Any) -> None:
            found = list(results)
            in_turn[turn] = in_turn.get(turn, 0) + len(found)
            world.hear(found)

        next_turn()
        monkeypatch.setattr(world.sender, "_tell", told)
        for broker in (1, 2):
            world.peers.plan(broker, *[answer] * 40)
        for number in range(40):
            world.decide(A, B, C, transactional_id=f"x{number}", producer_id=number)
        await until(lambda: len(world.told) == 120)
        assert max(in_turn.values()) == 2

    in_world(scenario)
