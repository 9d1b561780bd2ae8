"""Fetches of the quorum between nodes of which one does not know their stream: they go one by one."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

import grpc
import pytest
from raw_server import raw_server
from test_transport_contract import served
from transport_worlds import GrpcWorld, identity

from quorumlog.messages.common import Endpoint
from quorumlog.messages.quorum import QuorumFetchRequest, QuorumFetchResponse
from quorumlog.nursery import Nursery
from quorumlog.rpc.calls import BY_REQUEST, OLDER, Call
from quorumlog.rpc.grpc import client as grpc_client
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.transport import Address, Connection, Context, NotDelivered, OutcomeUnknown
from quorumlog_quorum.node.peers import Peers
from quorumlog_quorum.raft import RequestFailed, ResponseReceived, Send

FETCH = QuorumFetchRequest(
    replica_id=2, current_leader_epoch=1, fetch_offset=0, last_fetched_epoch=-1, max_wait_ms=0, max_bytes=1
)
ANSWER = QuorumFetchResponse(leader_id=1, leader_epoch=1, high_watermark=7, log_start_offset=0, records=b"")
OLD, NEW = OLDER[QuorumFetchRequest], BY_REQUEST[QuorumFetchRequest]
LIMIT_MS = 10_000


def bare_server(calls: list[str], *known: Call, port: int = 0) -> AbstractAsyncContextManager[int]:
    """Answers only these calls, and notes them by name. Gives its port."""

    async def one(_data: bytes, _context: Any) -> bytes:
        calls.append(OLD.method.name)
        return OLD.codec.encode_response(ANSWER)

    async def each(_: Any, context: Any) -> None:
        while await context.read() is not grpc.aio.EOF:
            calls.append(NEW.method.name)
            await context.write(NEW.codec.encode_response(ANSWER))

    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        call.method.name: grpc.stream_stream_rpc_method_handler(each)
        if call.ordered
        else grpc.unary_unary_rpc_method_handler(one)
        for call in known
    }
    return raw_server(grpc.method_handlers_generic_handler(OLD.method.service, handlers), port=port)


async def failures_until_answered(connection: Connection) -> int:
    """How many calls failed before the first answer, which is as it should be.

    Mostly it is known of them that nothing was delivered. But the channel may learn only from a call that its server
    stopped.
    """
    failed = 0
    async with asyncio.timeout(LIMIT_MS / 1_000):
        while True:
            try:
                assert (await connection.call(FETCH, LIMIT_MS)).high_watermark == 7
                return failed
            except (NotDelivered, OutcomeUnknown):
                failed += 1
                await asyncio.sleep(0.05)


def test_the_newer_call_is_a_stream_and_the_older_is_not() -> None:
    assert NEW.ordered and not OLD.ordered
    assert list(OLDER) == [QuorumFetchRequest]


def test_a_leader_that_does_not_know_the_stream_is_asked_one_by_one_until_it_is_upgraded() -> None:
    async def scenario() -> None:
        calls: list[str] = []
        async with bare_server(calls, OLD) as port:
            connection = GrpcTransport().connect(Address("127.0.0.1", port), internal=False)
            broken: list[str] = []
            connection.on_closed(lambda: broken.append("closed"))
            assert await failures_until_answered(connection) > 0, "the stream is tried first"
            assert (await connection.call(FETCH, LIMIT_MS)).high_watermark == 7
            assert calls == ["QuorumFetch"] * 2
            assert broken == []
        async with bare_server(calls, OLD, NEW, port=port), asyncio.timeout(LIMIT_MS / 1_000):
            while calls[-1] != "QuorumFetches":
                await failures_until_answered(connection)
            await connection.close()

    asyncio.run(scenario())


def test_a_follower_reaches_a_leader_that_does_not_know_the_stream() -> None:
    """It keeps the connection that has learnt this: a new one would try the stream first, every time."""

    async def scenario() -> None:
        calls: list[str] = []
        async with bare_server(calls, OLD) as port:
            peers = Peers(
                node_id=2,
                endpoint_of=lambda _: Endpoint(name="INTERNAL", host="127.0.0.1", port=port),
                transport=AnyPeer(),
                nursery=Nursery(lambda name, crash: pytest.fail(f"{name}: {crash}")),
            )
            told = asyncio.Queue[Any]()
            answers: list[Any] = []
            while not answers or isinstance(answers[-1], RequestFailed):
                peers.call(Send(1, FETCH, len(answers), LIMIT_MS), told.put_nowait)
                answers.append(await told.get())
            peers.call(Send(1, FETCH, len(answers), LIMIT_MS), told.put_nowait)
            assert isinstance(await told.get(), ResponseReceived)
            await peers.close()
        assert isinstance(answers[0], RequestFailed), "the stream is tried first"
        assert calls == ["QuorumFetch"] * 2

    asyncio.run(scenario())


class AnyPeer(GrpcTransport):
    """Its connections ask no peer for a proof."""

    def connect(self, address: Address, *, internal: bool, client_id: str = "") -> Any:
        return super().connect(address, internal=False, client_id=client_id)


def test_a_leader_still_answers_followers_that_fetch_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(grpc_client.BY_REQUEST, QuorumFetchRequest, OLD)
    world = GrpcWorld()

    async def handle(_context: Context, _request: Any) -> Any:
        return ANSWER

    async def scenario() -> None:
        async with served(world, handle, internal=True, shown=identity(2)) as (_, connection):
            assert (await connection.call(FETCH, LIMIT_MS)).high_watermark == 7

    world.run(scenario())
    assert world.crashes == []
