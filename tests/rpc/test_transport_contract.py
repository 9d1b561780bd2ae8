"""The guarantees of `quorumlog.rpc.transport`, tested on every transport: gRPC and lane on real sockets, simulation.

The lane carries fewer request types, and only those of its responses that Kafka defines so have a top-level error
(`error_of`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from transport_worlds import GrpcTlsWorld, GrpcWorld, LaneWorld, SimLaneWorld, SimWorld, World, identity

from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import ZERO_UUID
from quorumlog.messages.cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
)
from quorumlog.messages.common import NodeEndpoint
from quorumlog.messages.controller import (
    BrokerHeartbeatRequest,
    ProbeRequest,
    ProbeResponse,
    RegisterBrokerRequest,
)
from quorumlog.messages.fetch import FetchPartitionResponse, FetchRequest, FetchResponse, FetchTopicResponse
from quorumlog.messages.fetch import ReplicaState as Replica
from quorumlog.messages.produce import ProducePartition, ProduceRequest, ProduceResponse, ProduceTopic
from quorumlog.messages.quorum import VoteRequest
from quorumlog.rpc.serving.dispatch import MAX_FETCHED_BYTES
from quorumlog.rpc.transport import (
    Address,
    AddressInUse,
    Answered,
    Connection,
    Context,
    Handler,
    Identity,
    NoProof,
    NotDelivered,
    OutcomeUnknown,
    Refused,
    RpcError,
    Server,
)
from tests.left_behind import complaints
from tests.rules import rule

LONG_MS = 10_000  # longer than any test waits
SHORT_MS = 300
REACHED_MS = 2_000  # of a call that must reach its handler before


CLIENT_HOSTS = {
    GrpcWorld: "127.0.0.1",
    GrpcTlsWorld: "127.0.0.1",
    LaneWorld: "127.0.0.1",
    SimWorld: "client",
    SimLaneWorld: "server",
}  # the last has one host
WORLDS: dict[str, type[World]] = {
    "grpc": GrpcWorld, "grpc-tls": GrpcTlsWorld, "lane": LaneWorld, "sim": SimWorld, "sim-lane": SimLaneWorld,
}  # fmt: skip


def numbered(number: int) -> ProduceResponse:
    """A field that both wires carry, and that holds nobody back."""
    return ProduceResponse(node_endpoints=(NodeEndpoint(node_id=number, host="h", port=1),))


def number_of(response: Any) -> int:
    (endpoint,) = response.node_endpoints
    return int(endpoint.node_id)


@pytest.fixture(params=WORLDS.values(), ids=WORLDS)
def world(request: pytest.FixtureRequest) -> World:
    made: World = request.param()
    return made


@asynccontextmanager
async def served(
    world: World, handler: Handler, *, internal: bool = False, shown: Identity | None = None
) -> AsyncIterator[tuple[Server, Connection]]:
    """A server with `handler`, and a connection that shows `shown` (None on an internal listener: no identity)."""
    server = await world.server(identity(1)).listen(world.listener(internal=internal), handler)
    connection = world.client(shown).connect(server.listener.address, internal=shown is not None, client_id="tester")
    try:
        yield server, connection
    finally:
        await connection.close()
        await server.close()


def test_a_fetch_by_grpc_asks_for_no_more_than_one_turn_can_copy(world: World) -> None:
    """gRPC copies an answer several times in one turn of the loop; the lane sends it in pieces."""
    by_lane = isinstance(world, LaneWorld | SimLaneWorld)
    asked: list[int] = []

    async def note(_context: Context, request: Any) -> Any:
        asked.append(request.max_bytes)
        return FetchResponse()

    async def scenario() -> None:
        async with served(world, note) as (_, connection):
            for max_bytes in (1_000, MAX_FETCHED_BYTES, 25 * 1024 * 1024):
                await connection.call(FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=max_bytes), LONG_MS)

    world.run(scenario())
    assert asked == [1_000, MAX_FETCHED_BYTES, 25 * 1024 * 1024 if by_lane else MAX_FETCHED_BYTES]


def heartbeat(number: int) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(
        broker_id=2,
        broker_epoch=number,
        current_metadata_offset=0,
        want_fence=False,
        want_shutdown=False,
        incarnation_id=ZERO_UUID,
    )


def produce(number: int, *, acks: int = -1, records: Any = b"") -> ProduceRequest:
    topic = ProduceTopic(name="t", partitions=(ProducePartition(index=0, records=records),))
    return ProduceRequest(acks=acks, timeout_ms=number, topics=(topic,))


def vote() -> VoteRequest:
    return VoteRequest(epoch=1, candidate_id=1, voter_id=2, last_epoch=0, last_epoch_end_offset=0, pre_vote=False)


def fetch(replica: Replica | None = None) -> FetchRequest:
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1, replica=replica)


class Recorder:
    """A handler that records requests and answers with empty responses."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.contexts: list[Context] = []

    async def __call__(self, context: Context, request: Any) -> Any:
        self.requests.append(request)
        self.contexts.append(context)
        if isinstance(request, ProduceRequest) and request.acks == 0:
            return None
        name = type(request).__name__.replace("Request", "Response")
        module = __import__(type(request).__module__, fromlist=[name])
        return getattr(module, name)()


def error_of(answer: Any) -> int:
    """The top-level error code, or that of the first partition."""
    if answer.error_code or not answer.topics:
        return int(answer.error_code)
    return int(answer.topics[0].partitions[0].error_code)


def carried(**requests: Any) -> pytest.MarkDecorator:
    """Parametrizes `world` and `request_`: each request over every transport that carries it."""
    rows = [
        pytest.param(world, request, id=f"{wire}-{name}")
        for wire, world in WORLDS.items()
        for name, request in requests.items()
        if world.carries(request)
    ]
    return pytest.mark.parametrize(("world", "request_"), rows, indirect=["world"])


async def never(context: Context, request: Any) -> Any:
    await asyncio.Event().wait()


def after_one(handler: Handler) -> Handler:
    """Answers the first call at once. Then the connection stands, and a short time-out is spent on a call that has been
    sent: of one that has not, it is known that it was not delivered."""
    recorder = Recorder()

    async def answer(context: Context, request: Any) -> Any:
        return await (handler if recorder.requests else recorder)(context, request)

    return answer


def closed_event(on_closed: Callable[[Callable[[], None]], None]) -> asyncio.Event:
    event = asyncio.Event()

    def fire() -> None:
        assert not event.is_set(), "called twice"
        event.set()

    on_closed(fire)
    return event


# ---- 1: order


def test_ordered_calls_arrive_and_are_answered_in_order_even_if_handlers_finish_out_of_order(world: World) -> None:
    count = 1000
    arrived: list[int] = []

    async def handler(context: Context, request: Any) -> Any:
        arrived.append(request.timeout_ms)
        for _ in range((request.timeout_ms * 7) % 5):
            await asyncio.sleep(0)
        return numbered(request.timeout_ms)

    async def scenario() -> None:
        async with served(world, handler) as (_, connection):
            calls = [connection.call(produce(number), LONG_MS) for number in range(count)]
            assert [number_of(await call) for call in calls] == list(range(count))
            assert arrived == list(range(count))

    world.run(scenario())


def test_handlers_of_one_stream_run_concurrently(world: World) -> None:
    async def scenario() -> None:
        both = asyncio.Event()
        started: list[int] = []

        async def handler(context: Context, request: Any) -> Any:
            started.append(request.timeout_ms)
            if len(started) == 2:
                both.set()
            await both.wait()
            return numbered(request.timeout_ms)

        async with served(world, handler) as (_, connection):
            calls = [connection.call(produce(number), LONG_MS) for number in (1, 2)]
            assert [number_of(await call) for call in calls] == [1, 2]

    world.run(scenario())


def test_a_slow_ordered_call_does_not_delay_another_type(world: World) -> None:
    async def handler(context: Context, request: Any) -> Any:
        if isinstance(request, ProduceRequest):
            await asyncio.Event().wait()
        return DescribeClusterResponse(cluster_id="c1")

    async def scenario() -> None:
        async with served(world, handler) as (_, connection):
            slow = asyncio.ensure_future(connection.call(produce(1), LONG_MS))
            answer = await connection.call(DescribeClusterRequest(), LONG_MS)
            assert answer.cluster_id == "c1"
            slow.cancel()

    world.run(scenario())


# ---- 2: answers


def test_requests_without_acks_have_no_answer_and_shift_no_other_answer(world: World) -> None:
    recorder = Recorder()

    async def scenario() -> None:
        async with served(world, recorder) as (_, connection):
            calls = [connection.call(produce(number, acks=-(number % 2)), LONG_MS) for number in range(20)]
            answers = [await call for call in calls]
            assert [answer is None for answer in answers] == [number % 2 == 0 for number in range(20)]
            assert [request.timeout_ms for request in recorder.requests] == list(range(20))

    world.run(scenario())


@pytest.mark.parametrize("ready", [False, True], ids=["while it opens", "once it is open"])
@carried(unary=fetch(), ordered=produce(1))
def test_a_request_that_cannot_be_encoded_fails_at_once_and_alone(world: World, request_: Any, ready: bool) -> None:
    """Regression: it waited for its deadline, or broke the connection when it was written as the socket opened."""
    wrong = replace(request_, **{"max_wait_ms" if isinstance(request_, FetchRequest) else "timeout_ms": 2**40})

    async def scenario() -> None:
        async with served(world, Recorder()) as (_, connection):
            if ready:
                await connection.call(request_, LONG_MS)
            with pytest.raises(Exception) as caught:
                await connection.call(wrong, LONG_MS)
            assert not isinstance(caught.value, RpcError), "an RpcError would be retried"
            await connection.call(request_, LONG_MS)

    world.run(scenario())


def test_a_call_that_timed_out_keeps_its_place(world: World) -> None:
    async def scenario() -> None:
        gate = asyncio.Event()

        async def handler(context: Context, request: Any) -> Any:
            if request.timeout_ms == 1:
                await gate.wait()
            return numbered(request.timeout_ms)

        async with served(world, after_one(handler)) as (_, connection):
            await connection.call(produce(0), LONG_MS)
            first = connection.call(produce(1), SHORT_MS)
            second = connection.call(produce(2), LONG_MS)
            with pytest.raises(OutcomeUnknown):
                await first
            gate.set()
            assert number_of(await second) == 2

    world.run(scenario())


@pytest.mark.parametrize("request_", [fetch(), produce(1)], ids=["unary", "ordered"])
def test_an_api_error_is_answered_in_the_response_type(world: World, request_: Any) -> None:
    async def handler(context: Context, request: Any) -> Any:
        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "not here")

    async def scenario() -> None:
        async with served(world, handler) as (_, connection):
            for _ in range(2):
                answer = await connection.call(request_, LONG_MS)
                assert error_of(answer) == 6
                assert answer.error_message == "not here" or isinstance(world, LaneWorld | SimLaneWorld)

    world.run(scenario())
    assert world.crashes == []


@pytest.mark.parametrize("request_", [fetch(), produce(1)], ids=["unary", "ordered"])
def test_an_unexpected_exception_is_reported_to_the_node_and_not_to_the_peer(world: World, request_: Any) -> None:
    async def handler(context: Context, request: Any) -> Any:
        raise KeyError("the password")

    async def scenario() -> None:
        async with served(world, handler) as (_, connection):
            answer = await connection.call(request_, LONG_MS)
            assert error_of(answer) == ErrorCode.UNKNOWN_SERVER_ERROR
            assert "password" not in answer.error_message

    world.run(scenario())
    assert [type(error) for _, error in world.crashes] == [KeyError]


def test_a_wrong_response_type_is_a_server_error(world: World) -> None:
    async def handler(context: Context, request: Any) -> Any:
        return None

    async def scenario() -> None:
        async with served(world, handler) as (_, connection):
            answer = await connection.call(fetch(), LONG_MS)
            assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR

    world.run(scenario())
    assert [type(error) for _, error in world.crashes] == [AssertionError]


def test_an_error_of_a_call_without_an_answer_ends_the_stream(world: World) -> None:
    async def handler(context: Context, request: Any) -> Any:
        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "not here")

    async def scenario() -> None:
        async with served(world, handler) as (_, connection):
            closed = closed_event(connection.on_closed)
            assert await connection.call(produce(1, acks=0), LONG_MS) is None
            await closed.wait()

    world.run(scenario())


# ---- 3: deadlines, and what is known after a failure


@pytest.mark.parametrize("request_", [fetch(), produce(1)], ids=["unary", "ordered"])
def test_a_deadline_leaves_the_outcome_unknown(world: World, request_: Any) -> None:
    async def scenario() -> None:
        async with served(world, after_one(never)) as (_, connection):
            await connection.call(request_, LONG_MS)
            with pytest.raises(OutcomeUnknown):
                await connection.call(request_, SHORT_MS)

    world.run(scenario())


@pytest.mark.parametrize("request_", [fetch(), produce(1), produce(1, acks=0)], ids=["unary", "ordered", "acks=0"])
def test_a_refused_connection_delivers_nothing(world: World, request_: Any) -> None:
    async def scenario() -> None:
        connection = world.client(None).connect(world.dead_address(), internal=False)
        for _ in range(2):
            with pytest.raises(NotDelivered):
                await connection.call(request_, 2_000)
        await connection.close()

    world.run(scenario())


def test_a_cancelled_call_leaves_the_connection_usable(world: World) -> None:
    async def scenario() -> None:
        waiting = asyncio.Event()

        async def handler(context: Context, request: Any) -> Any:
            if isinstance(request, FetchRequest):
                waiting.set()
                await asyncio.Event().wait()
            return DescribeClusterResponse(cluster_id="c1")

        async with served(world, handler) as (_, connection):
            task = asyncio.ensure_future(connection.call(fetch(), LONG_MS))
            await waiting.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await connection.call(DescribeClusterRequest(), LONG_MS)).cluster_id == "c1"

    world.run(scenario())


@pytest.mark.parametrize("request_", [fetch(), produce(1)], ids=["unary", "ordered"])
def test_closing_the_connection_fails_pending_calls(world: World, request_: Any) -> None:
    async def scenario() -> None:
        reached = asyncio.Event()

        async def handler(context: Context, request: Any) -> Any:
            reached.set()
            await asyncio.Event().wait()

        async with served(world, handler) as (_, connection):
            call = asyncio.ensure_future(connection.call(request_, LONG_MS))
            await reached.wait()
            await connection.close()
            await connection.close()
            with pytest.raises(OutcomeUnknown):
                await call
            with pytest.raises(NotDelivered):
                await connection.call(request_, LONG_MS)

    world.run(scenario())


# ---- calls whose outcome comes by a callback


class Outcomes:
    """What `begin` has told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, Exception | None]] = []
        self._came = asyncio.Event()

    def ended(self, response: Any, error: Exception | None) -> None:
        self.told.append((response, error))
        self._came.set()

    async def only(self) -> tuple[Any, Exception | None]:
        async with asyncio.timeout(LONG_MS / 1000):
            await self._came.wait()
        (outcome,) = self.told
        return outcome


def test_a_begun_call_tells_its_answer_once(world: World) -> None:
    async def scenario() -> None:
        async with served(world, Recorder()) as (_, connection):
            for _ in range(3):
                outcomes = Outcomes()
                connection.begin(fetch(), LONG_MS, outcomes.ended)
                response, error = await outcomes.only()
                assert isinstance(response, FetchResponse) and error is None

    world.run(scenario())


def test_a_begun_call_tells_a_deadline_and_the_next_one_is_answered(world: World) -> None:
    async def scenario() -> None:
        answers = Recorder()

        async def handler(context: Context, request: Any) -> Any:
            return await (answers if request.max_wait_ms else never)(context, request)

        async with served(world, after_one(handler)) as (_, connection):
            await connection.call(fetch(), LONG_MS)
            outcomes = Outcomes()
            connection.begin(fetch(), SHORT_MS, outcomes.ended)
            response, error = await outcomes.only()
            assert response is None and isinstance(error, OutcomeUnknown)
            outcomes = Outcomes()
            connection.begin(replace(fetch(), max_wait_ms=1), LONG_MS, outcomes.ended)
            assert (await outcomes.only())[1] is None

    world.run(scenario())


def test_a_begun_call_to_nobody_is_not_delivered(world: World) -> None:
    async def scenario() -> None:
        connection = world.client(None).connect(world.dead_address(), internal=False)
        for _ in range(2):
            outcomes = Outcomes()
            connection.begin(fetch(), 2_000, outcomes.ended)
            assert isinstance((await outcomes.only())[1], NotDelivered)
        await connection.close()

    world.run(scenario())


def test_a_begun_call_that_is_given_up_tells_nothing(world: World) -> None:
    async def scenario() -> None:
        reached = asyncio.Event()

        async def handler(context: Context, request: Any) -> Any:
            if request.max_wait_ms:
                return FetchResponse()
            reached.set()
            await asyncio.Event().wait()

        async with served(world, after_one(handler)) as (_, connection):
            await connection.call(fetch(), LONG_MS)
            given_up, next_one = Outcomes(), Outcomes()
            cancel = connection.begin(fetch(), REACHED_MS, given_up.ended)
            await reached.wait()
            cancel()
            cancel()
            connection.begin(replace(fetch(), max_wait_ms=1), LONG_MS, next_one.ended)
            assert (await next_one.only())[1] is None
            await asyncio.sleep(1.1 * REACHED_MS / 1000)
            assert given_up.told == []

    world.run(scenario())


def test_closing_the_connection_fails_begun_calls(world: World) -> None:
    async def scenario() -> None:
        reached = asyncio.Event()

        async def handler(context: Context, request: Any) -> Any:
            reached.set()
            await asyncio.Event().wait()

        async with served(world, handler) as (_, connection):
            outcomes = Outcomes()
            connection.begin(fetch(), LONG_MS, outcomes.ended)
            await reached.wait()
            await connection.close()
            assert isinstance((await outcomes.only())[1], OutcomeUnknown)

    world.run(scenario())


def test_a_begun_call_that_is_given_up_at_once_leaves_nothing(world: World) -> None:
    async def scenario() -> None:
        async with served(world, Recorder()) as (_, connection):
            given_up, next_one = Outcomes(), Outcomes()
            connection.begin(fetch(), LONG_MS, given_up.ended)()
            connection.begin(fetch(), LONG_MS, next_one.ended)
            assert (await next_one.only())[1] is None
            assert given_up.told == []

    with complaints() as left_behind:
        world.run(scenario())
    assert left_behind == []


def test_closing_at_once_fails_begun_calls(world: World) -> None:
    async def scenario() -> None:
        async with served(world, Recorder()) as (_, connection):
            outcomes = Outcomes()
            connection.begin(fetch(), LONG_MS, outcomes.ended)
            await connection.close()
            await asyncio.sleep(0)
            assert [type(error) for _, error in outcomes.told] in ([OutcomeUnknown], [NotDelivered])

    with complaints() as left_behind:
        world.run(scenario())
    assert left_behind == []


# ---- 4: records


def test_a_large_buffer_arrives_intact_both_ways(world: World) -> None:
    payload = bytes(range(256)) * (20 * 1024 * 4)  # 20 MiB
    seen: list[bytes] = []

    async def handler(context: Context, request: Any) -> Any:
        if isinstance(request, ProduceRequest):
            seen.append(bytes(request.topics[0].partitions[0].records))
            return ProduceResponse()
        partition = FetchPartitionResponse(index=0, records=memoryview(payload))
        return FetchResponse(topics=(FetchTopicResponse(topic_id=ZERO_UUID, partitions=(partition,)),))

    async def scenario() -> None:
        async with served(world, handler) as (_, connection):
            await connection.call(produce(1, records=memoryview(payload)), LONG_MS)
            answer = await connection.call(fetch(), LONG_MS)
            assert seen == [payload]
            assert answer.topics[0].partitions[0].records == payload

    world.run(scenario())


# ---- 5: a peer that goes away


def test_a_closed_server_is_detected_and_its_successor_is_reached(world: World) -> None:
    async def scenario() -> None:
        reached = asyncio.Event()

        async def stuck(context: Context, request: Any) -> Any:
            reached.set()
            await asyncio.Event().wait()

        transport = world.server(identity(1))
        server = await transport.listen(world.listener(internal=False), stuck)
        connection = world.client(None).connect(server.listener.address, internal=False)
        closed = closed_event(connection.on_closed)
        calls = [asyncio.ensure_future(connection.call(request, LONG_MS)) for request in (produce(1), fetch())]
        await reached.wait()
        await server.close()
        for call in calls:
            with pytest.raises(OutcomeUnknown):
                await call
        await closed.wait()
        with pytest.raises(NotDelivered):
            await connection.call(produce(2), 1_000)
        again = await transport.listen(server.listener, Recorder())
        assert isinstance(await until_connected(connection, produce(3)), ProduceResponse)
        late: list[int] = []
        connection.on_closed(lambda: late.append(1))
        assert late == [1]
        await connection.close()
        await again.close()

    world.run(scenario())


async def until_connected(connection: Connection, request: Any) -> Any:
    """The answer, once the connection's back-off after a refusal is over."""
    while True:
        try:
            return await connection.call(request, LONG_MS)
        except NotDelivered:
            await asyncio.sleep(0.02)


@carried(heartbeat=heartbeat(1), produce=produce(1))
def test_a_client_that_leaves_is_detected_by_the_handlers_context(world: World, request_: Any) -> None:
    recorder = Recorder()

    async def scenario() -> None:
        async with served(world, recorder, internal=True, shown=identity(2)) as (_, connection):
            await connection.call(request_, LONG_MS)
            await connection.call(request_, LONG_MS)
            assert recorder.contexts[0] is recorder.contexts[1]
            closed = closed_event(recorder.contexts[0].on_closed)
            await connection.close()
            await closed.wait()
            late: list[int] = []
            recorder.contexts[0].on_closed(lambda: late.append(1))
            assert late == [1]

    world.run(scenario())


def test_a_context_knows_its_caller(world: World) -> None:
    recorder = Recorder()

    async def scenario() -> None:
        async with served(world, recorder, internal=True, shown=identity(2)) as (server, connection):
            await connection.call(produce(1), LONG_MS)
            context = recorder.contexts[0]
            assert (context.peer, context.client_id) == (identity(2).peer, "tester")
            assert context.listener == server.listener and server.listener.address.port != 0
            assert context.client_host == CLIENT_HOSTS[type(world)]

    world.run(scenario())


@carried(fetch=fetch(), produce=produce(1))
def test_a_node_sends_nothing_to_a_listener_that_does_not_prove_itself(world: World, request_: Any) -> None:
    recorder = Recorder()

    async def scenario() -> None:
        async with served(world, recorder, internal=False, shown=identity(2)) as (_, connection):
            with pytest.raises(NotDelivered):
                await connection.call(request_, LONG_MS)

    world.run(scenario())
    assert recorder.requests == []


# ---- access: which caller may call what at which listener

ONE = ClusterIncarnation(1, b"\1" * 16)
STRANGERS: list[tuple[str, Identity | None, ErrorCode]] = [
    ("no identity", None, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ("wrong secret", identity(2, secret=b"x" * 32), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ("no secret", identity(2, secret=b""), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ("other cluster", identity(2, cluster_id="c2", secret=b"x" * 32), ErrorCode.INCONSISTENT_CLUSTER_ID),
    ("a later life of the cluster", replace(identity(2), cluster_incarnation=ONE), ErrorCode.INCONSISTENT_CLUSTER_ID),
]


@pytest.mark.parametrize(("shown", "want"), [row[1:] for row in STRANGERS], ids=[row[0] for row in STRANGERS])
@carried(vote=vote(), heartbeat=heartbeat(1), fetch=fetch())
def test_an_internal_listener_serves_nodes_of_its_cluster_only(
    world: World, request_: Any, shown: Identity | None, want: ErrorCode
) -> None:
    recorder = Recorder()

    async def scenario() -> None:
        async with served(world, recorder, internal=True, shown=shown) as (_, connection):
            assert (await connection.call(request_, LONG_MS)).error_code == want

    world.run(scenario())
    assert recorder.requests == []


@rule("kraft 13.1")
@pytest.mark.parametrize("caller", [FIRST, ONE, ClusterIncarnation(1, b"\2" * 16), ClusterIncarnation(2, b"\2" * 16)])
@carried(vote=vote(), heartbeat=heartbeat(1), replica_fetch=fetch(Replica(replica_id=2, broker_epoch=1)))
def test_a_node_serves_nodes_of_its_cluster_incarnation_only(
    world: World, request_: Any, caller: ClusterIncarnation
) -> None:
    recorder = Recorder()

    async def scenario() -> None:
        own = replace(identity(1), cluster_incarnation=ONE)
        server = await world.server(own).listen(world.listener(internal=True), recorder)
        node = world.client(replace(identity(2), cluster_incarnation=caller))
        connection = node.connect(server.listener.address, internal=True)
        answer = await connection.call(request_, LONG_MS)
        assert answer.error_code == (0 if caller == ONE else ErrorCode.INCONSISTENT_CLUSTER_ID)
        await connection.close()
        await server.close()

    world.run(scenario())
    assert recorder.requests == ([request_] if caller == ONE else [])


@carried(
    vote=vote(),
    probe=ProbeRequest(),
    heartbeat=heartbeat(1),
    register=RegisterBrokerRequest(broker_id=1, cluster_id="c1", incarnation_id=ZERO_UUID),
    replica_fetch=fetch(Replica(replica_id=2, broker_epoch=1)),
)
def test_a_client_listener_refuses_internal_calls(world: World, request_: Any) -> None:
    recorder = Recorder()

    async def scenario() -> None:
        async with served(world, recorder, internal=False) as (_, connection):
            answer = await connection.call(request_, LONG_MS)
            assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    world.run(scenario())
    assert recorder.requests == []


@carried(heartbeat=heartbeat(1), replica_fetch=fetch(Replica(replica_id=2, broker_epoch=1)))
def test_nodes_fetch_and_beat_at_an_internal_listener(world: World, request_: Any) -> None:
    recorder = Recorder()

    async def scenario() -> None:
        async with served(world, recorder, internal=True, shown=identity(2)) as (_, connection):
            assert (await connection.call(request_, LONG_MS)).error_code == 0
            assert recorder.requests == [request_]

    world.run(scenario())


# ---- listening and probing


def test_a_port_in_use_is_named(world: World) -> None:
    async def scenario() -> None:
        async with served(world, Recorder()) as (server, _):
            with pytest.raises(AddressInUse, match=str(server.listener.address.port)):
                await world.server(identity(2)).listen(server.listener, Recorder())

    world.run(scenario())


async def who_am_i(context: Context, request: Any) -> Any:
    assert isinstance(request, ProbeRequest)
    return ProbeResponse(node_id=1, incarnation_id=identity(1).incarnation_id)


@carried(probe=ProbeRequest())
def test_a_probe_returns_the_incarnation(world: World, request_: Any) -> None:
    async def scenario() -> None:
        async with served(world, who_am_i, internal=True) as (server, _):
            found = await world.client(identity(2)).probe(server.listener.address, LONG_MS)
            assert type(request_) is ProbeRequest and found == Answered(1, identity(1).incarnation_id)

    world.run(scenario())


def test_a_probe_of_a_dead_process_is_refused(world: World) -> None:
    async def scenario() -> None:
        transport = world.client(identity(2))
        assert await transport.probe(world.dead_address(), LONG_MS) == Refused()
        server = await world.server(identity(1)).listen(world.listener(internal=True), who_am_i)
        await server.close()
        assert await transport.probe(server.listener.address, LONG_MS) == Refused()

    world.run(scenario())


@pytest.mark.parametrize("prober", [identity(2, secret=b"x"), identity(2, cluster_id="c2")], ids=["secret", "cluster"])
def test_a_probe_by_a_stranger_proves_nothing(world: World, prober: Identity) -> None:
    async def scenario() -> None:
        async with served(world, who_am_i, internal=True) as (server, _):
            assert isinstance(await world.client(prober).probe(server.listener.address, LONG_MS), NoProof)

    world.run(scenario())


def test_a_probe_without_an_answer_proves_nothing(world: World) -> None:
    async def scenario() -> None:
        async with served(world, never, internal=True) as (server, _):
            assert isinstance(await world.client(identity(2)).probe(server.listener.address, SHORT_MS), NoProof)

    world.run(scenario())


def test_an_address_is_printed_in_the_usual_form() -> None:
    assert [str(Address("h", 1)), str(Address("::1", 2))] == ["h:1", "[::1]:2"]


@rule("security 1.26")
def test_a_client_above_its_quota_is_held_back(world: World) -> None:
    """Quotas (KIP-219): what comes after the answer is held back. Nothing is lost or reordered."""
    held_ms = 400

    async def handler(context: Context, request: Any) -> Any:
        return replace(numbered(request.timeout_ms), throttle_time_ms=held_ms if request.timeout_ms == 1 else 0)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with served(world, handler) as (_, connection):
            await connection.call(produce(0), LONG_MS)
            begun_s = loop.time()
            first = await connection.call(produce(1), LONG_MS)
            second = await connection.call(produce(2), LONG_MS)
            assert (number_of(first), first.throttle_time_ms, number_of(second)) == (1, held_ms, 2)
            assert loop.time() - begun_s >= held_ms / 1000 - 0.01

    world.run(scenario())


@pytest.mark.parametrize("ask", [produce(1), MetadataRequest(all_topics=True)], ids=["in a stream", "alone"])
@rule("security 1.22")
def test_an_answer_is_not_held_back_until_its_client_gives_up(world: World, ask: Any) -> None:
    """It would ask again for what has been counted, and never get it."""

    async def handler(context: Context, request: Any) -> Any:
        if isinstance(request, MetadataRequest):
            return MetadataResponse(throttle_time_ms=60_000)
        return replace(numbered(request.timeout_ms), throttle_time_ms=60_000)

    async def scenario() -> None:
        async with served(world, handler) as (_, connection):
            (answer,) = await asyncio.gather(connection.call(ask, 3_000), return_exceptions=True)
            assert not isinstance(answer, Exception), answer
            assert answer.throttle_time_ms == 60_000

    world.run(scenario())
