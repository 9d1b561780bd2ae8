"""Questions of leaders to the coordinators of transactions: one request at a time to each, what it comes to."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from transaction_peers import FakePeers, run, until

from quorumlog.errors import ApiError
from quorumlog.errors import ErrorCode as E
from quorumlog.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    ExtendedTransaction,
    TransactionPartitionResult,
    TransactionTopicResult,
)
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import NotDelivered, OutcomeUnknown
from quorumlog.turn import Turn
from quorumlog_broker.coordinator.runtime import verifier as module
from quorumlog_broker.coordinator.runtime.peers import Peers
from quorumlog_broker.coordinator.runtime.verifier import Producer, Verifier

A, B, C = ("a", 0), ("a", 1), ("b", 0)


def producer(name: str = "x", *, adds: bool = False) -> Producer:
    return Producer(name, 7, 1, adds)


def answer(request: AddPartitionsToTxnRequest, code: E = E.NONE, *, lacks: Any = None) -> AddPartitionsToTxnResponse:
    results = [
        ExtendedTransaction(
            transactional_id=one.transactional_id,
            topics=tuple(
                TransactionTopicResult(
                    name=topic.name,
                    partitions=tuple(
                        TransactionPartitionResult(index=index, error_code=code)
                        for index in topic.partitions
                        if (topic.name, index) != lacks
                    ),
                )
                for topic in one.topics
            ),
        )
        for one in request.transactions
    ]
    return AddPartitionsToTxnResponse(results=tuple(results))


def made(
    peers: FakePeers, turn: Turn, nursery: Nursery, *, leaders: dict[str, Any] | None = None, max_waiting: int = 100
) -> Verifier:
    def leader_for(name: str) -> int | None:
        leader = (leaders or {}).get(name, 2)
        if isinstance(leader, ApiError):
            raise leader
        return cast("int | None", leader)

    return Verifier(leader_for, cast(Peers, peers), max_waiting=max_waiting, turn=turn, nursery=nursery)


@pytest.mark.parametrize("adds", [False, True])
def test_a_question_names_its_producer_and_partition(adds: bool) -> None:
    async def scenario(peers: FakePeers, turn: Turn, nursery: Nursery) -> None:
        peers.plan(2, answer)
        assert await made(peers, turn, nursery).ask(producer(adds=adds), A) is E.NONE
        ((broker, request),) = peers.calls
        (asked,) = request.transactions
        assert broker == 2 and (asked.transactional_id, asked.producer_id, asked.producer_epoch) == ("x", 7, 1)
        assert (asked.verify_only, asked.transaction_version) == (not adds, 2 if adds else 0)
        assert [(topic.name, topic.partitions) for topic in asked.topics] == [("a", (0,))]

    run(scenario)


@pytest.mark.parametrize(
    ("reply", "want"),
    [
        (lambda request: answer(request, E.TRANSACTION_ABORTABLE), E.TRANSACTION_ABORTABLE),
        (lambda request: answer(request, E.CONCURRENT_TRANSACTIONS), E.CONCURRENT_TRANSACTIONS),
        (lambda request: answer(request, lacks=A), E.NETWORK_EXCEPTION),  # it says nothing of the partition
        (lambda _request: AddPartitionsToTxnResponse(), E.NETWORK_EXCEPTION),  # and nothing of the transaction
        (NotDelivered("gone"), E.NETWORK_EXCEPTION),
        (OutcomeUnknown("late"), E.NETWORK_EXCEPTION),
        (ApiError(E.COORDINATOR_LOAD_IN_PROGRESS, "soon"), E.COORDINATOR_LOAD_IN_PROGRESS),
    ],
)
def test_what_an_answer_or_its_absence_comes_to(reply: Any, want: E) -> None:
    async def scenario(peers: FakePeers, turn: Turn, nursery: Nursery) -> None:
        peers.plan(2, reply, answer)
        verifier = made(peers, turn, nursery)
        assert await verifier.ask(producer(), A) is want
        assert await verifier.ask(producer(), A) is E.NONE, "the next question goes out"

    run(scenario)


@pytest.mark.parametrize(
    ("leader", "want"),
    [(None, E.COORDINATOR_NOT_AVAILABLE), (ApiError(E.NOT_COORDINATOR, "no topic"), E.NOT_COORDINATOR)],
)
def test_nobody_is_asked_where_nobody_leads(leader: Any, want: E) -> None:
    async def scenario(peers: FakePeers, turn: Turn, nursery: Nursery) -> None:
        assert await made(peers, turn, nursery, leaders={"x": leader}).ask(producer(), A) is want
        assert peers.calls == []

    run(scenario)


def test_what_is_asked_meanwhile_goes_out_as_one_request_behind() -> None:
    async def scenario(peers: FakePeers, turn: Turn, nursery: Nursery) -> None:
        verifier = made(peers, turn, nursery, leaders={"z": 3})
        peers.plan(2, answer, answer)
        peers.plan(3, answer)
        peers.gate.clear()
        asked = [asyncio.create_task(verifier.ask(producer(), A))]
        await until(lambda: len(peers.calls) == 1)
        for name, partition in (("x", A), ("x", B), ("y", C), ("z", A)):
            asked.append(asyncio.create_task(verifier.ask(producer(name), partition)))
        await until(lambda: len(peers.calls) == 2)
        assert peers.called == [2, 3], "another coordinator does not wait, the busy one is left alone"
        peers.gate.set()
        assert await asyncio.gather(*asked) == [E.NONE] * 5
        (last,) = [request for broker, request in peers.calls[1:] if broker == 2]
        assert [(one.transactional_id, [topic.partitions for topic in one.topics]) for one in last.transactions] == [
            ("x", [(0, 1)]),
            ("y", [(0,)]),
        ]

    run(scenario)


def test_two_questions_about_one_partition_are_one_question() -> None:
    async def scenario(peers: FakePeers, turn: Turn, nursery: Nursery) -> None:
        verifier = made(peers, turn, nursery)
        peers.plan(2, answer)
        asked = [verifier.ask(producer(), A) for _ in range(2)]
        assert await asyncio.gather(*asked) == [E.NONE, E.NONE]
        assert len(peers.calls) == 1

    run(scenario)


def test_a_request_has_a_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_QUESTIONS", 2)

    async def scenario(peers: FakePeers, turn: Turn, nursery: Nursery) -> None:
        verifier = made(peers, turn, nursery)
        peers.plan(2, answer, answer, answer)
        asked = [verifier.ask(producer(f"x{number}"), A) for number in range(5)]
        assert await asyncio.gather(*asked) == [E.NONE] * 5
        assert [len(request.transactions) for _, request in peers.calls] == [2, 2, 1]

    run(scenario)


def test_a_coordinator_that_has_moved_is_asked_at_its_new_place() -> None:
    async def scenario(peers: FakePeers, turn: Turn, nursery: Nursery) -> None:
        leaders = {"x": 2}
        verifier = made(peers, turn, nursery, leaders=leaders)
        peers.plan(2, lambda request: answer(request, E.NOT_COORDINATOR))
        peers.plan(3, answer)
        assert await verifier.ask(producer(), A) is E.NOT_COORDINATOR
        leaders["x"] = 3
        assert await verifier.ask(producer(), A) is E.NONE
        assert peers.called == [2, 3]

    run(scenario)


def test_only_so_many_questions_wait() -> None:
    async def scenario(peers: FakePeers, turn: Turn, nursery: Nursery) -> None:
        verifier = made(peers, turn, nursery, max_waiting=2)
        peers.plan(2, answer, answer, answer)
        peers.gate.clear()
        asked = [asyncio.create_task(verifier.ask(producer(name), A)) for name in ("x", "y")]
        await until(lambda: len(peers.calls) == 1)
        assert await verifier.ask(producer("z"), A) is E.COORDINATOR_NOT_AVAILABLE
        peers.gate.set()
        assert await asyncio.gather(*asked) == [E.NONE, E.NONE]
        assert await verifier.ask(producer("z"), A) is E.NONE

    run(scenario)


def test_a_question_that_is_given_up_takes_no_place() -> None:
    async def scenario(peers: FakePeers, turn: Turn, nursery: Nursery) -> None:
        verifier = made(peers, turn, nursery, max_waiting=1)
        peers.plan(2, answer, answer)
        peers.gate.clear()
        asked = asyncio.create_task(verifier.ask(producer(), A))
        await until(lambda: len(peers.calls) == 1)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        peers.gate.set()
        assert await verifier.ask(producer(), B) is E.NONE

    run(scenario)
