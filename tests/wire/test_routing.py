"""Which wire a request takes, as both ends see it: `Context.listener` is the listener by which it came."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from quorumlog.errors import ErrorCode
from quorumlog.ids import ZERO_UUID
from quorumlog.messages.admin import DescribeFeaturesRequest
from quorumlog.messages.cluster import DescribeClusterRequest, MetadataRequest
from quorumlog.messages.common import FeatureRange
from quorumlog.messages.controller import BrokerHeartbeatRequest
from quorumlog.messages.fetch import FetchRequest, ReplicaState
from quorumlog.messages.produce import ProducePartition, ProduceRequest, ProduceResponse, ProduceTopic
from quorumlog.rpc.transport import Address, Identity, Listener, NotDelivered, NotServed, RpcError, Server
from quorumlog.wire.protocol.apis import BY_REQUEST, load_newest
from quorumlog.wire.protocol.features import FeatureNotice, Features
from quorumlog.wire.routing import BY_LANE, RoutingTransport
from tests.left_behind import complaints

LONG_MS = 10_000
HEARTBEAT = BrokerHeartbeatRequest(
    broker_id=2,
    broker_epoch=1,
    current_metadata_offset=0,
    want_fence=False,
    want_shutdown=False,
    incarnation_id=ZERO_UUID,
)
FETCH = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1)
SUPPORTED = (
    FeatureRange(name="metadata.version", min_level=1, max_level=7),
    FeatureRange(name="transaction.version", min_level=0, max_level=2),
)


def identity(node_id: int) -> Identity:
    return Identity(cluster_id="c1", node_id=node_id, incarnation_id=bytes([node_id]) * 16, secret=b"s" * 32)


def produce(number: int) -> ProduceRequest:
    topic = ProduceTopic(name="t", partitions=(ProducePartition(index=0, records=b""),))
    return ProduceRequest(acks=-1, timeout_ms=number, topics=(topic,))


class Node:
    """Notes by which listener each request came."""

    def __init__(self) -> None:
        self.came: list[tuple[str, str]] = []
        self.numbers: list[int] = []
        self.servers: dict[str, Server] = {}
        self.notice = FeatureNotice()
        self.transport = RoutingTransport(identity(1), features=self.notice)

    async def handle(self, context: Any, request: Any) -> Any:
        self.came.append((context.listener.name, type(request).__name__.removesuffix("Request")))
        if isinstance(request, ProduceRequest):
            self.numbers.append(request.timeout_ms)
            return ProduceResponse()
        name = type(request).__name__.replace("Request", "Response")
        return getattr(__import__(type(request).__module__, fromlist=[name]), name)()

    async def listen(self, *names: str) -> None:
        """L...: lane, G...: gRPC; lower case: internal."""
        for name in names:
            listener = Listener(
                name=name, address=Address("127.0.0.1", 0), internal=name.islower(), lane=name.upper().startswith("L")
            )
            self.servers[name] = await self.transport.listen(listener, self.handle)

    def address(self, name: str) -> Address:
        return self.servers[name].listener.address


@asynccontextmanager
async def node(*names: str) -> AsyncIterator[Node]:
    made = Node()
    await made.listen(*names)
    try:
        async with asyncio.timeout(20):
            yield made
    finally:
        for server in made.servers.values():
            await server.close()


WAYS = [
    ("both wires", ("G", "L"), "L", BY_LANE, ["L Produce", "L Fetch", "L Metadata", "G DescribeCluster"]),
    ("gRPC only", ("G",), "G", BY_LANE, ["G Produce", "G Fetch", "G Metadata", "G DescribeCluster"]),
    ("lane only", ("L",), "L", BY_LANE, ["L Produce", "L Fetch", "L Metadata", "L DescribeCluster"]),
    ("at the gRPC port", ("G", "L"), "G", BY_LANE, ["G Produce", "G Fetch", "G Metadata", "G DescribeCluster"]),
    ("gRPC wanted", ("G", "L"), "L", frozenset(), ["G Produce", "G Fetch", "G Metadata", "G DescribeCluster"]),
    ("gRPC wanted, lane only", ("L",), "L", frozenset(), ["L Produce", "L Fetch", "L Metadata", "L DescribeCluster"]),
]


@pytest.mark.parametrize(("names", "at", "by_lane", "want"), [row[1:] for row in WAYS], ids=[row[0] for row in WAYS])
def test_a_client_takes_the_wire_that_the_node_offers(
    names: tuple[str, ...], at: str, by_lane: frozenset[type], want: list[str]
) -> None:
    async def scenario() -> None:
        async with node(*names) as served:
            connection = RoutingTransport(by_lane=by_lane).connect(served.address(at), internal=False)
            for request in (produce(1), FETCH, MetadataRequest(all_topics=True), DescribeClusterRequest()):
                assert (await connection.call(request, LONG_MS)).error_code == 0
            assert [" ".join(pair) for pair in served.came] == want
            await connection.close()

    asyncio.run(scenario())


def test_calls_made_before_the_wire_is_known_keep_their_order() -> None:
    async def scenario() -> None:
        async with node("G", "L") as served:
            connection = RoutingTransport().connect(served.address("L"), internal=False)
            calls = [connection.call(produce(number), LONG_MS) for number in range(50)]
            await asyncio.sleep(0)
            calls += [connection.call(produce(number), LONG_MS) for number in range(50, 100)]
            for call in calls:
                await call
            assert served.numbers == list(range(100))
            await connection.close()

    asyncio.run(scenario())


def test_replicas_fetch_by_the_internal_lane_and_all_else_is_grpc() -> None:
    async def scenario() -> None:
        async with node("g", "l") as served:
            transport = RoutingTransport(identity(2))
            fetch = FetchRequest(
                max_wait_ms=0, min_bytes=0, max_bytes=1, replica=ReplicaState(replica_id=2, broker_epoch=5)
            )
            for at in ("l", "g"):
                connection = transport.connect(served.address(at), internal=True)
                assert (await connection.call(fetch, LONG_MS)).error_code == 0
                await connection.close()
            connection = transport.connect(served.address("g"), internal=True)
            assert (await connection.call(HEARTBEAT, LONG_MS)).error_code == 0
            await connection.close()
            assert served.came == [("l", "Fetch"), ("g", "Fetch"), ("g", "BrokerHeartbeat")]

    asyncio.run(scenario())


def test_a_lane_that_refuses_a_node_answers_its_calls_and_is_asked_again() -> None:
    """A refusal does not mean that the listener speaks gRPC."""

    async def scenario() -> None:
        async with node("g", "l") as served:
            stranger = RoutingTransport(replace(identity(2), secret=b"another"))
            connection = stranger.connect(served.address("l"), internal=True)
            for _ in range(3):
                assert (await connection.call(FETCH, LONG_MS)).error_code == 31
            await connection.close()
            assert served.came == []

    asyncio.run(scenario())


def test_a_request_that_no_wire_of_the_node_serves_is_not_delivered() -> None:
    async def scenario() -> None:
        async with node("L") as served:
            connection = RoutingTransport().connect(served.address("L"), internal=False)
            assert type(HEARTBEAT) not in BY_REQUEST
            with pytest.raises(NotServed, match="neither by the lane nor by gRPC: its node needs a listener"):
                await connection.call(HEARTBEAT, LONG_MS)
            await connection.close()

    asyncio.run(scenario())


def test_the_levels_of_features_are_known_without_grpc() -> None:
    """ApiVersions announces them; it is asked anew each time, since levels change."""

    async def scenario() -> None:
        async with node("L") as served:
            connection = RoutingTransport().connect(served.address("L"), internal=False)
            unknown = await connection.call(DescribeFeaturesRequest(), LONG_MS)
            assert unknown.error_code == ErrorCode.LEADER_NOT_AVAILABLE
            for level, epoch in ((1, 7), (2, 9)):
                finalized = {"metadata.version": 5, "transaction.version": level}
                served.notice.read = lambda now=Features(supported=SUPPORTED, finalized=finalized, epoch=epoch): now  # type: ignore[misc]
                found = await connection.call(DescribeFeaturesRequest(), LONG_MS)
                levels = {one.name: (one.min_level, one.max_level, one.finalized_level) for one in found.features}
                assert levels == {"metadata.version": (1, 7, 5), "transaction.version": (0, 2, level)}
                assert (found.error_code, found.epoch) == (0, epoch)
            await connection.close()
            assert served.came == [], "no handler is asked"

    asyncio.run(scenario())


def test_a_call_to_a_missing_node_is_not_delivered_and_a_later_one_finds_it() -> None:
    async def scenario() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            address = Address("127.0.0.1", taken.getsockname()[1])
        connection = RoutingTransport().connect(address, internal=False)
        for _ in range(2):
            with pytest.raises(NotDelivered):
                await connection.call(produce(1), 2_000)
        made = Node()
        listener = Listener(name="L", address=address, internal=False, lane=True)
        server = await made.transport.listen(listener, made.handle)
        assert isinstance(await connection.call(produce(2), LONG_MS), ProduceResponse)
        await connection.close()
        await server.close()

    asyncio.run(scenario())


def test_a_call_to_a_peer_that_keeps_silent_is_not_delivered_in_time() -> None:
    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            connection = RoutingTransport().connect(Address(*silent.getsockname()[:2]), internal=False)
            with pytest.raises(NotDelivered):
                await connection.call(produce(1), 300)
            await connection.close()

    asyncio.run(scenario())


def test_a_lane_that_breaks_is_noticed_once() -> None:
    async def scenario() -> None:
        async with node("G", "L") as served:
            connection = RoutingTransport().connect(served.address("L"), internal=False)
            gone: list[int] = []
            connection.on_closed(lambda: gone.append(1))
            await connection.call(produce(1), LONG_MS)
            await served.servers.pop("L").close()
            with pytest.raises(RpcError):
                while True:
                    await connection.call(produce(2), LONG_MS)
            with pytest.raises(NotDelivered):
                await connection.call(produce(3), LONG_MS)
            assert gone == [1]
            await connection.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("names", [("G", "L"), ("G",), ("L",)], ids="".join)
@pytest.mark.parametrize("request_", [FETCH, DescribeClusterRequest()], ids=lambda one: type(one).__name__)
def test_a_call_that_is_cancelled_as_it_is_routed_leaves_nothing(names: tuple[str, ...], request_: Any) -> None:
    """As a client's task does that is closed at that moment."""
    load_newest()  # which a busy machine needs seconds for

    async def scenario() -> None:
        async with node(*names) as served:
            connection = RoutingTransport().connect(served.address(names[-1]), internal=False)
            loop, route = asyncio.get_running_loop(), connection._route

            def routed(request: Any, timeout_ms: int) -> Any:
                loop.call_soon(task.cancel)  # before the task has heard of it
                return route(request, timeout_ms)

            connection._route = routed  # type: ignore[method-assign]
            task = asyncio.ensure_future(connection.call(request_, LONG_MS))
            with pytest.raises(asyncio.CancelledError):
                await task
            assert task.cancelling() == 1
            connection._route = route  # type: ignore[method-assign]
            assert (await connection.call(request_, LONG_MS)).error_code == 0
            await connection.close()

    with complaints() as left_behind:
        asyncio.run(scenario())
    assert left_behind == []
