"""grpc.health.v1 over a real listener: its answers follow the transport's health source."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from quorumlog.rpc.grpc import standard as grpc_standard
from quorumlog.rpc.grpc.healthy import HealthSource, always_serving
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.transport import Address, Listener

UNKNOWN, SERVING, NOT_SERVING, SERVICE_UNKNOWN = range(4)


@asynccontextmanager
async def health_of(source: HealthSource) -> AsyncIterator[Any]:
    async def no_handler(_context: Any, _request: Any) -> Any:
        raise AssertionError("no request is expected")

    listener = Listener(name="CLIENT", address=Address("127.0.0.1", 0), internal=False)
    server = await GrpcTransport(health=source).listen(listener, no_handler)
    try:
        async with grpc.aio.insecure_channel(str(server.listener.address)) as channel:
            yield health_pb2_grpc.HealthStub(channel)
    finally:
        await server.close()


def asked(service: str) -> Any:
    return health_pb2.HealthCheckRequest(service=service)


def test_a_check_returns_the_current_health() -> None:
    state: dict[str, bool] = {"": False, "quorumlog.Broker": False}

    async def scenario() -> list[int]:
        async with health_of(state.get) as health:
            seen = [(await health.Check(asked(name))).status for name in state]
            state["quorumlog.Broker"] = True
            return [*seen, *[(await health.Check(asked(name))).status for name in state]]

    assert asyncio.run(scenario()) == [NOT_SERVING, NOT_SERVING, NOT_SERVING, SERVING]


def test_a_check_of_an_unknown_service() -> None:
    async def scenario() -> grpc.StatusCode:
        async with health_of(always_serving) as health:
            assert (await health.Check(asked("quorumlog.v1.Broker"))).status == SERVING
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await health.Check(asked("quorumlog.Kettle"))
            return caught.value.code()

    assert asyncio.run(scenario()) is grpc.StatusCode.NOT_FOUND


def test_a_watch_reports_at_once_and_at_every_change() -> None:
    state: dict[str, bool] = {}

    async def scenario() -> list[int]:
        async with health_of(state.get) as health:
            watch = health.Watch(asked(""))
            seen = []
            for following in (False, True, False):
                seen.append((await watch.read()).status)
                state[""] = following
            seen.append((await watch.read()).status)
            watch.cancel()
            return seen

    assert asyncio.run(scenario()) == [SERVICE_UNKNOWN, NOT_SERVING, SERVING, NOT_SERVING]


def test_watches_are_limited_and_end_with_their_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_standard, "MAX_WATCHES", 1)

    async def scenario() -> grpc.StatusCode:
        async with health_of(always_serving) as health:
            first = health.Watch(asked(""))
            assert (await first.read()).status == SERVING
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await health.Watch(asked("")).read()
            first.cancel()
            async with asyncio.timeout(10):
                while True:  # the server learns of the end a little later
                    try:
                        assert (await health.Watch(asked("")).read()).status == SERVING
                        return caught.value.code()
                    except grpc.aio.AioRpcError:
                        continue

    assert asyncio.run(scenario()) is grpc.StatusCode.RESOURCE_EXHAUSTED
