"""Streams that a server refuses while messages are written to them: it is known that nothing was delivered.

gRPC for Python says INTERNAL there, in nearly all cases, and forgets the status that the server sent.
"""

from __future__ import annotations

import asyncio
from types import NoneType
from typing import Any

import grpc
import pytest
from raw_server import raw_server
from test_older_quorum_fetch import FETCH, LIMIT_MS, OLD, bare_server

from quorumlog.messages.fetch import FetchChunkRequest
from quorumlog.messages.produce import ProduceRequest
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.transport import Address, NotDelivered, NotServed, OutcomeUnknown

TRIES, AT_ONCE = 20, 5
PRODUCE = BY_REQUEST[ProduceRequest]
ACKED, UNACKED = (ProduceRequest(acks=acks, timeout_ms=1_000) for acks in (-1, 0))


async def outcomes(port: int, request: Any) -> list[Any]:
    """Of calls on a connection of their own: the refusal comes while they are written."""
    connection = GrpcTransport().connect(Address("127.0.0.1", port), internal=False)
    try:
        calls = [connection.call(request, LIMIT_MS) for _ in range(AT_ONCE)]
        return await asyncio.gather(*calls, return_exceptions=True)
    finally:
        await connection.close()


@pytest.mark.parametrize("request_", [FETCH, ACKED], ids=["QuorumFetch", "Produce"])
def test_a_stream_that_the_server_does_not_know(request_: Any) -> None:
    async def scenario() -> None:
        calls: list[str] = []
        async with bare_server(calls, OLD) as port:
            for _ in range(TRIES):
                for error in await outcomes(port, request_):
                    assert isinstance(error, NotDelivered) and "UNIMPLEMENTED" in str(error)
        assert calls == []

    asyncio.run(scenario())


def test_a_caller_that_can_do_without_the_call_is_told_that_it_has_to() -> None:
    async def scenario() -> None:
        async with bare_server([], OLD) as port:
            for _ in range(TRIES):
                assert {type(found) for found in await outcomes(port, FetchChunkRequest())} == {NotServed}

    asyncio.run(scenario())


def test_without_acks_a_produce_is_not_taken_for_sent() -> None:
    """A write that gRPC took before the refusal came counts as sent, as ever. Another one was not delivered."""

    async def scenario() -> None:
        async with bare_server([], OLD) as port:
            for _ in range(TRIES):
                assert {type(found) for found in await outcomes(port, UNACKED)} <= {NoneType, NotDelivered}

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("code", "want"),
    [
        (grpc.StatusCode.UNAUTHENTICATED, NotDelivered),  # the server has forgotten the session that proves the caller
        (
            grpc.StatusCode.PERMISSION_DENIED,
            OutcomeUnknown,
        ),  # the opening was seen before, and not all behind it is ours
        (grpc.StatusCode.ABORTED, OutcomeUnknown),
    ],
    ids=["UNAUTHENTICATED", "PERMISSION_DENIED", "ABORTED"],
)
def test_a_stream_that_the_server_refuses(code: grpc.StatusCode, want: type[Exception]) -> None:
    async def refuse(_: Any, context: Any) -> None:
        await context.abort(code, "told by the server")

    async def scenario() -> None:
        handlers = {PRODUCE.method.name: grpc.stream_stream_rpc_method_handler(refuse)}
        async with raw_server(grpc.method_handlers_generic_handler(PRODUCE.method.service, handlers)) as port:
            for _ in range(TRIES):
                for error in await outcomes(port, ACKED):
                    assert type(error) is want and f"{code.name}: told by the server" in str(error)

    asyncio.run(scenario())


def test_a_refusal_behind_an_answer_leaves_the_outcome_unknown() -> None:
    """Whoever has answered has read; nobody knows how far."""

    async def one_answer(_: Any, context: Any) -> None:
        await context.read()
        await context.write(PRODUCE.codec.encode_response(PRODUCE.method.response()))
        await context.read()
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "later")

    async def scenario() -> None:
        handlers = {PRODUCE.method.name: grpc.stream_stream_rpc_method_handler(one_answer)}
        async with raw_server(grpc.method_handlers_generic_handler(PRODUCE.method.service, handlers)) as port:
            connection = GrpcTransport().connect(Address("127.0.0.1", port), internal=False)
            await connection.call(ACKED, LIMIT_MS)
            (error,) = await asyncio.gather(connection.call(ACKED, LIMIT_MS), return_exceptions=True)
            await connection.close()
            assert type(error) is OutcomeUnknown and "later" in str(error)

    asyncio.run(scenario())
