"""Transactions on one whole node, over gRPC, in both protocols: what becomes visible, and what never does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import OffsetFetchGroup, OffsetFetchRequest, OffsetFetchTopic, OffsetFetchTopics
from quorumlog.messages.transactions import (
    DescribeProducersRequest,
    ListTransactionsRequest,
    TransactionMarker,
    TransactionTopic,
    WriteTxnMarkersRequest,
)
from tests.rules import rule
from tests.scenarios.one_node import OneNode, RealNode, SimNode, make_topic
from tests.scenarios.transaction_place import FIRST, KEPT, Place

SOON = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}


@pytest.fixture(scope="module", params=["real", "sim"])
def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneNode]:
    made: OneNode = RealNode(tmp_path_factory.mktemp("txn"), SOON) if request.param == "real" else SimNode()
    yield made
    made.close()
    assert made.crashes == []


@pytest.fixture(params=[0, 2], ids=["tv1", "tv2"])
def place(at: OneNode, request: pytest.FixtureRequest) -> Iterator[Place]:
    made = Place(at, request.param)
    yield made
    at.do(made.connection.close())


def test_records_and_offsets_appear_with_the_commit(place: Place) -> None:
    client = place.client()

    async def first() -> None:
        assert await client.begin() == 0
        assert await client.send(place.topic, "a", "b") == 0
        assert await client.send(place.topic, "c") == 0
        assert await client.send_offset(place.group, place.topic, 7) == 0

    place.do(first())
    assert (place.committed(), place.stable(), place.offset(), place.state()) == ([], FIRST, -1, "Ongoing")
    assert place.do(client.end(committed=True)) == 0
    place.until_complete()
    assert (place.committed(), place.offset(), place.state()) == (["a", "b", "c"], 7, "CompleteCommit")

    async def second() -> None:
        assert await client.send(place.topic, "d") == 0
        assert await client.send_offset(place.group, place.topic, 8) == 0
        assert await client.end(committed=False) == 0
        assert await client.send(place.topic, "e") == 0
        assert await client.end(committed=True) == 0

    place.do(second())
    place.until_complete()
    assert (place.committed(), place.offset()) == (["a", "b", "c", "e"], 7)


@rule("group 4.12")
def test_a_stable_offset_waits_for_the_transaction_that_may_change_it(place: Place) -> None:
    """KIP-447: a consumer that takes over must not begin at an offset that is about to be replaced."""

    def stable() -> tuple[int, int]:
        topics = OffsetFetchTopics(topics=(OffsetFetchTopic(name=place.topic, partitions=(0,)),))
        group = OffsetFetchGroup(group_id=place.group, topics=topics)
        found = place.call(OffsetFetchRequest(groups=(group,), require_stable=True)).groups[0].topics[0].partitions[0]
        return found.error_code, found.committed_offset

    client = place.client()

    async def open_one() -> None:
        assert await client.begin() == 0
        assert await client.send(place.topic, "a") == 0
        assert await client.send_offset(place.group, place.topic, 7) == 0

    place.do(open_one())
    assert stable() == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1) and place.offset() == -1
    assert place.do(client.end(committed=True)) == 0
    place.until_complete()
    assert stable() == (ErrorCode.NONE, 7)


def test_a_new_producer_fences_the_former_one_and_aborts_what_it_left(place: Place) -> None:
    old, new = place.client(), place.client()

    async def run() -> None:
        assert await old.begin() == 0
        assert await old.send(place.topic, "lost") == 0
        assert await new.begin() == 0
        assert (new.producer_id, new.epoch) > (old.producer_id, old.epoch)
        fenced = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
        assert await old.send(place.topic, "late") in fenced
        assert await old.end(committed=True) == ErrorCode.PRODUCER_FENCED
        assert await new.send(place.topic, "kept") == 0
        assert await new.end(committed=True) == 0

    place.do(run())
    place.until_complete()
    assert place.committed() == ["kept"]


def test_a_transaction_that_takes_too_long_is_aborted(place: Place) -> None:
    client = place.client()

    async def run() -> None:
        assert await client.begin(timeout_ms=500) == 0
        assert await client.send(place.topic, "late") == 0

    place.do(run())
    place.until_complete()
    assert place.state() == "CompleteAbort"
    assert (place.committed(), place.stable()) == ([], FIRST + 2)


def test_a_batch_whose_partition_was_not_added_is_refused(at: OneNode) -> None:
    place = Place(at, 0)
    client = place.client()

    async def run() -> int:
        assert await client.begin() == 0
        assert await client.add(place.topic) == 0
        other = client.produce("other", "x")
        answer = await client.call(other)
        return int(answer.topics[0].partitions[0].error_code)

    place.do(make_topic(place.connection, "other", **KEPT))
    assert place.do(run()) == ErrorCode.TRANSACTION_ABORTABLE
    at.do(place.connection.close())


def test_tools_see_what_is_open_and_abort_it(at: OneNode) -> None:
    place = Place(at, 0)
    client = place.client()

    async def run() -> None:
        assert await client.begin() == 0
        assert await client.send(place.topic, "open") == 0

    place.do(run())
    listed = place.call(
        ListTransactionsRequest(state_filters=("Ongoing", "Nothing"), transactional_id_pattern=place.id)
    )
    assert [(one.transactional_id, one.state) for one in listed.transactions] == [(place.id, "Ongoing")]
    assert listed.unknown_state_filters == ("Nothing",)
    topics = (TransactionTopic(name=place.topic, partitions=(0, 9)),)
    producers = place.call(DescribeProducersRequest(topics=topics)).topics[0].partitions
    assert [one.error_code for one in producers] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    (active,) = producers[0].active_producers
    assert (active.producer_id, active.current_transaction_start_offset) == (client.producer_id, FIRST)
    marker = TransactionMarker(
        producer_id=client.producer_id,
        producer_epoch=client.epoch,
        committed=False,
        topics=(TransactionTopic(name=place.topic, partitions=(0,)),),
        coordinator_epoch=active.coordinator_epoch,
    )
    written = place.call(WriteTxnMarkersRequest(markers=(marker,)))
    assert written.markers[0].topics[0].partitions[0].error_code == 0
    assert place.stable() == FIRST + 2 and place.committed() == []
    at.do(place.connection.close())


def test_transactions_that_follow_each_other_at_once_never_meet_the_markers_of_the_last(place: Place) -> None:
    client = place.client()

    async def run() -> None:
        assert await client.begin() == 0
        for number in range(30):
            assert await client.send(place.topic, str(number)) == 0
            assert await client.send_offset(place.group, place.topic, number) == 0
            assert await client.end(committed=number % 2 == 0) == 0

    place.do(run())
    place.until_complete()
    assert place.committed() == [str(number) for number in range(0, 30, 2)]
    assert place.offset() == 28
