"""Ends of transactions that others have left open: whom the admin client asks, and how a log tells the end of one."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import virtual_time
from fake_cluster import FakeCluster, TestClock

from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.administration import transactions as ends
from quorumlog.client.administration.transactions import OpenProducer, Outcome, TransactionPlace
from quorumlog.errors import ErrorCode as E
from quorumlog.messages.admin import (
    Coordinator,
    DescribeFeaturesRequest,
    DescribeFeaturesResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from quorumlog.messages.fetch import FetchRequest
from quorumlog.messages.transactions import (
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
)
from quorumlog.records import Record, encode_batch, headers
from quorumlog.records.control import EndTxnMarker, control_batch
from quorumlog.rpc.transport import RpcError

Work = Callable[[AsyncAdmin], Awaitable[Any]]
OURS, THEIRS = 11, 12  # producer ids
MANY = [OpenProducer(f"id-{number}", number, 3) for number in range(5)]


class Coordinators(FakeCluster):
    """Broker 1 or 2, by the last digit of an id, coordinates it. answers: to EndTxn, by id."""

    def __init__(self) -> None:
        super().__init__()
        self.moved: set[str] = set()
        self.answers: dict[str, E | Exception] = {}

    def node_of(self, name: str) -> int:
        return 1 + (int(name[-1]) + (name in self.moved)) % 2

    async def _FindCoordinatorRequest(self, node: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        assert request.key_type == 1
        return FindCoordinatorResponse(
            coordinators=tuple(
                Coordinator(key=key, node_id=self.node_of(key), host="b", port=1) for key in request.keys
            )
        )

    async def _DescribeFeaturesRequest(self, node: int, request: DescribeFeaturesRequest) -> DescribeFeaturesResponse:
        return DescribeFeaturesResponse()

    async def _DescribeTransactionsRequest(
        self, node: int, request: DescribeTransactionsRequest
    ) -> DescribeTransactionsResponse:
        return DescribeTransactionsResponse(
            transactions=tuple(self._told(node, one) for one in request.transactional_ids)
        )

    def _told(self, node: int, name: str) -> DescribedTransaction:
        code = E.NOT_COORDINATOR if self.node_of(name) != node else E.NONE
        if code is E.NONE and name == "id-3":
            code = E.TRANSACTIONAL_ID_NOT_FOUND
        return DescribedTransaction(transactional_id=name, error_code=code, state="Ongoing")

    async def _EndTxnRequest(self, node: int, request: EndTxnRequest) -> EndTxnResponse:
        if self.node_of(request.transactional_id) != node:
            return EndTxnResponse(error_code=E.NOT_COORDINATOR)
        answer = self.answers.get(request.transactional_id, E.NONE)
        if isinstance(answer, Exception):
            raise answer
        return EndTxnResponse(error_code=answer)


@pytest.fixture
def cluster() -> Coordinators:
    return Coordinators()


def run(cluster: FakeCluster, work: Work) -> Any:
    async def scenario() -> Any:
        options = {"bootstrap_servers": "b1:9092", "retry_backoff_ms": 1, "default_api_timeout_ms": 500}
        admin = AsyncAdmin(cluster, options, clock=TestClock(), rng=random.Random(1))  # type: ignore[arg-type]
        async with admin:
            return await work(admin)

    return virtual_time.run(scenario())


def asked(cluster: FakeCluster, kind: type) -> list[tuple[int, Any]]:
    return [(node, request) for node, request in cluster.requests if isinstance(request, kind)]


def test_many_are_described_by_their_coordinators_at_once(cluster: Coordinators) -> None:
    found = run(cluster, lambda admin: admin.describe_transactions([one.transactional_id for one in MANY]))
    assert sorted(found) == ["id-0", "id-1", "id-2", "id-4"], "id-3 is not known"
    told = [(node, len(request.transactional_ids)) for node, request in asked(cluster, DescribeTransactionsRequest)]
    assert sorted(told) == [(1, 3), (2, 2)]


def test_ids_are_asked_for_in_pieces(cluster: Coordinators, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends, "IDS_PER_REQUEST", 2)
    assert len(run(cluster, lambda admin: admin.describe_transactions([one.transactional_id for one in MANY]))) == 4
    assert max(len(request.keys) for _, request in asked(cluster, FindCoordinatorRequest)) == 2
    assert max(len(request.transactional_ids) for _, request in asked(cluster, DescribeTransactionsRequest)) == 2


def test_coordinators_that_have_moved_are_looked_up_again(cluster: Coordinators) -> None:
    def move(_request: object) -> None:
        cluster.moved.add("id-2")

    cluster.fault(DescribeTransactionsRequest, move)
    assert len(run(cluster, lambda admin: admin.describe_transactions([one.transactional_id for one in MANY]))) == 4


def test_each_end_has_its_own_answer(cluster: Coordinators) -> None:
    cluster.answers = {"id-1": E.CONCURRENT_TRANSACTIONS, "id-2": E.PRODUCER_FENCED, "id-4": RpcError("lost")}
    codes = run(cluster, lambda admin: admin.end_transactions(MANY, commit=True))
    assert codes == {
        "id-0": E.NONE, "id-1": E.CONCURRENT_TRANSACTIONS, "id-2": E.PRODUCER_FENCED, "id-3": E.NONE,
        "id-4": E.REQUEST_TIMED_OUT,
    }  # fmt: skip
    assert codes["id-4"].retriable, "it may have been carried out"
    sent = [request for _, request in asked(cluster, EndTxnRequest)]
    assert sorted((one.transactional_id, one.producer_id, one.producer_epoch, one.committed) for one in sent) == [
        (*one, True) for one in MANY
    ]


# --- what the log tells ---


def data(producer_id: int) -> bytes:
    rows = [Record(0, 5, b"k", b"v")]
    return encode_batch(
        rows, base_offset=0, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
    )


def marker(producer_id: int, *, commit: bool) -> bytes:
    return control_batch(
        [EndTxnMarker(commit, 1)], base_offset=0, timestamp_ms=5, producer_id=producer_id, producer_epoch=1
    )


PLACE = TransactionPlace("t", 0, 1, 1)
BEFORE = [data(THEIRS)]  # their transaction begins before ours


@pytest.mark.parametrize(
    ("behind", "want"),
    [
        ([], Outcome.OPEN),
        ([data(THEIRS)], Outcome.OPEN),
        ([marker(OURS, commit=True)], Outcome.COMMITTED),
        ([data(THEIRS), marker(OURS, commit=False)], Outcome.ABORTED),
        ([marker(THEIRS, commit=False)], Outcome.OPEN),
        ([marker(THEIRS, commit=True), marker(OURS, commit=False)], Outcome.ABORTED),
        ([marker(THEIRS, commit=False), data(THEIRS), marker(OURS, commit=True)], Outcome.COMMITTED),
    ],
)
@pytest.mark.parametrize("scan_bytes", [1, 1 << 20])
def test_how_ours_has_ended_beside_theirs(
    behind: list[bytes], want: Outcome, scan_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Theirs began before, and may be open still: the last stable offset says nothing of ours then."""
    monkeypatch.setattr(ends, "SCAN_BYTES", scan_bytes)
    cluster = filled([*BEFORE, data(OURS), *behind])
    assert run(cluster, lambda admin: admin.transaction_outcome(OURS, PLACE)) is want


def filled(batches: list[bytes]) -> FakeCluster:
    cluster = FakeCluster()
    log = cluster.topics["t"][0]
    began: dict[int, int] = {}
    for batch in batches:
        base = log.end
        (header,) = headers(batch)
        log.batches.append((base, base + 1, replaced(batch, base)))
        log.end += 1
        if header.is_control:
            first = began.pop(header.producer_id)
            if batch == marker(header.producer_id, commit=False):
                log.aborted.append((header.producer_id, first, base))
        else:
            began.setdefault(header.producer_id, base)
    log.first_open = min(began.values(), default=None)
    return cluster


def replaced(batch: bytes, base: int) -> bytes:
    """With this base offset, which no checksum covers."""
    return base.to_bytes(8, "big") + batch[8:]


def test_one_fetch_tells_once_nothing_is_open() -> None:
    """However much lies behind."""
    cluster = filled([*BEFORE, data(OURS), marker(OURS, commit=False), marker(THEIRS, commit=True)])
    assert run(cluster, lambda admin: admin.transaction_outcome(OURS, PLACE)) is Outcome.ABORTED
    assert len(asked(cluster, FetchRequest)) == 1


@pytest.mark.parametrize(
    ("place", "log_start"),
    [(PLACE, 3), (PLACE._replace(first=9, last=9), 0), (PLACE._replace(partition=1), 0)],
    ids=["trimmed", "made anew and shorter", "nothing of ours"],
)
def test_what_the_log_does_not_tell(place: TransactionPlace, log_start: int) -> None:
    cluster = filled([*BEFORE, data(OURS), marker(OURS, commit=True), marker(THEIRS, commit=True)])
    cluster.topics["t"][0].start = log_start
    assert run(cluster, lambda admin: admin.transaction_outcome(OURS, place)) is Outcome.UNKNOWN


def test_a_topic_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends, "MARKER_TIMEOUT_MS", 50)
    place = PLACE._replace(topic="gone")
    assert run(filled([]), lambda admin: admin.transaction_outcome(OURS, place)) is Outcome.UNKNOWN
