"""A connection that one caller leaves to another: nothing of the first one is left, at either end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from quorumlog.messages.cluster import MetadataRequest, MetadataResponse
from quorumlog.messages.fetch import FetchChunkRequest, FetchChunkResponse, FetchRequest
from quorumlog.rpc.transport import Address, Listener, RpcError, Server
from quorumlog.wire.protocol.apis import load_newest
from quorumlog.wire.routing import RoutingConnection, RoutingTransport

LONG_MS = 10_000
ASK = MetadataRequest(all_topics=False, topics=())


class Broker:
    """Answers metadata, and chunks while `chunks` has some. given_up: answers that it prepared in vain."""

    def __init__(self) -> None:
        self.transport = RoutingTransport()
        self.servers: list[Server] = []
        self.chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self.waits = asyncio.Event()
        self.given_up = 0

    async def handle(self, context: Any, request: Any) -> Any:
        if isinstance(request, MetadataRequest):
            return MetadataResponse(brokers=())
        try:
            self.waits.set()
            return FetchChunkResponse(records=await self.chunks.get())
        except asyncio.CancelledError:
            self.given_up += 1
            raise

    @property
    def lane(self) -> Address:
        return self.servers[1].listener.address


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[Broker, RoutingConnection]]:
    load_newest()  # which a busy machine needs seconds for
    broker = Broker()
    for name, is_lane in (("GRPC", False), ("LANE", True)):
        listener = Listener(name=name, address=Address("127.0.0.1", 0), internal=False, lane=is_lane)
        broker.servers.append(await broker.transport.listen(listener, broker.handle))
    connection = RoutingTransport().connect(broker.lane, internal=False, client_id="tester")
    try:
        yield broker, connection
    finally:
        await connection.close()
        for server in broker.servers:
            await server.close()


def begun(connection: RoutingConnection, request: Any) -> asyncio.Task[Any]:
    async def call() -> Any:
        return await connection.call(request, LONG_MS)

    return asyncio.ensure_future(call())


async def until(reached: Any, what: str) -> None:
    end_s = asyncio.get_running_loop().time() + 10
    while not reached():
        assert asyncio.get_running_loop().time() < end_s, f"not in time: {what}"
        await asyncio.sleep(0.005)


async def outcome(call: asyncio.Task[Any]) -> BaseException | None:
    """Of a call that must have failed by now."""
    await asyncio.wait([call], timeout=5)
    return call.exception() if call.done() else None


def own_tasks() -> int:
    return len(asyncio.all_tasks())


def test_a_stream_is_given_up_and_the_next_caller_has_one_of_its_own() -> None:
    async def scenario() -> None:
        async with serving() as (broker, connection):
            told: list[str] = []
            connection.on_closed(lambda: told.append("closed"))
            before = None
            for turn in range(5):
                broker.chunks.put_nowait(b"%d" % turn)
                assert bytes((await connection.call(FetchChunkRequest(), LONG_MS)).records) == b"%d" % turn
                broker.waits.clear()
                ahead = begun(connection, FetchChunkRequest())
                await broker.waits.wait()
                assert connection.rest()
                assert "its caller is done" in str(await outcome(ahead)), "the stream goes on"
                await until(lambda turn=turn: broker.given_up == turn + 1, "the broker hears of it")
                before = before or own_tasks()
                await until(lambda before=before: own_tasks() <= before, "no task is left")
            assert told == [], "nothing broke"
            assert isinstance(await connection.call(ASK, LONG_MS), MetadataResponse)

    asyncio.run(scenario())


def test_what_was_asked_for_ahead_never_reaches_the_next_caller() -> None:
    async def scenario() -> None:
        async with serving() as (broker, connection):
            broker.waits.clear()
            ahead = [begun(connection, FetchChunkRequest()) for _ in range(3)]
            await broker.waits.wait()
            assert connection.rest()
            assert all([isinstance(await outcome(one), RpcError) for one in ahead]), "the stream goes on"
            await until(lambda: broker.given_up > 0, "the broker hears of it")
            broker.chunks.put_nowait(b"of the next caller")
            found = await connection.call(FetchChunkRequest(), LONG_MS)
            assert bytes(found.records) == b"of the next caller"

    asyncio.run(scenario())


def test_a_stream_that_is_not_open_yet_is_given_up_too() -> None:
    async def scenario() -> None:
        async with serving() as (broker, connection):
            await connection.call(ASK, LONG_MS)
            ahead = begun(connection, FetchChunkRequest())
            await asyncio.sleep(0)
            assert connection.rest()
            assert isinstance(await outcome(ahead), RpcError), "the stream goes on"
            broker.chunks.put_nowait(b"next")
            assert bytes((await connection.call(FetchChunkRequest(), LONG_MS)).records) == b"next"

    asyncio.run(scenario())


def test_a_connection_rests_only_while_it_is_connected_and_quiet() -> None:
    async def scenario() -> None:
        async with serving() as (broker, connection):
            assert not connection.rest(), "it was never used"
            await connection.call(ASK, LONG_MS)
            assert connection.rest() and connection.rest()
            broker.waits.clear()
            waits = begun(connection, FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1))
            await broker.waits.wait()
            assert not connection.rest(), "an answer is to come"
            waits.cancel()
            await asyncio.gather(waits, return_exceptions=True)
            assert connection.rest(), "the socket of the call that was given up is closed"

    asyncio.run(scenario())


def test_a_connection_that_broke_or_was_closed_does_not_rest() -> None:
    async def scenario() -> None:
        async with serving() as (broker, connection):
            told: list[str] = []
            await connection.call(ASK, LONG_MS)
            connection.on_closed(lambda: told.append("closed"))
            await broker.servers[1].close()
            await until(lambda: told, "the connection has broken")
            assert not connection.rest()
        async with serving() as (_, connection):
            await connection.call(ASK, LONG_MS)
            await connection.close()
            assert not connection.rest()

    asyncio.run(scenario())


def test_where_no_lane_is_a_connection_rests_too() -> None:
    async def scenario() -> None:
        async with serving() as (broker, _):
            address = broker.servers[0].listener.address
            connection = RoutingTransport(by_lane=frozenset()).connect(address, internal=False)
            try:
                await connection.call(ASK, LONG_MS)
                broker.chunks.put_nowait(b"a")
                await connection.call(FetchChunkRequest(), LONG_MS)
                assert connection.rest()
                broker.chunks.put_nowait(b"b")
                assert bytes((await connection.call(FetchChunkRequest(), LONG_MS)).records) == b"b"
            finally:
                await connection.close()

    asyncio.run(scenario())
