"""WriteTxnMarkers: what only a coordinator may have written, and what a client may end (KIP-664)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from broker_fakes import CLIENT, INTERNAL, FakeContext, Fakes, image_of, topic_records, usual_image, uuid

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.metadata_records import FeatureLevelRecord
from quorumlog.messages.transactions import (
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from quorumlog.rpc.transport import Listener, NotDelivered
from quorumlog.topic_name import TRANSACTION_STATE
from quorumlog_broker.api.handlers import HANDLERS
from quorumlog_broker.api.handlers.transaction_markers import MAX_CLIENT_MARKERS
from quorumlog_broker.coordinator.runtime.joint_children import JointChildren
from quorumlog_quorum.metadata.image import Image
from tests.rules import rule


@rule("group 6.13")
@pytest.mark.parametrize(
    ("listener", "committed", "version", "is_taken"),
    [
        (CLIENT, False, 0, True),
        (CLIENT, True, 0, False),
        (CLIENT, False, 2, False),
        (INTERNAL, True, 2, True),
        (INTERNAL, False, 0, True),
    ],
)
def test_which_markers_a_client_may_have_written(
    listener: Listener, committed: bool, version: int, is_taken: bool
) -> None:
    """A client that could commit would end the transactions of others."""
    marker = TransactionMarker(
        producer_id=7, producer_epoch=0, committed=committed, coordinator_epoch=-1, transaction_version=version
    )
    request = WriteTxnMarkersRequest(markers=(marker,))

    async def ask() -> WriteTxnMarkersResponse:
        handler = HANDLERS[WriteTxnMarkersRequest]
        response: WriteTxnMarkersResponse = await handler(Fakes().services(), FakeContext(listener=listener), request)
        return response

    if is_taken:
        assert [one.producer_id for one in asyncio.run(ask()).markers] == [7]
        return
    with pytest.raises(ApiError) as refusal:
        asyncio.run(ask())
    assert refusal.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


# --- children of joint transactions ---

P, E, GROUP = 7, 5, "spark/q"


@dataclass
class FakePeers:
    """Each broker looks at these partitions and knows these ids; an error is raised by broker 2."""

    looked_at: dict[int, tuple[int, ...]]
    known: tuple[ListedTransaction, ...] = ()
    error: Exception | None = None
    asked: list[tuple[int, ListTransactionsRequest]] = field(default_factory=list)

    async def call(self, broker: int, request: ListTransactionsRequest) -> ListTransactionsResponse:
        self.asked.append((broker, request))
        if broker == 2 and self.error is not None:
            raise self.error
        listed = tuple(one for one in self.known if broker == 2 and one.producer_id in request.producer_id_filters)
        return ListTransactionsResponse(transactions=listed, partitions=self.looked_at[broker])


def child(state: str, epoch: int = E, group: str = GROUP) -> ListedTransaction:
    return ListedTransaction(
        transactional_id="joint:spark/q:0:a", producer_id=P, state=state, joint_group=group, producer_epoch=epoch
    )


def state_topic(*leaders: int, joint_version: int = 1) -> Image:
    level = FeatureLevelRecord(name="joint.version", level=joint_version)
    return image_of([level, *topic_records(TRANSACTION_STATE, uuid(900), leaders)], usual_image())


def write(peers: FakePeers, image: Image, *, epoch: int = E, listener: Listener = CLIENT, count: int = 1) -> list[int]:
    """The producers whose markers were written. Raises ApiError."""
    fakes = Fakes()
    fakes.subscription.image = image
    marker = TransactionMarker(producer_id=P, producer_epoch=epoch, committed=False, coordinator_epoch=-1)

    async def ask() -> WriteTxnMarkersResponse:
        services = fakes.services()
        services.transactions.children = JointChildren(peers, lambda: image)  # type: ignore[arg-type]
        request = WriteTxnMarkersRequest(markers=(marker,) * count)
        response: WriteTxnMarkersResponse = await HANDLERS[WriteTxnMarkersRequest](
            services, FakeContext(listener=listener), request
        )
        return response

    return [one.producer_id for one in asyncio.run(ask()).markers]


# name, who is known to coordinators, epoch of the marker, is it written
CHILDREN: list[tuple[str, tuple[ListedTransaction, ...], int, bool]] = [
    ("nobody knows it", (), E, True),
    ("it is no child", (child("Ongoing", group=""),), E, True),
    ("open", (child("Ongoing"),), E, False),
    ("open, a marker of an earlier one", (child("Ongoing"),), E - 1, False),
    ("to commit", (child("PrepareCommit", E + 1),), E, False),
    ("to abort", (child("PrepareAbort", E + 1),), E, False),
    ("committed, of that transaction", (child("CompleteCommit", E + 1),), E, True),
    ("aborted, of that transaction", (child("CompleteAbort", E + 1),), E, True),
    ("ended, of the next transaction", (child("CompleteCommit", E + 1),), E + 1, False),
    ("ended, of a later transaction", (child("CompleteCommit", E + 1),), E + 9, False),
]


@pytest.mark.parametrize(("known", "epoch", "is_written"), [c[1:] for c in CHILDREN], ids=[c[0] for c in CHILDREN])
def test_a_client_ends_no_child_in_one_partition(
    known: tuple[ListedTransaction, ...], epoch: int, is_written: bool
) -> None:
    peers = FakePeers({1: (0,), 2: (1, 2)}, known)
    if is_written:
        assert write(peers, state_topic(1, 2, 2), epoch=epoch) == [P]
    else:
        with pytest.raises(ApiError, match=r"part of the joint transaction of 'spark/q'") as refusal:
            write(peers, state_topic(1, 2, 2), epoch=epoch)
        assert refusal.value.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert [broker for broker, _ in peers.asked] == [1, 2]
    assert {request.producer_id_filters for _, request in peers.asked} == {(P,)}


NOT_ASKED: list[tuple[str, Image, Listener]] = [
    ("a coordinator's marker", state_topic(2), INTERNAL),
    ("no transactional id was ever made", usual_image(), CLIENT),
    ("joint transactions are off", state_topic(2, joint_version=0), CLIENT),
]


@pytest.mark.parametrize(("image", "listener"), [c[1:] for c in NOT_ASKED], ids=[c[0] for c in NOT_ASKED])
def test_nobody_is_asked_where_no_child_can_be_torn(image: Image, listener: Listener) -> None:
    peers = FakePeers({}, error=AssertionError("asked"))
    assert write(peers, image, listener=listener) == [P]


LOADING = ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "loading")
GONE, LOADS = FakePeers({1: (0,)}, error=NotDelivered("refused")), FakePeers({1: (0,)}, error=LOADING)
MOVED = FakePeers({1: (0,), 2: ()})
UNKNOWN: list[tuple[str, tuple[int, ...], FakePeers, str]] = [
    ("a broker is gone", (1, 2), GONE, "broker 2 did not say so: refused"),
    ("a coordinator loads", (1, 2), LOADS, "broker 2 did not say so: COORDINATOR_LOAD_IN_PROGRESS"),
    ("no leader", (1, -1), MOVED, "__transaction_state-1 has no leader now"),
    ("a fenced leader", (1, 3), MOVED, "__transaction_state-1 has no leader now"),
    ("a partition that moves meanwhile", (1, 2), MOVED, "no broker has looked at __transaction_state-1"),
]


@pytest.mark.parametrize(("leaders", "peers", "says"), [c[1:] for c in UNKNOWN], ids=[c[0] for c in UNKNOWN])
def test_a_coordinator_that_says_nothing_may_know_a_child(
    leaders: tuple[int, ...], peers: FakePeers, says: str
) -> None:
    with pytest.raises(ApiError) as refusal:
        write(peers, state_topic(*leaders))
    assert refusal.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert says in refusal.value.message and "try again soon" in refusal.value.message


def test_a_clients_markers_have_a_limit() -> None:
    peers = FakePeers({2: (0,)})
    assert write(peers, state_topic(2), count=MAX_CLIENT_MARKERS) == [P] * MAX_CLIENT_MARKERS
    with pytest.raises(ApiError, match="Send several requests") as refusal:
        write(peers, state_topic(2), count=MAX_CLIENT_MARKERS + 1)
    assert refusal.value.code is ErrorCode.INVALID_REQUEST
    assert len(peers.asked) == 1
