"""Properties of the gRPC transport that need real sockets and real processes."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from transport_worlds import identity

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.common import NodeEndpoint
from quorumlog.messages.controller import BrokerHeartbeatRequest, BrokerHeartbeatResponse, ProbeResponse
from quorumlog.messages.fetch import FetchRequest, FetchResponse
from quorumlog.messages.produce import ProduceRequest, ProduceResponse
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog.rpc.grpc.options import GrpcOptions
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.serving import ordered_answers
from quorumlog.rpc.transport import (
    Address,
    Context,
    DoesNotFit,
    Handler,
    Listener,
    NoProof,
    NotDelivered,
    OutcomeUnknown,
    Refused,
)

LIMIT_S = 20
GARBAGE = b"\xff\xff\xff\xff"


def numbered(number: int) -> ProduceResponse:
    """A field that both wires carry, and that holds nobody back."""
    return ProduceResponse(node_endpoints=(NodeEndpoint(node_id=number, host="h", port=1),))


def number_of(response: Any) -> int:
    (endpoint,) = response.node_endpoints
    return int(endpoint.node_id)


def crash(name: str, error: BaseException) -> None:
    raise AssertionError(name) from error


@asynccontextmanager
async def served(handler: Handler, *, internal: bool = False, **options: Any) -> AsyncIterator[Address]:
    transport = GrpcTransport(identity(1), on_crash=crash, options=GrpcOptions(**options))
    listener = Listener(name="T", address=Address("127.0.0.1", 0), internal=internal)
    server = await transport.listen(listener, handler)
    try:
        async with asyncio.timeout(LIMIT_S):
            yield server.listener.address
    finally:
        await server.close()


async def fetched(context: Context, request: Any) -> Any:
    return FetchResponse()


def test_a_listener_without_a_host_is_reached_at_every_address() -> None:
    async def scenario() -> None:
        server = await GrpcTransport(identity(1)).listen(
            Listener(name="TEST", address=Address("", 0), internal=True), fetched
        )
        try:
            for host in ("127.0.0.1", "localhost"):
                connection = GrpcTransport(identity(2)).connect(
                    Address(host, server.listener.address.port), internal=True
                )
                await connection.call(FetchRequest(max_wait_ms=1, min_bytes=1, max_bytes=1), 5_000)
                await connection.close()
        finally:
            await server.close()

    asyncio.run(scenario())


def test_garbage_is_an_invalid_request_and_ends_a_stream() -> None:
    async def scenario() -> None:
        async with served(fetched) as address, grpc.aio.insecure_channel(str(address)) as channel:
            fetch, produce = BY_REQUEST[FetchRequest], BY_REQUEST[ProduceRequest]
            unary: Any = channel.unary_unary(fetch.method.path)
            data = await unary(GARBAGE)
            assert fetch.codec.decode_response(data).error_code == ErrorCode.INVALID_REQUEST
            stream: Any = channel.stream_stream(produce.method.path)()
            await stream.write(GARBAGE)
            assert produce.codec.decode_response(await stream.read()).error_code == ErrorCode.INVALID_REQUEST
            assert await stream.read() is grpc.aio.EOF

    asyncio.run(scenario())


def test_a_call_without_an_answer_ends_when_its_stream_ends() -> None:
    """Regression: it waited for its deadline, because the end of the stream did not fail it."""

    async def refuse(context: Context, request: Any) -> Any:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "ends a stream if no answer is due")

    async def scenario() -> None:
        async with served(refuse) as address:
            connection = GrpcTransport().connect(address, internal=False)
            for _ in range(100):
                calls = [asyncio.ensure_future(connection.call(ProduceRequest(acks=0, timeout_ms=1), 60_000))]
                calls += [asyncio.ensure_future(connection.call(ProduceRequest(acks=0, timeout_ms=1), 60_000))]
                for call in calls:
                    try:
                        await call
                    except OutcomeUnknown:
                        pass
            await connection.close()

    asyncio.run(scenario())  # `served` limits the time


def test_a_half_closed_stream_still_gets_its_answers() -> None:
    async def slow(context: Context, request: Any) -> Any:
        await asyncio.sleep(0)
        return numbered(request.timeout_ms)

    async def scenario() -> None:
        async with served(slow) as address, grpc.aio.insecure_channel(str(address)) as channel:
            call = BY_REQUEST[ProduceRequest]
            stream: Any = channel.stream_stream(call.method.path)()
            for number in range(3):
                await stream.write(call.codec.encode_request(ProduceRequest(acks=-1, timeout_ms=number)))
            await stream.done_writing()
            answers = [number_of(call.codec.decode_response(await stream.read())) for _ in range(3)]
            assert answers == [0, 1, 2]
            assert await stream.read() is grpc.aio.EOF

    asyncio.run(scenario())


def test_a_stream_is_not_read_beyond_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_answers, "MAX_HANDLED_REQUESTS", 3)

    async def scenario() -> None:
        gate = asyncio.Event()
        started: list[int] = []
        most = 0

        async def stuck(context: Context, request: Any) -> Any:
            nonlocal most
            started.append(request.timeout_ms)
            most = max(most, len(started))
            if len(started) == 3:
                gate.set()
            await gate.wait()
            started.pop()
            return ProduceResponse()

        async with served(stuck) as address:
            connection = GrpcTransport().connect(address, internal=False)
            calls = [connection.call(ProduceRequest(acks=-1, timeout_ms=number), 10_000) for number in range(20)]
            for call in calls:
                await call
            await connection.close()
            assert most == 3

    asyncio.run(scenario())


def test_a_message_over_the_limit_is_not_sent() -> None:
    async def scenario() -> None:
        connection = GrpcTransport(options=GrpcOptions(max_message_bytes=10)).connect(
            Address("127.0.0.1", 1), internal=False
        )
        with pytest.raises(NotDelivered, match="bytes"):
            await connection.call(FetchRequest(max_wait_ms=1, min_bytes=1, max_bytes=2**31 - 1, rack="r" * 20), 1_000)
        await connection.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("odd", [{"max_bytes": 2**31}, {"rack": "\udcff"}], ids=["number", "text"])
def test_what_does_not_fit_into_its_field_is_the_callers_mistake(odd: dict[str, Any]) -> None:
    async def scenario() -> None:
        connection = GrpcTransport().connect(Address("127.0.0.1", 1), internal=False)
        with pytest.raises(DoesNotFit, match="Fetch"):
            await connection.call(FetchRequest(**{"max_wait_ms": 1, "min_bytes": 1, "max_bytes": 1, **odd}), 1_000)
        await connection.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("reflection", [False, True])
def test_health_and_reflection_are_served(reflection: bool) -> None:
    async def scenario() -> None:
        async with served(fetched, internal=True, reflection=reflection) as address:
            async with grpc.aio.insecure_channel(str(address)) as channel:
                check = health_pb2.HealthCheckRequest(service="quorumlog.v1.Broker")
                found = await health_pb2_grpc.HealthStub(channel).Check(check)
                assert found.status == health_pb2.HealthCheckResponse.SERVING
                asked: Any = channel.stream_stream(
                    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                    request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
                    response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
                )()
                if not reflection:
                    with pytest.raises(grpc.aio.AioRpcError):
                        await asked.read()
                    return
                await asked.write(reflection_pb2.ServerReflectionRequest(list_services=""))
                names = [service.name for service in (await asked.read()).list_services_response.service]
                assert "quorumlog.v1.Quorum" in names
                asked.cancel()

    assert reflection_pb2_grpc is not None
    asyncio.run(scenario())


def beating_client(address: Address) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(Path(__file__).with_name("beating_client.py")), str(address.port)])


async def ended_by(closed: asyncio.Event, act: Any) -> float:
    """Seconds from the act to the notification."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    act()
    await closed.wait()
    return loop.time() - started


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "term"])
def test_a_killed_process_is_noticed_at_once(kill: signal.Signals) -> None:
    async def scenario() -> None:
        closed, beaten = asyncio.Event(), asyncio.Event()

        async def handler(context: Context, request: Any) -> Any:
            assert isinstance(request, BrokerHeartbeatRequest)
            context.on_closed(closed.set)
            beaten.set()
            return BrokerHeartbeatResponse()

        async with served(handler, internal=True) as address:
            process = beating_client(address)
            try:
                await beaten.wait()
                assert await ended_by(closed, lambda: process.send_signal(kill)) < 1
            finally:
                process.kill()
                process.wait()

    asyncio.run(scenario())


def test_a_stopped_process_is_detected_by_keepalive() -> None:
    async def scenario() -> None:
        closed, beaten = asyncio.Event(), asyncio.Event()

        async def handler(context: Context, request: Any) -> Any:
            context.on_closed(closed.set)
            beaten.set()
            return BrokerHeartbeatResponse()

        async with served(handler, internal=True, keepalive_time_ms=200, keepalive_timeout_ms=200) as address:
            process = beating_client(address)
            try:
                await beaten.wait()
                assert await ended_by(closed, lambda: process.send_signal(signal.SIGSTOP)) > 0.2
            finally:
                process.kill()
                process.wait()

    asyncio.run(scenario())


STARTS_PROGRAMS = """
import asyncio, subprocess
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.transport import Address, Listener

async def scenario():
    async def nobody(context, request): raise AssertionError
    transport = GrpcTransport(None)
    server = await transport.listen(Listener(name="TEST", address=Address("127.0.0.1", 0), internal=False), nobody)
    forked = dict(preexec_fn=lambda: None, stderr=subprocess.DEVNULL)  # as PySpark starts Java
    failed = sum(subprocess.Popen(["true"], **forked).wait() != 0 for _ in range(150))
    await server.close()
    print(failed)

asyncio.run(scenario())
"""


def test_a_program_that_is_started_beside_grpc_is_not_killed() -> None:
    """One in twenty was, with the fork handlers of gRPC."""
    done = subprocess.run(
        [sys.executable, "-c", STARTS_PROGRAMS], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == ("0\n", 0), done.stderr


# ---- probes and connects, against sockets that are not gRPC


@asynccontextmanager
async def mute_socket(backlog: int = 8) -> AsyncIterator[Address]:
    """The kernel accepts, but no process answers, as with a stopped process."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(backlog)
        yield Address("127.0.0.1", sock.getsockname()[1])


def test_a_silent_peer_is_no_proof_and_gets_no_request() -> None:
    async def scenario() -> None:
        async with mute_socket() as address:
            transport = GrpcTransport(identity(2))
            assert isinstance(await transport.probe(address, 500), NoProof)
            connection = transport.connect(address, internal=True)
            with pytest.raises(NotDelivered):
                await connection.call(FetchRequest(max_wait_ms=1, min_bytes=1, max_bytes=1), 300)
            with pytest.raises(NotDelivered):
                await connection.call(ProduceRequest(acks=-1, timeout_ms=1), 300)
            await connection.close()

    asyncio.run(scenario())


def test_a_name_is_refused_only_if_all_its_addresses_refuse() -> None:
    async def scenario() -> None:
        transport = GrpcTransport(identity(2))
        async with mute_socket() as address:
            by_name = Address("localhost", address.port)
            assert isinstance(await transport.probe(by_name, 500), NoProof)
        assert await transport.probe(by_name, 500) == Refused()
        assert isinstance(await transport.probe(Address("no-such-host.invalid", 1), 2_000), NoProof)

    asyncio.run(scenario())


def test_a_server_that_is_not_grpc_leaves_the_outcome_unknown() -> None:
    async def gibberish(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(gibberish, "127.0.0.1", 0)
        address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
        transport = GrpcTransport(identity(2))
        assert isinstance(await transport.probe(address, 1_000), NoProof)
        connection = transport.connect(address, internal=True)
        with pytest.raises((NotDelivered, OutcomeUnknown)):
            await connection.call(FetchRequest(max_wait_ms=1, min_bytes=1, max_bytes=1), 1_000)
        await connection.close()
        server.close()

    asyncio.run(scenario())


def test_a_probe_answered_with_an_invalid_identity_proves_nothing() -> None:
    async def half(context: Context, request: Any) -> Any:
        return ProbeResponse(node_id=1, incarnation_id=b"short")

    async def scenario() -> None:
        async with served(half, internal=True) as address:
            assert isinstance(await GrpcTransport(identity(2)).probe(address, 5_000), NoProof)

    asyncio.run(scenario())
