"""What requests take of the loop: what counts, who is held back for how long, and where that is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.cluster import MetadataRequest, MetadataResponse
from quorumlog.messages.produce import ProduceRequest, ProduceResponse
from quorumlog.messages.transactions import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from quorumlog.proof.peer import Peer
from quorumlog.rpc.caller import Caller
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.serving.dispatch import Dispatch, PeerContext, Reply
from quorumlog.rpc.serving.request_time import RequestTime, Timed, Watch
from quorumlog.rpc.transport import Address, Identity, Listener
from quorumlog.security.principal import Principal
from quorumlog.security.quota.entity import PRODUCER_BYTE_RATE
from quorumlog.security.quota.node_quotas import NodeQuotas
from quorumlog.security.quota.resolution import index_of
from quorumlog.wire.format.header import RequestHeader
from quorumlog.wire.protocol.apis import BY_REQUEST as BY_API
from quorumlog.wire.protocol.codec import WireRequest, decode_response
from tests.wire.lane import request_bytes, serving

ASKED = MetadataRequest(all_topics=True)
ADA = Principal("User", "ada")


class Busy:
    """A clock of the processor that runs when a test says so."""

    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


def node(percent: float | None = 10.0) -> NodeQuotas:
    """percent: the quota of everybody."""
    quotas = NodeQuotas()
    if percent is not None:
        quotas.index = index_of([((("user", None),), "request_percentage", percent)])
    return quotas


@contextmanager
def dispatched(quotas: NodeQuotas, busy: Busy, handler: Any, internal: bool = False) -> Iterator[Any]:
    """Gives `ask(request)`, which returns the reply; at one moment of the loop."""
    listener = Listener(name="T", address=Address("h", 1), internal=internal)
    identity = Identity(cluster_id="c", node_id=1, incarnation_id=bytes(16), secret=bytes(32))
    dispatch = Dispatch(
        listener=listener,
        identity=identity,
        handler=handler,
        on_crash=lambda name, error: pytest.fail(f"{name}: {error!r}"),
        time=RequestTime(quotas, busy, lambda: 100.0),
    )
    peer = Peer(cluster_id="c", node_id=2, incarnation_id=bytes(16)) if internal else None

    def ask(request: Any) -> Reply:
        context = PeerContext(listener, Caller("me", peer, principal=ADA))

        async def run() -> Reply:
            watch = dispatch.watch()
            steps = dispatch.reply(context, BY_REQUEST[type(request)].method, request, watch)
            return await (steps if watch is None else Timed(steps, watch))

        return asyncio.run(run())

    yield ask


def test_a_watch_counts_steps_and_nothing_between_them() -> None:
    busy, found = Busy(), list[float]()

    async def work(watch: Watch) -> str:
        busy.s += 1
        await asyncio.sleep(0)
        busy.s += 2
        found.append(watch.taken_s())
        try:
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            busy.s += 4
        await asyncio.sleep(0)
        busy.s += 8
        return "done"

    async def others(task: asyncio.Task[str]) -> None:
        for _ in range(5):
            busy.s += 100
            await asyncio.sleep(0)
        task.cancel()

    async def scenario() -> str:
        watch = Watch(busy)
        busy.s += 16  # it was read
        task = asyncio.get_running_loop().create_task(Timed(work(watch), watch))
        await others(task)
        answer = await task
        found.append(watch.taken_s())
        return answer

    assert asyncio.run(scenario()) == "done"
    assert found == [16 + 1 + 2, 4 + 8]


def test_who_takes_too_much_is_held_back_for_a_second_at_most() -> None:
    busy = Busy()

    async def handler(_context: Any, _request: Any) -> MetadataResponse:
        busy.s += took.pop(0)
        return MetadataResponse(cluster_id="c")

    took = [1.0, 0.02, 500.0, 0.0]
    with dispatched(node(10.0), busy, handler) as ask:
        assert ask(ASKED) == Reply(MetadataResponse(cluster_id="c")), "ten seconds' worth may be used at once"
        reply = ask(ASKED)
        assert reply.throttle_ms == reply.message.throttle_time_ms == 200  # (102 % s / 10 s - 10 %) / 10 % x 10 s
        assert ask(ASKED).throttle_ms == 1_000


def test_a_failure_counts_and_the_larger_of_two_throttles_is_told() -> None:
    busy = Busy()

    async def handler(_context: Any, request: Any) -> Any:
        busy.s += 1.02
        if isinstance(request, ProduceRequest):
            return ProduceResponse(throttle_time_ms=request.timeout_ms)
        raise ApiError(ErrorCode.INVALID_REQUEST, "no")

    with dispatched(node(10.0), busy, handler) as ask:
        assert (reply := ask(ASKED)).throttle_ms == 200 and reply.message.throttle_time_ms == 200
    for of_bytes_ms, want_ms in ((5_000, 5_000), (150, 200)):
        with dispatched(node(10.0), busy, handler) as ask:
            reply = ask(ProduceRequest(acks=1, timeout_ms=of_bytes_ms))
            assert reply.throttle_ms == reply.message.throttle_time_ms == want_ms
    with dispatched(node(10.0), busy, handler) as ask:
        assert ask(ProduceRequest(acks=0, timeout_ms=0)) == Reply(None, throttle_ms=200)


@pytest.mark.parametrize(("code", "held"), [(0, False), (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, True)])
def test_calls_of_the_cluster_are_exempt_unless_they_are_refused(code: int, held: bool) -> None:
    busy, quotas = Busy(), node(1.0)

    async def handler(_context: Any, _request: Any) -> WriteTxnMarkersResponse:
        busy.s += 7
        return WriteTxnMarkersResponse(error_code=code)

    with dispatched(quotas, busy, handler) as ask:
        assert bool(ask(WriteTxnMarkersRequest()).throttle_ms) is held
    assert (quotas.exempt_time.wait_ms(1.0, 0) > 0) is not held


def test_nodes_are_exempt_and_without_a_quota_nothing_is_measured() -> None:
    busy, quotas = Busy(), node(1.0)

    async def handler(_context: Any, _request: Any) -> MetadataResponse:
        busy.s += 7
        return MetadataResponse()

    with dispatched(quotas, busy, handler, internal=True) as ask:
        assert ask(ASKED).throttle_ms == 0
    assert quotas.exempt_time.wait_ms(1.0, 0) == 690_000 and len(quotas.clients) == 0
    assert RequestTime(node(None), busy, lambda: 0.0).watch() is None


@pytest.mark.parametrize("taskless", [True, False])
def test_the_lane_answers_first_and_is_muted_then(taskless: bool) -> None:
    """What it takes to read and to write counts, too: the processor's time runs with each look at it."""
    quotas = node(10.0)
    looks = 0

    def busy_s() -> float:
        nonlocal looks
        looks += 1
        return looks * 0.6

    async def handler(_context: Any, request: Any) -> Any:
        await asyncio.sleep(0)
        return ProduceResponse() if isinstance(request, ProduceRequest) else MetadataResponse()

    request = ProduceRequest(acks=1, timeout_ms=1) if taskless else ASKED

    async def scenario() -> tuple[int, float, float]:
        loop = asyncio.get_running_loop()
        async with serving(handler, time=RequestTime(quotas, busy_s, loop.time)) as served:
            wire = await served.socket()
            wire.send(request_bytes(request, 1))
            began = loop.time()
            first = await wire.frame()
            answered = loop.time()
            wire.send(request_bytes(request, 2))
            await wire.frame()
            assert served.crashes == []
            api = BY_API[type(request)]
            asked = WireRequest(api, RequestHeader(api.key, api.newest, 1, "by hand"), request)
            throttle_ms = decode_response(asked, memoryview(first)).throttle_time_ms
            return throttle_ms, answered - began, loop.time() - answered

    throttle_ms, answered_s, waited_s = asyncio.run(scenario())
    assert throttle_ms == 1_000 and answered_s < 0.5 and waited_s > 0.9


def test_grpc_holds_the_answer_back() -> None:
    quotas, looks = node(10.0), iter(range(10**6))
    call = BY_REQUEST[MetadataRequest]

    async def handler(_context: Any, _request: Any) -> MetadataResponse:
        return MetadataResponse()

    async def scenario() -> tuple[int, float]:
        loop = asyncio.get_running_loop()
        listener = Listener(name="T", address=Address("h", 1), internal=False)
        dispatch = Dispatch(
            listener=listener,
            identity=None,
            handler=handler,
            on_crash=lambda name, error: pytest.fail(name),
            time=RequestTime(quotas, lambda: next(looks) * 1.01, loop.time),
        )
        began = loop.time()
        answer = await dispatch.answer(dispatch.context(Caller("me")), call, call.codec.encode_request(ASKED))
        response = call.codec.decode_response(answer.data or b"")
        return response.throttle_time_ms, loop.time() - began

    throttle_ms, waited_s = asyncio.run(scenario())
    assert 0 < throttle_ms <= 1_000 and waited_s >= throttle_ms / 1000


def test_another_stream_of_grpc_is_no_way_past_a_quota_of_bytes() -> None:
    """A stream costs a client nothing, so its bucket's deadline counts for the next one, too."""
    quotas = NodeQuotas()
    quotas.index = index_of([((("user", None),), PRODUCER_BYTE_RATE, 1_000.0)])
    begun: list[float] = []

    async def handler(context: Any, _request: Any) -> ProduceResponse:
        loop = asyncio.get_running_loop()
        begun.append(loop.time())
        now_ms = int(loop.time() * 1000)
        wait_ms = quotas.clients.use(PRODUCER_BYTE_RATE, context.principal.name, context.client_id, 10_500, now_ms)
        return ProduceResponse(throttle_time_ms=wait_ms)

    async def scenario() -> tuple[int, float]:
        loop = asyncio.get_running_loop()
        time = RequestTime(quotas, lambda: 0.0, loop.time)
        listener = Listener(name="T", address=Address("127.0.0.1", 0), internal=False)
        server = await GrpcTransport(time=time).listen(listener, handler)
        throttled_ms = []
        for _ in range(2):
            connection = GrpcTransport().connect(server.listener.address, internal=False, client_id="me")
            throttled_ms.append((await connection.call(ProduceRequest(acks=-1, timeout_ms=9), 9_000)).throttle_time_ms)
            await connection.close()
        await server.close()
        return throttled_ms[0], begun[1] - begun[0]

    throttle_ms, waited_s = asyncio.run(scenario())
    assert throttle_ms >= 400 and waited_s >= throttle_ms / 1000 - 0.01
