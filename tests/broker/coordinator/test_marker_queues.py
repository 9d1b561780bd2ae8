"""Markers on their way to leaders: to whom, how often, and what ends it."""

from __future__ import annotations

import pytest
from marker_source import Decisions

from quorumlog.errors import ErrorCode as E
from quorumlog.messages.transactions import (
    TransactionPartitionResult,
    TransactionTopic,
    TransactionTopicResult,
    WriteTxnMarkersResponse,
    WrittenMarker,
)
from quorumlog_broker.coordinator.transactions import markers
from quorumlog_broker.coordinator.transactions.marker_lanes import RETRY_MS, Owner
from quorumlog_broker.coordinator.transactions.markers import MarkerQueues, MarkerRequest
from quorumlog_broker.coordinator.transactions.state.completion import DecidedTransaction
from quorumlog_broker.coordinator.transactions.state.table import Partition
from quorumlog_broker.produce.transactional import EndTransaction
from tests.rules import rule

A, B, C = ("a", 0), ("a", 1), ("b", 0)
OWNER = Owner(3, 8)
Told = list[tuple[str, Partition, bool]]


class Brokers:
    """Leaders 1 and 2, and what the queues do with their answers."""

    def __init__(self) -> None:
        self.leaders: dict[Partition, int | None] = {A: 1, B: 2, C: 1}
        self.queues = MarkerQueues(lambda *one: self.leaders[one], lambda *one: one in self.leaders, 100)
        self.sources: dict[Owner, Decisions] = {}
        self.told: Told = []

    def decide(
        self, *partitions: Partition, producer_id: int = 7, owner: Owner = OWNER, committed: bool = True
    ) -> None:
        ending = EndTransaction(producer_id, 1, committed, owner.leader_epoch, 2)
        source = self.sources.setdefault(owner, Decisions())
        source.add(DecidedTransaction(f"x{producer_id}", ending, partitions))
        self.queues.offer(owner, source)

    def due(self, now_ms: int = 0) -> list[MarkerRequest]:
        requests, results = self.queues.due(now_ms)
        self._note(results)
        return requests

    def _note(self, results: list[markers.MarkerResult]) -> None:
        for one in results:
            self.told.append((one.marker.transactional_id, one.marker.partition, one.is_written))
            self.sources[one.marker.owner].ended(one)

    def answer(
        self, request: MarkerRequest, code: E = E.NONE, *, now_ms: int = 0, lacks: Partition | None = None
    ) -> None:
        response = WriteTxnMarkersResponse(
            markers=tuple(
                WrittenMarker(
                    producer_id=marker.producer_id,
                    topics=tuple(
                        TransactionTopicResult(
                            name=topic.name,
                            partitions=tuple(
                                TransactionPartitionResult(index=index, error_code=code)
                                for index in topic.partitions
                                if (topic.name, index) != lacks
                            ),
                        )
                        for topic in marker.topics
                    ),
                )
                for marker in request.message.markers
            )
        )
        for results in self.queues.answered(request.number, response, now_ms):
            self._note(results)


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


def test_each_leader_gets_one_request_with_all_its_markers(brokers: Brokers) -> None:
    brokers.decide(A, B, C)
    brokers.decide(A, producer_id=8, committed=False)
    one, two = brokers.due()
    assert (one.broker, two.broker) == (1, 2)
    first, second = one.message.markers
    assert (first.producer_id, first.producer_epoch, first.committed, first.coordinator_epoch) == (7, 1, True, 8)
    assert first.transaction_version == 2
    assert first.topics == tuple(TransactionTopic(name=name, partitions=(0,)) for name in "ab")
    assert (second.producer_id, second.committed) == (8, False)
    assert len(brokers.queues) == 4
    brokers.answer(two)
    assert brokers.told == [("x7", B, True)]
    brokers.answer(one)
    assert sorted(brokers.told) == [("x7", A, True), ("x7", B, True), ("x7", C, True), ("x8", A, True)]
    assert len(brokers.queues) == 0 and brokers.queues.next_ms() is None


def test_the_next_request_waits_for_the_answer(brokers: Brokers) -> None:
    brokers.decide(A)
    (first,) = brokers.due()
    brokers.decide(C, producer_id=8)
    brokers.decide(B, producer_id=9)
    assert brokers.queues.next_ms() == 0
    assert [one.broker for one in brokers.due()] == [2], "another leader is not held up"
    assert brokers.queues.next_ms() is None
    brokers.answer(first)
    assert brokers.queues.next_ms() == 0
    assert [one.broker for one in brokers.due()] == [1]


@rule("group 6.14")
@pytest.mark.parametrize(
    "code",
    [
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.NOT_LEADER_OR_FOLLOWER,
        E.REQUEST_TIMED_OUT,
        E.NOT_ENOUGH_REPLICAS,
        E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        E.KAFKA_STORAGE_ERROR,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.NOT_COORDINATOR,
        E.UNKNOWN_SERVER_ERROR,
    ],
)
def test_what_may_pass_is_sent_again_to_the_leader_of_then(brokers: Brokers, code: E) -> None:
    brokers.decide(A)
    (first,) = brokers.due()
    brokers.answer(first, code, now_ms=50)
    brokers.leaders[A] = 2
    assert brokers.queues.next_ms() == 50 + RETRY_MS and brokers.due(49 + RETRY_MS) == []
    (second,) = brokers.due(50 + RETRY_MS)
    assert second.broker == 2 and second.message == first.message and second.number != first.number
    brokers.answer(second)
    assert brokers.told == [("x7", A, True)]


@rule("group 6.14")
@pytest.mark.parametrize("code", [E.INVALID_PRODUCER_EPOCH, E.TRANSACTION_COORDINATOR_FENCED])
def test_what_a_newer_one_does_stops_the_marker(brokers: Brokers, code: E) -> None:
    brokers.decide(A)
    (request,) = brokers.due()
    brokers.answer(request, code)
    assert brokers.told == [("x7", A, False)] and len(brokers.queues) == 0


@rule("bug 19999")
def test_without_an_answer_it_is_sent_again(brokers: Brokers) -> None:
    brokers.decide(A, C)
    (first,) = brokers.due()
    brokers.queues.failed(first.number, 10)
    (second,) = brokers.due(10 + RETRY_MS)
    brokers.answer(second, lacks=C, now_ms=500)
    assert brokers.told == [("x7", A, True)], "an answer that does not name it tells nothing"
    (third,) = brokers.due(500 + RETRY_MS)
    brokers.answer(third)
    assert brokers.told == [("x7", A, True), ("x7", C, True)]


def test_without_a_leader_it_waits(brokers: Brokers) -> None:
    brokers.leaders[A] = None
    brokers.decide(A)
    assert brokers.due(0) == [] and brokers.queues.next_ms() == RETRY_MS
    brokers.leaders[A] = 2
    assert [one.broker for one in brokers.due(RETRY_MS)] == [2]


@rule("group 6.14", "bug 9777")
def test_a_deleted_topic_needs_no_marker(brokers: Brokers) -> None:
    brokers.decide(A, C)
    (request,) = brokers.due()
    brokers.answer(request, E.UNKNOWN_TOPIC_OR_PARTITION)
    del brokers.leaders[C]
    (again,) = brokers.due(RETRY_MS)
    assert brokers.told == [("x7", C, True)]
    assert again.message.markers[0].topics == (TransactionTopic(name="a", partitions=(0,)),)


def test_a_coordinator_that_leads_no_more_sends_nothing(brokers: Brokers) -> None:
    other = Owner(4, 2)
    brokers.decide(A)
    (flying,) = brokers.due()
    brokers.decide(C, producer_id=8)
    brokers.decide(C, producer_id=9, owner=other)
    brokers.due()
    brokers.leaders[B] = None
    brokers.decide(B, producer_id=10)
    brokers.due()
    brokers.queues.remove(OWNER)
    brokers.answer(flying)
    assert brokers.told == []
    (left,) = brokers.due(RETRY_MS)
    assert [one.producer_id for one in left.message.markers] == [9]
    brokers.queues.remove(Owner(4, 1))
    brokers.answer(left)
    assert brokers.told == [("x9", C, True)], "the end of an earlier leadership is old news"


@pytest.mark.parametrize("is_removed", [True, False])
def test_the_next_leadership_sends_its_own_markers(brokers: Brokers, is_removed: bool) -> None:
    brokers.decide(A, C)
    (flying,) = brokers.due()
    brokers.decide(C, producer_id=8)
    brokers.due()
    if is_removed:
        brokers.queues.remove(OWNER)
    brokers.decide(A, owner=Owner(3, 9))
    brokers.answer(flying, E.NOT_LEADER_OR_FOLLOWER)
    (again,) = brokers.due(RETRY_MS)
    assert [(one.producer_id, one.coordinator_epoch) for one in again.message.markers] == [(7, 9)]
    brokers.answer(again)
    assert brokers.told == [("x7", A, True)] and len(brokers.queues) == 0


def test_a_request_has_a_limit(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markers, "MAX_MARKERS", 2)
    for producer_id in range(5):
        brokers.decide(A, producer_id=producer_id)
    sent = []
    while requests := brokers.due():
        sent.append([one.producer_id for one in requests[0].message.markers])
        brokers.answer(requests[0])
    assert sent == [[0, 1], [2, 3], [4]]
