"""The admin client and transactions: whom it asks, and what it makes of the answers. Which ones hang is a pure rule."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
import virtual_time
from fake_cluster import FakeCluster, TestClock

from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.administration.hanging import HangingTransaction, OpenTransaction, hanging, open_for_long
from quorumlog.client.errors import RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from quorumlog.messages.cluster import MetadataRequest
from quorumlog.messages.produce import InitProducerIdRequest, InitProducerIdResponse
from quorumlog.messages.transactions import (
    ActiveProducer,
    DescribedTransaction,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ProducersOfPartition,
    ProducersOfTopic,
    TransactionPartitionResult,
    TransactionTopic,
    TransactionTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    WrittenMarker,
)

Work = Callable[[AsyncAdmin], Awaitable[Any]]
NOW_MS = 1_700_000_000_000
KNOWN = DescribedTransaction(
    transactional_id="a",
    state="Ongoing",
    transaction_start_time_ms=NOW_MS - 5_000,
    producer_id=1,
    producer_epoch=4,
    topics=(TransactionTopic(name="t", partitions=(0,)),),
)
PRODUCER = ActiveProducer(
    producer_id=1,
    producer_epoch=4,
    last_sequence=9,
    last_timestamp_ms=NOW_MS - 60_000,
    coordinator_epoch=2,
    current_transaction_start_offset=40,
)


class TransactionCluster(FakeCluster):
    """Broker 2 coordinates the id `a`. producers: by partition of the topic `t`."""

    def __init__(self) -> None:
        super().__init__()
        self.known = {"a": KNOWN}
        self.producers = {0: (PRODUCER,), 1: (replace(PRODUCER, producer_id=9),), 2: ()}
        self.marker_error = ErrorCode.NONE

    async def _FindCoordinatorRequest(self, node: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        assert request.key_type == 1
        return FindCoordinatorResponse(
            coordinators=tuple(Coordinator(key=key, node_id=2, host="b2", port=1) for key in request.keys)
        )

    async def _ListTransactionsRequest(self, node: int, request: ListTransactionsRequest) -> ListTransactionsResponse:
        unknown = tuple(state for state in request.state_filters if state != "Ongoing")
        wanted = request.producer_id_filters
        listed = [
            ListedTransaction(transactional_id=name, producer_id=one.producer_id, state=one.state)
            for name, one in self.known.items()
            if node == 2 and (not wanted or one.producer_id in wanted)
        ]
        return ListTransactionsResponse(unknown_state_filters=unknown, transactions=tuple(listed))

    async def _DescribeTransactionsRequest(
        self, node: int, request: DescribeTransactionsRequest
    ) -> DescribeTransactionsResponse:
        code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if node == 2 else ErrorCode.NOT_COORDINATOR
        found = [
            self.known[name]
            if node == 2 and name in self.known
            else DescribedTransaction(transactional_id=name, error_code=code)
            for name in request.transactional_ids
        ]
        return DescribeTransactionsResponse(transactions=tuple(found))

    async def _DescribeProducersRequest(
        self, node: int, request: DescribeProducersRequest
    ) -> DescribeProducersResponse:
        (topic,) = request.topics
        parts = [
            ProducersOfPartition(index=index, active_producers=self.producers[index])
            if self.topics["t"][index].leader == node
            else ProducersOfPartition(index=index, error_code=6, error_message="it is elsewhere")
            for index in topic.partitions
        ]
        return DescribeProducersResponse(topics=(ProducersOfTopic(name=topic.name, partitions=tuple(parts)),))

    async def _WriteTxnMarkersRequest(self, node: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        (marker,) = request.markers
        (topic,) = marker.topics
        here = self.topics["t"][topic.partitions[0]].leader == node
        code = self.marker_error if here else ErrorCode.NOT_LEADER_OR_FOLLOWER
        result = TransactionTopicResult(
            name="t", partitions=(TransactionPartitionResult(index=topic.partitions[0], error_code=code),)
        )
        return WriteTxnMarkersResponse(markers=(WrittenMarker(producer_id=marker.producer_id, topics=(result,)),))


@pytest.fixture
def cluster() -> TransactionCluster:
    return TransactionCluster()


def run(cluster: TransactionCluster, work: Work) -> Any:
    async def scenario() -> Any:
        options = {"bootstrap_servers": "b1:9092", "retry_backoff_ms": 1, "default_api_timeout_ms": 500}
        admin = AsyncAdmin(cluster, options, clock=TestClock(), rng=random.Random(1))  # type: ignore[arg-type]
        async with admin:
            return await work(admin)

    return virtual_time.run(scenario())


def asked(cluster: TransactionCluster, kind: type) -> list[tuple[int, Any]]:
    return [(node, request) for node, request in cluster.requests if isinstance(request, kind)]


def code_of(cluster: TransactionCluster, work: Work) -> ErrorCode:
    with pytest.raises(RequestFailed) as caught:
        run(cluster, work)
    return caught.value.code


def test_every_broker_is_asked_for_its_ids(cluster: TransactionCluster) -> None:
    async def work(admin: AsyncAdmin) -> Any:
        return await admin.list_transactions(states=["Ongoing"], duration_ms=3_000, pattern="a.*")

    (found,) = run(cluster, work)
    assert (found.coordinator, found.transaction.transactional_id, found.transaction.state) == (2, "a", "Ongoing")
    requests = asked(cluster, ListTransactionsRequest)
    assert [node for node, _ in requests] == [1, 2, 3]
    wanted = ListTransactionsRequest(
        state_filters=("Ongoing",), duration_filter_ms=3_000, transactional_id_pattern="a.*"
    )
    assert all(request == wanted for _, request in requests)


def test_a_state_that_does_not_exist_is_no_empty_list(cluster: TransactionCluster) -> None:
    assert code_of(cluster, lambda admin: admin.list_transactions(states=["Odd"])) is ErrorCode.INVALID_REQUEST


def test_a_coordinator_that_loads_is_asked_again(cluster: TransactionCluster) -> None:
    cluster.fault(ListTransactionsRequest, lambda _request: ListTransactionsResponse(error_code=14))
    assert len(run(cluster, lambda admin: admin.list_transactions())) == 1


def test_an_id_is_described_by_its_coordinator(cluster: TransactionCluster) -> None:
    found = run(cluster, lambda admin: admin.describe_transaction("a"))
    assert (found.coordinator, found.transaction) == (2, KNOWN)
    missing = code_of(cluster, lambda admin: admin.describe_transaction("none"))
    assert missing is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_producers_are_those_of_the_leaders(cluster: TransactionCluster) -> None:
    found = run(cluster, lambda admin: admin.describe_producers([("t", 0), ("t", 1), ("t", 2)]))
    assert [one.producer_id for key in sorted(found) for one in found[key]] == [1, 9]
    assert sorted(node for node, _ in asked(cluster, DescribeProducersRequest)) == [1, 2, 3]


def test_one_replica_can_be_asked_and_is_not_asked_for_what_it_has_not(cluster: TransactionCluster) -> None:
    assert run(cluster, lambda admin: admin.describe_producers([("t", 1)], broker_id=2))[("t", 1)][0].producer_id == 9
    refused = code_of(cluster, lambda admin: admin.describe_producers([("t", 1)], broker_id=3))
    assert refused is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    "ask",
    [
        lambda admin: admin.describe_producers([("mistyped", 0)]),
        lambda admin: admin.abort_transaction(("mistyped", 0), 9, 4),
        lambda admin: admin.list_offsets({("mistyped", 0): -1}),
        lambda admin: admin.delete_records({("mistyped", 0): 5}),
    ],
    ids=["describe_producers", "abort_transaction", "list_offsets", "delete_records"],
)
def test_a_name_that_was_mistyped_makes_no_topic(cluster: TransactionCluster, ask: Work) -> None:
    """Brokers create what clients ask for, unless they are told not to."""
    run_until_refused(cluster, ask)
    named = [one for _, one in asked(cluster, MetadataRequest) if any(topic.name == "mistyped" for topic in one.topics)]
    assert named and not any(one.allow_auto_topic_creation for one in named)


def run_until_refused(cluster: TransactionCluster, work: Work) -> None:
    with pytest.raises(RequestFailed) as caught:
        run(cluster, work)
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("known", "sent"), [(-1, 0), (0, 0), (7, 7)])
def test_an_abort_is_a_marker_to_the_leader(cluster: TransactionCluster, known: int, sent: int) -> None:
    run(cluster, lambda admin: admin.abort_transaction(("t", 1), 9, 4, known))
    ((node, request),) = asked(cluster, WriteTxnMarkersRequest)
    (marker,) = request.markers
    assert node == 2 and not marker.committed and marker.transaction_version == 0
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (9, 4, sent)
    assert marker.topics == (TransactionTopic(name="t", partitions=(1,)),)


def test_a_refused_marker_is_raised(cluster: TransactionCluster) -> None:
    cluster.marker_error = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    refused = code_of(cluster, lambda admin: admin.abort_transaction(("t", 1), 9, 4))
    assert refused is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert len(asked(cluster, WriteTxnMarkersRequest)) == 1


def test_a_producer_is_fenced_once_its_transaction_has_ended(cluster: TransactionCluster) -> None:
    def busy(_request: Any) -> InitProducerIdResponse:
        return InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS)

    cluster.fault(InitProducerIdRequest, busy, busy, lambda _request: InitProducerIdResponse(
        producer_id=1, producer_epoch=6
    ))  # fmt: skip
    assert run(cluster, lambda admin: admin.fence_producer("a")) == (1, 6)
    requests = asked(cluster, InitProducerIdRequest)
    assert {node for node, _ in requests} == {2} and len(requests) == 3
    assert {(one.transactional_id, one.producer_id) for _, one in requests} == {("a", -1)}


def test_what_hangs_is_found_among_all_partitions(cluster: TransactionCluster) -> None:
    """Producer 1 has an id that lists its partition; nobody knows producer 9."""

    async def work(admin: AsyncAdmin) -> Any:
        keys = [("t", 0), ("t", 1), ("t", 2)]
        return await admin.find_hanging_transactions(keys, 10_000, now_ms=NOW_MS)

    (found,) = run(cluster, work)
    assert (found.partition, found.producer.producer_id, found.transactional_id) == (("t", 1), 9, None)
    cluster.producers = {0: (), 1: (), 2: ()}
    before = len(asked(cluster, ListTransactionsRequest))
    assert run(cluster, work) == [] and len(asked(cluster, ListTransactionsRequest)) == before


# --- the rule ---

P0, P1 = ("t", 0), ("t", 1)
OPEN = [
    ("open for long", {}, True),
    ("as long as it may be", {"last_timestamp_ms": NOW_MS}, False),
    ("just too long", {"last_timestamp_ms": NOW_MS - 1}, True),
    ("nothing is open", {"current_transaction_start_offset": -1}, False),
    ("from the first record on", {"current_transaction_start_offset": 0}, True),
]


@pytest.mark.parametrize(("changes", "expected"), [one[1:] for one in OPEN], ids=[one[0] for one in OPEN])
def test_a_transaction_is_a_candidate_after_the_longest_time_out(changes: dict[str, int], expected: bool) -> None:
    producer = replace(PRODUCER, **changes)
    wanted = [OpenTransaction(P0, producer)] if expected else []
    assert open_for_long({P0: (producer,)}, NOW_MS) == wanted


HANGING = [
    ("its id lists the partition", P0, {1: "a"}, {"a": KNOWN}, None),
    ("its id lists another partition", P1, {1: "a"}, {"a": KNOWN}, "a"),
    ("its id lists nothing", P0, {1: "a"}, {"a": replace(KNOWN, topics=())}, "a"),
    ("its id is gone meanwhile", P0, {1: "a"}, {}, "a"),
    ("no id has the producer", P0, {}, {"a": KNOWN}, ""),
]


@pytest.mark.parametrize(
    ("partition", "ids", "described", "expected"), [one[1:] for one in HANGING], ids=[one[0] for one in HANGING]
)
def test_a_candidate_hangs_unless_its_coordinator_knows_it(
    partition: tuple[str, int], ids: dict[int, str], described: dict[str, DescribedTransaction], expected: str | None
) -> None:
    """expected: the id that is shown; None: it does not hang."""
    found = hanging([OpenTransaction(partition, PRODUCER)], ids, described)
    wanted = [] if expected is None else [HangingTransaction(partition, PRODUCER, expected or None)]
    assert found == wanted
