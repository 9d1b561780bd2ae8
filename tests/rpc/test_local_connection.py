"""Calls to the own node: the guarantees of `quorumlog.rpc.transport` without a wire."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from transport_worlds import identity

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.cluster import DescribeClusterRequest, DescribeClusterResponse
from quorumlog.messages.controller import BrokerHeartbeatRequest, BrokerHeartbeatResponse, ProbeRequest
from quorumlog.rpc.serving.dispatch import Dispatch
from quorumlog.rpc.serving.local_connection import LocalConnection
from quorumlog.rpc.transport import Address, Context, Listener, NotDelivered, OutcomeUnknown

LONG_MS = 10_000
LISTENER = Listener(name="INTERNAL", address=Address("127.0.0.1", 9093), internal=True)
Scene = Callable[[LocalConnection], Coroutine[Any, Any, None]]


def play(handler: Callable[[Context, Any], Awaitable[Any]], scene: Scene) -> list[BaseException]:
    """The crashes of the scene."""
    crashes: list[BaseException] = []

    async def run() -> None:
        def on_crash(_name: str, error: BaseException) -> None:
            crashes.append(error)

        dispatch = Dispatch(listener=LISTENER, identity=identity(1), handler=handler, on_crash=on_crash)
        connection = LocalConnection(dispatch, "broker-1", on_crash)
        await scene(connection)
        await connection.close()

    asyncio.run(run())
    return crashes


def heartbeat(epoch: int) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(
        broker_id=1,
        broker_epoch=epoch,
        current_metadata_offset=0,
        want_fence=False,
        want_shutdown=False,
        incarnation_id=identity(1).incarnation_id,
    )


def test_the_handler_knows_the_caller() -> None:
    seen: list[Context] = []

    async def handle(context: Context, _request: Any) -> Any:
        seen.append(context)
        return DescribeClusterResponse(cluster_id="c1")

    async def scene(connection: LocalConnection) -> None:
        assert (await connection.call(DescribeClusterRequest(), LONG_MS)).cluster_id == "c1"

    assert play(handle, scene) == []
    assert (seen[0].peer, seen[0].client_id, seen[0].listener) == (identity(1).peer, "broker-1", LISTENER)


def test_an_error_is_answered_in_the_type_of_the_response() -> None:
    async def handle(_context: Context, request: Any) -> Any:
        if isinstance(request, DescribeClusterRequest):
            raise ApiError(ErrorCode.NOT_CONTROLLER, "another node is")
        raise RuntimeError("a mistake")

    async def scene(connection: LocalConnection) -> None:
        refused = await connection.call(DescribeClusterRequest(), LONG_MS)
        assert (refused.error_code, refused.error_message) == (ErrorCode.NOT_CONTROLLER, "another node is")
        failed = await connection.call(ProbeRequest(), LONG_MS)
        assert failed.error_code == ErrorCode.UNKNOWN_SERVER_ERROR and "mistake" not in failed.error_message

    assert [str(error) for error in play(handle, scene)] == ["a mistake"]


def test_handlers_start_in_the_order_of_the_calls() -> None:
    begun: list[int] = []

    async def handle(_context: Context, request: Any) -> Any:
        begun.append(request.broker_epoch)
        return BrokerHeartbeatResponse(is_fenced=False)

    async def scene(connection: LocalConnection) -> None:
        calls = [connection.call(heartbeat(epoch), LONG_MS) for epoch in range(5)]
        for call in reversed(calls):
            await call

    assert play(handle, scene) == []
    assert begun == [0, 1, 2, 3, 4]


def test_a_call_ends_at_its_deadline_and_with_it_its_handler() -> None:
    ended: list[str] = []

    async def handle(_context: Context, _request: Any) -> Any:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("handler")

    async def scene(connection: LocalConnection) -> None:
        with pytest.raises(OutcomeUnknown, match="within 20 ms"):
            await connection.call(DescribeClusterRequest(), 20)
        assert ended == ["handler"]

    assert play(handle, scene) == []


def test_the_close_fails_calls_that_wait_and_tells_the_handlers() -> None:
    told: list[str] = []

    async def handle(context: Context, _request: Any) -> Any:
        context.on_closed(lambda: told.append("closed"))
        await asyncio.get_running_loop().create_future()

    async def scene(connection: LocalConnection) -> None:
        waiting = asyncio.ensure_future(connection.call(heartbeat(1), LONG_MS))
        await asyncio.sleep(0.01)
        await connection.close()
        with pytest.raises(OutcomeUnknown):
            await waiting
        with pytest.raises(NotDelivered):
            await connection.call(heartbeat(2), LONG_MS)

    assert play(handle, scene) == []
    assert told == ["closed"]


def test_a_caller_that_is_cancelled_cancels_its_handler() -> None:
    ended: list[str] = []

    async def handle(_context: Context, _request: Any) -> Any:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("handler")

    async def scene(connection: LocalConnection) -> None:
        waiting = asyncio.ensure_future(connection.call(DescribeClusterRequest(), LONG_MS))
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert ended == ["handler"]

    assert play(handle, scene) == []


def test_a_begun_call_tells_its_end() -> None:
    ended: list[tuple[Any, Exception | None]] = []

    async def handle(_context: Context, _request: Any) -> Any:
        return DescribeClusterResponse(cluster_id="c1")

    async def scene(connection: LocalConnection) -> None:
        connection.begin(DescribeClusterRequest(), LONG_MS, lambda response, error: ended.append((response, error)))
        await asyncio.sleep(0.01)

    assert play(handle, scene) == []
    assert ended == [(DescribeClusterResponse(cluster_id="c1"), None)]
