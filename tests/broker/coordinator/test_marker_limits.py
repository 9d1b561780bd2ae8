"""How many markers are under way, what waits behind them, and that nothing of it is lost or holds up others."""

from __future__ import annotations

from itertools import count
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marker_source import Decisions

from quorumlog.errors import ErrorCode as E
from quorumlog.messages.transactions import (
    TransactionPartitionResult,
    TransactionTopicResult,
    WriteTxnMarkersResponse,
    WrittenMarker,
)
from quorumlog_broker.coordinator.transactions import markers
from quorumlog_broker.coordinator.transactions.marker_lanes import RETRY_MS, Owner, Work
from quorumlog_broker.coordinator.transactions.markers import (
    MAX_MARKERS,
    PARTITIONS_A_TURN,
    RESULTS_A_TURN,
    TRANSACTIONS_A_TURN,
    MarkerQueues,
    MarkerRequest,
)
from quorumlog_broker.coordinator.transactions.state.completion import DecidedTransaction
from quorumlog_broker.coordinator.transactions.state.table import Partition
from quorumlog_broker.produce.transactional import EndTransaction
from tests.rules import rule

Sent = tuple[int, Partition]
"""The producer id of a transaction, and where its marker goes."""


def sent_in(request: MarkerRequest) -> list[Sent]:
    return [
        (one.producer_id, (topic.name, index))
        for one in request.message.markers
        for topic in one.topics
        for index in topic.partitions
    ]


class Leaders:
    """Of partitions that are named by their first leader: ("t", 1) begins at 1. moved: to others. gone: deleted.

    unanswered: requests that are at their leader. confirmed: by the producer id of each transaction.
    """

    def __init__(self, max_pending: int) -> None:
        self.max_pending = max_pending
        self.moved: dict[int, int | None] = {}
        self.gone: set[int] = set()
        self.queues = MarkerQueues(self.leader_of, lambda _topic, index: index not in self.gone, max_pending)
        self.sources: dict[Owner, Decisions] = {}
        self.unanswered: list[MarkerRequest] = []
        self.now_ms = 0

    def leader_of(self, _topic: str, index: int) -> int | None:
        return self.moved.get(index, index % 10)

    def decide(self, producer_id: int, *indexes: int, owner: Owner = Owner(0, 1)) -> None:
        source = self.sources.setdefault(owner, Decisions())
        ending = EndTransaction(producer_id, 1, True, owner.leader_epoch, 2)
        source.add(DecidedTransaction(f"x{producer_id}", ending, tuple(("t", index) for index in indexes)))
        self.queues.offer(owner, source)

    def slice(self) -> list[MarkerRequest]:
        requests, results = self.queues.due(self.now_ms)
        for one in results:
            assert one.marker.partition[1] in self.gone and one.is_written
            self.sources[one.marker.owner].ended(one)
        self.unanswered += requests
        self.check()
        return requests

    def due(self) -> list[MarkerRequest]:
        """All slices of now."""
        found = []
        for _ in range(2_000):
            next_ms = self.queues.next_ms()
            if next_ms is None or next_ms > self.now_ms:
                return found
            found += self.slice()
        raise AssertionError("there is always something to do at once, and nothing is done")

    def check(self) -> None:
        """No leader has two requests, or more markers than it may have; and none of them twice."""
        leaders = [one.broker for one in self.unanswered]
        assert len(leaders) == len({*leaders})
        for lane in self.queues._lanes.values():
            assert len(lane.queue) + len(lane.in_flight) <= self.max_pending
        under_way = [one for request in self.unanswered for one in sent_in(request)]
        queued = [(one.ending.producer_id, one.partition) for lane in self.queues._lanes.values() for one in lane.queue]
        assert all(len(sent_in(one)) <= MAX_MARKERS for one in self.unanswered)
        for owner, source in self.sources.items():
            untaken = {*source.untaken}
            taken = [one for one in source.open if one not in untaken]
            assert all(self.queues.is_under_way(Work(owner, one)) for one in taken), "nobody sends its markers"
        assert len(queued) == len({*queued}) and len(under_way) == len({*under_way})

    def answer(self, request: MarkerRequest, failing: frozenset[int] = frozenset()) -> None:
        """failing: partitions whose markers are refused for now."""
        self.unanswered.remove(request)
        response = WriteTxnMarkersResponse(
            markers=tuple(
                WrittenMarker(
                    producer_id=producer_id,
                    topics=(
                        TransactionTopicResult(
                            name=partition[0],
                            partitions=(
                                TransactionPartitionResult(
                                    index=partition[1],
                                    error_code=E.NOT_ENOUGH_REPLICAS if partition[1] in failing else E.NONE,
                                ),
                            ),
                        ),
                    ),
                )
                for producer_id, partition in sent_in(request)
            )
        )
        for results in self.queues.answered(request.number, response, self.now_ms):
            assert len(results) <= RESULTS_A_TURN
            for one in results:
                assert one.is_written
                source = self.sources.get(one.marker.owner)
                assert source is not None, "told to a coordinator that leads no more"
                source.ended(one)

    def fail(self, request: MarkerRequest) -> None:
        self.unanswered.remove(request)
        self.queues.failed(request.number, self.now_ms)

    @property
    def is_done(self) -> bool:
        return not any(one.open for one in self.sources.values())

    def finish(self) -> None:
        """All leaders answer well from now on."""
        for _ in range(10_000):
            if self.is_done and not len(self.queues):
                break
            self.due()
            for request in list(self.unanswered):
                self.answer(request)
            self.now_ms += 10
        assert self.is_done, [one.open for one in self.sources.values()]
        assert len(self.queues) == 0, "looks at transactions that are complete"
        assert self.queues.next_ms() is None and not self.queues._held


def test_a_slice_takes_a_limited_number_of_transactions_and_the_next_follows_at_once() -> None:
    leaders = Leaders(10_000)
    for producer_id in range(5 * TRANSACTIONS_A_TURN):
        leaders.decide(producer_id, 1, 2)
    source = leaders.sources[Owner(0, 1)]
    for taken in (1, 2, 3):
        leaders.slice()
        assert len(source.untaken) == (5 - taken) * TRANSACTIONS_A_TURN
        assert leaders.queues.next_ms() == 0
    leaders.finish()


def test_a_transaction_of_many_partitions_is_cut_in_slices_too() -> None:
    """What is confirmed between two slices is not sent again: it would be late for the transaction."""
    leaders = Leaders(10_000)
    leaders.decide(7, *range(1, 10 * PARTITIONS_A_TURN, 10))
    asked, sent = 0, []
    while not leaders.is_done:
        requests = leaders.slice()
        asked += 1
        assert sum(map(len, leaders.queues._held.values())) <= asked * PARTITIONS_A_TURN
        sent += [one for request in requests for one in sent_in(request)]
        for request in list(leaders.unanswered):
            leaders.answer(request)
    assert sorted(sent) == [(7, ("t", index)) for index in range(1, 10 * PARTITIONS_A_TURN, 10)]
    leaders.decide(8, *range(1, 30 * PARTITIONS_A_TURN, 10))
    leaders.finish()


@rule("group 6.19")
def test_what_waits_is_ids_and_goes_on_as_answers_come() -> None:
    leaders = Leaders(3)
    for producer_id in range(10):
        leaders.decide(producer_id, 1)
    (first,) = leaders.due()
    assert len(sent_in(first)) == 3 and leaders.queues.next_ms() is None
    assert leaders.queues.waited == 7 and len(leaders.queues) == 10
    order = sent_in(first)
    leaders.answer(first)
    while requests := leaders.due():
        order += sent_in(requests[0])
        leaders.answer(requests[0])
    assert order == [(producer_id, ("t", 1)) for producer_id in range(10)], "in the order of the decisions"


def test_a_live_decision_waits_behind_those_of_before() -> None:
    leaders = Leaders(2)
    for producer_id in range(4):
        leaders.decide(producer_id, 1)
    (first,) = leaders.due()
    leaders.answer(first)
    leaders.decide(9, 1)
    (second,) = leaders.due()
    assert sent_in(second) == [(2, ("t", 1)), (3, ("t", 1))]
    leaders.finish()


@rule("group 6.19")
def test_a_leader_that_is_away_holds_up_nothing_that_goes_elsewhere() -> None:
    leaders = Leaders(2)
    for producer_id in range(50):
        leaders.decide(producer_id, 1, 2)
    for producer_id in range(50, 100):
        leaders.decide(producer_id, 2, 3)
    while requests := [one for one in leaders.due() if one.broker != 1]:
        for request in requests:
            leaders.answer(request)
    source = leaders.sources[Owner(0, 1)]
    assert sorted(source.open) == sorted(f"x{producer_id}" for producer_id in range(50))
    assert {one.partitions for one in source.open.values()} == {(("t", 1),)}
    leaders.finish()


def test_partitions_that_move_from_a_leader_that_is_away_are_sent_to_the_next() -> None:
    leaders = Leaders(2)
    for producer_id in range(50):
        leaders.decide(producer_id, 1)
    (lost,) = leaders.due()
    leaders.moved[1] = 2
    leaders.fail(lost)
    assert leaders.due() == [], "it is not asked again at once"
    leaders.now_ms += RETRY_MS
    (moved,) = leaders.due()
    assert moved.broker == 2
    leaders.finish()


def test_a_leader_that_does_not_answer_is_asked_again_after_a_pause_only() -> None:
    leaders = Leaders(2)
    for producer_id in range(5_000):
        leaders.decide(producer_id, 1)
    for _ in range(5):
        (lost,) = leaders.due()
        leaders.fail(lost)
        assert leaders.due() == []
        leaders.now_ms += RETRY_MS
    leaders.queues.remove(Owner(0, 1))
    assert len(leaders.queues) == 0


def test_a_partition_that_goes_on_failing_costs_a_limited_number_of_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markers, "MAX_MARKERS", 4)
    leaders = Leaders(8)
    for producer_id in range(40):
        leaders.decide(producer_id, 11)
    for producer_id in range(40, 60):
        leaders.decide(producer_id, 1)
    failing = frozenset({11})
    while requests := leaders.due():
        leaders.answer(requests[0], failing)
    source = leaders.sources[Owner(0, 1)]
    assert len(source.open) == 40, "the other partition of this leader is not held up"
    for _ in range(20):
        leaders.now_ms += RETRY_MS
        sent = 0
        while requests := leaders.due():
            sent += len(sent_in(requests[0]))
            leaders.answer(requests[0], failing)
        assert 0 < sent <= 4
    leaders.finish()


@given(
    max_pending=st.integers(1, 4),
    decided=st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=6, unique=True), min_size=1, max_size=5),
)
def test_markers_that_all_fail_at_once_are_sent_again_only_after_a_while(
    max_pending: int, decided: list[list[int]]
) -> None:
    """Although there is room for more of them as soon as the answer comes: a leader in this process answers at once."""
    world = Leaders(max_pending)
    for producer_id, indexes in enumerate(decided):
        world.decide(producer_id, *indexes)
    everything = frozenset(range(41))
    for _ in range(100):
        world.due()
        if not world.unanswered:
            break
        for request in [*world.unanswered]:
            world.answer(request, failing=everything)
    assert not world.unanswered, "they are sent again and again in the same millisecond"
    next_ms = world.queues.next_ms()
    assert next_ms is not None and next_ms > world.now_ms


def test_coordinators_have_turns() -> None:
    """One that has loaded very many decisions delays the decision of another by a slice or two."""
    leaders = Leaders(4)
    for producer_id in range(1_000):
        leaders.decide(producer_id, 1, owner=Owner(0, 1))
    (request,) = leaders.due()
    leaders.decide(5_000, 1, owner=Owner(1, 1))
    for _ in range(2):
        leaders.answer(request)
        (request,) = leaders.due()
    assert (5_000, ("t", 1)) in sent_in(request) or not leaders.sources[Owner(1, 1)].open
    leaders.finish()


def test_the_same_coordinator_loads_again_while_an_answer_is_on_its_way() -> None:
    """That answer is not for the core that it is now: a marker that it still has would be sent after the end."""
    leaders = Leaders(4)
    leaders.decide(7, 1)
    (flying,) = leaders.due()
    leaders.queues.remove(Owner(0, 1))
    del leaders.sources[Owner(0, 1)]
    leaders.decide(7, 1)
    leaders.due()
    leaders.answer(flying)
    assert not leaders.is_done, "not told by the answer of before"
    (again,) = leaders.due()
    leaders.answer(again)
    assert leaders.is_done and leaders.due() == []


@rule("group 6.19")
@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_lost_whatever_happens_to_requests_leaders_and_coordinators(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    for name, values in (("MAX_MARKERS", (2, 250)), ("TRANSACTIONS_A_TURN", (1, 3)), ("PARTITIONS_A_TURN", (1, 2, 99))):
        monkeypatch.setattr(markers, name, rng.choice(values))
    monkeypatch.setattr(markers, "RESULTS_A_TURN", rng.choice((1, RESULTS_A_TURN)))
    leaders = Leaders(rng.choice((1, 2, 5)))
    producer_ids, epochs = count(), {0: 1, 1: 1}
    indexes = [1, 11, 2, 12, 3]
    for _ in range(300):
        match rng.randrange(8):
            case 0 | 1:
                coordinator = rng.randrange(2)
                some = rng.sample(indexes, rng.randint(1, 4))
                leaders.decide(next(producer_ids), *some, owner=Owner(coordinator, epochs[coordinator]))
            case 2 | 3:
                leaders.slice()
            case 4 | 5 if leaders.unanswered:
                leaders.answer(rng.choice(leaders.unanswered), frozenset(rng.sample(indexes, rng.randint(0, 2))))
            case 6 if leaders.unanswered:
                leaders.fail(rng.choice(leaders.unanswered))
            case 7:
                fate = rng.random()
                if fate < 0.3:
                    leaders.moved[rng.choice(indexes)] = rng.choice([1, 2, 3, None])
                elif fate < 0.33:
                    leaders.gone.add(rng.choice(indexes))
                elif fate < 0.45:
                    load_again(leaders, rng.randrange(2), epochs, is_next=rng.random() < 0.5)
                else:
                    leaders.now_ms += rng.choice([1, 30, 2 * RETRY_MS])
        leaders.check()
    leaders.moved = {index: leader or 3 for index, leader in leaders.moved.items()}
    leaders.finish()


def load_again(leaders: Leaders, coordinator: int, epochs: dict[int, int], *, is_next: bool) -> None:
    """Here, in the same leader epoch or in a later one: every marker of an open transaction is missing again."""
    before = Owner(coordinator, epochs[coordinator])
    open_ones = leaders.sources.pop(before, Decisions()).open
    leaders.queues.remove(before)
    epochs[coordinator] += is_next
    owner = Owner(coordinator, epochs[coordinator])
    for one in open_ones.values():
        leaders.decide(one.ending.producer_id, *(index for _, index in one.partitions), owner=owner)
