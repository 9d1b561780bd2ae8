"""The bytes that a node holds: followers have their own, and frames that are not finished are charged."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from lane import IDENTITY, Served, Wire, echo, request_bytes, until
from proving import prove

from quorumlog.messages.cluster import MetadataRequest
from quorumlog.messages.fetch import FetchRequest
from quorumlog.messages.produce import ProducePartition, ProduceRequest, ProduceTopic
from quorumlog.rpc.transport import Address, Handler, Listener
from quorumlog.wire.format.framing import SCRATCH_BYTES
from quorumlog.wire.protocol.limits import WireLimits
from quorumlog.wire.transport import WireTransport

MIB = 1024 * 1024
FOLLOWER_FETCH = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=10)


def produce(size_bytes: int) -> ProduceRequest:
    part = ProducePartition(index=0, records=bytes(size_bytes))
    return ProduceRequest(acks=-1, timeout_ms=0, topics=(ProduceTopic(name="t", partitions=(part,)),))


@asynccontextmanager
async def two_listeners(handler: Handler, limits: WireLimits) -> AsyncIterator[tuple[Served, Served]]:
    """A node's listener for clients and its internal one."""
    crashes: list[str] = []
    transport = WireTransport(
        IDENTITY, on_crash=lambda name, error: crashes.append(f"{name}: {error!r}"), limits=limits
    )
    servers = [
        await transport.listen(
            Listener(name=name, address=Address("127.0.0.1", 0), internal=name == "INTERNAL", lane=True), handler
        )
        for name in ("CLIENTS", "INTERNAL")
    ]
    try:
        async with asyncio.timeout(30):
            yield Served(transport, servers[0], crashes), Served(transport, servers[1], crashes)
        assert crashes == []
    finally:
        for server in servers:
            await server.close()


async def proven(served: Served) -> Wire:
    """A connection of a node of the cluster."""
    wire = await served.socket()
    await prove(wire, IDENTITY)
    return wire


class Leader:
    """Acknowledges produce requests when a follower's fetch comes after them, as a high watermark does."""

    def __init__(self) -> None:
        self.unacknowledged: list[asyncio.Future[None]] = []

    async def handle(self, context: Any, request: Any) -> Any:
        if isinstance(request, ProduceRequest):
            acknowledged = asyncio.get_running_loop().create_future()
            self.unacknowledged.append(acknowledged)
            await acknowledged
        elif isinstance(request, FetchRequest) and context.peer is not None:
            while self.unacknowledged:
                self.unacknowledged.pop().set_result(None)
        return await echo(context, request)


def test_producers_that_fill_the_clients_bytes_do_not_hold_back_the_followers() -> None:
    """24 producers of one 500-kB batch at 8 MiB while the follower is paused: it could never fetch again."""
    leader = Leader()

    async def scenario() -> None:
        limits = WireLimits(max_node_bytes=8 * MIB)
        async with two_listeners(leader.handle, limits) as (clients, internal):
            early_follower = await proven(internal)
            producers = [await clients.socket() for _ in range(24)]
            for producer in producers:
                producer.send(request_bytes(produce(500_000)))
            await until(lambda: not clients.transport._client_bytes.has_room)
            late_follower = await proven(internal)
            acknowledged = asyncio.gather(*(producer.frame() for producer in producers))
            while not acknowledged.done():
                for follower in (early_follower, late_follower):
                    follower.send(request_bytes(FOLLOWER_FETCH))
                    await follower.frame()
            assert len(await acknowledged) == 24
            for wire in [early_follower, late_follower, *producers]:
                wire.close()

    asyncio.run(scenario())


def test_clients_wait_while_their_bytes_are_full() -> None:
    leader = Leader()

    async def scenario() -> None:
        async with two_listeners(leader.handle, WireLimits(max_node_bytes=MIB)) as (clients, internal):
            follower, producer, other = await proven(internal), await clients.socket(), await clients.socket()
            producer.send(request_bytes(produce(2 * MIB)))
            await until(lambda: leader.unacknowledged)
            other.send(request_bytes(MetadataRequest(all_topics=True)))
            answer = asyncio.create_task(other.frame())
            await until(lambda: clients.transport._client_bytes._waiting)
            assert not answer.done()
            follower.send(request_bytes(FOLLOWER_FETCH))
            await asyncio.gather(follower.frame(), producer.frame(), answer)
            for wire in (follower, producer, other):
                wire.close()

    asyncio.run(scenario())


def held_by_frames(served: Served) -> int:
    """Memory of frames that are not finished."""
    frames = [connection._reader._frame for connection in served.server._serving._connections]
    return sum(len(frame) for frame in frames if frame is not None)


def test_frames_that_are_not_finished_are_held_within_the_limit_and_all_finish() -> None:
    """Eight connections of 40 MB held 322 MB, though a node was to hold far less."""
    limits = WireLimits(max_node_bytes=6 * MIB)
    request = request_bytes(produce(4 * MIB))

    async def scenario() -> None:
        async with two_listeners(echo, limits) as (clients, _):
            node_bytes = clients.transport._client_bytes
            wires = [await clients.socket() for _ in range(8)]
            for wire in wires:
                wire.send(request[:-1])
            await until(lambda: len(node_bytes._waiting_to_receive) == 7)
            await until(lambda: held_by_frames(clients) >= 4 * MIB)
            assert node_bytes.used_bytes == node_bytes.unfinished_bytes == len(request) - 4
            assert held_by_frames(clients) <= len(request) + 7 * 64 * 1024
            for wire in wires:
                wire.send(request[-1:])
            await asyncio.gather(*(wire.frame() for wire in wires))
            assert node_bytes.used_bytes == node_bytes.unfinished_bytes == 0
            for wire in wires:
                wire.close()

    asyncio.run(scenario())


def test_small_requests_go_on_while_peers_hold_back_the_ends_of_large_frames() -> None:
    """They took all bytes of the clients until they were cut off, thirty seconds later."""
    limits = WireLimits(max_node_bytes=8 * MIB)

    async def scenario() -> None:
        async with two_listeners(echo, limits) as (clients, _):
            node_bytes = clients.transport._client_bytes
            silent = [await clients.socket() for _ in range(12)]
            for wire in silent:
                wire.send(struct.pack(">i", 2 * MIB) + b"\0\3" + bytes(SCRATCH_BYTES))
            await until(lambda: len(node_bytes._waiting_to_receive) == 10)
            assert node_bytes.used_bytes == 4 * MIB
            other = await clients.socket()
            for _ in range(3):
                other.send(request_bytes(produce(40_000)))
                await other.frame()
            for wire in (*silent, other):
                wire.close()
            await until(lambda: not node_bytes.used_bytes and not node_bytes.unfinished_bytes)

    asyncio.run(scenario())


def test_a_peer_that_stops_in_a_frame_is_cut_off_sooner_where_others_wait() -> None:
    limits = WireLimits(max_node_bytes=4 * MIB, max_stalled_while_others_wait_ms=200)

    async def scenario() -> None:
        async with two_listeners(echo, limits) as (clients, _):
            silent, other = await clients.socket(), await clients.socket()
            silent.send(struct.pack(">i", 2 * MIB) + b"\0\3" + bytes(SCRATCH_BYTES))
            await until(lambda: clients.transport._client_bytes.unfinished_bytes)
            other.send(request_bytes(produce(MIB)))
            assert await silent.ended() == b""
            await other.frame()
            other.close()

    asyncio.run(scenario())


def test_a_frame_keeps_its_charge_from_its_first_buffer_to_its_answer() -> None:
    leader = Leader()

    async def scenario() -> None:
        async with two_listeners(leader.handle, WireLimits()) as (clients, internal):
            node_bytes, request = clients.transport._client_bytes, request_bytes(produce(MIB))
            wire, follower = await clients.socket(), await proven(internal)
            wire.send(request[:-1])
            await until(lambda: node_bytes.used_bytes)
            assert node_bytes.used_bytes == len(request) - 4
            wire.send(request[-1:])
            await until(lambda: leader.unacknowledged)
            assert node_bytes.used_bytes == len(request) - 4
            follower.send(request_bytes(FOLLOWER_FETCH))
            await wire.frame()
            assert node_bytes.used_bytes == 0
            wire.send(request[: MIB // 2])
            await until(lambda: node_bytes.used_bytes)
            wire.close()
            await until(lambda: not node_bytes.used_bytes)
            follower.close()

    asyncio.run(scenario())


def reset(wire: Wire) -> None:
    """As the peer's kernel does it for a process that was killed with answers unread."""
    sock = wire.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.writer.transport.abort()


def test_records_that_are_not_in_the_log_yet_stay_charged_when_their_connection_is_closed() -> None:
    """Clients that are killed, started again and send all of it once more filled the memory of a node."""
    leader = Leader()

    async def scenario() -> None:
        async with two_listeners(leader.handle, WireLimits(max_node_bytes=2 * MIB)) as (clients, internal):
            node_bytes, request = clients.transport._client_bytes, request_bytes(produce(MIB))
            follower = await proven(internal)
            for number in (1, 2):
                wire = await clients.socket()
                wire.send(request)
                await until(lambda number=number: len(leader.unacknowledged) == number)  # type: ignore[misc]
                reset(wire)
                await until(lambda: not clients.server._serving._connections)
                assert node_bytes.used_bytes == number * (len(request) - 4)
            assert not node_bytes.has_room
            follower.send(request_bytes(FOLLOWER_FETCH))
            await follower.frame()
            await until(lambda: not node_bytes.used_bytes)
            follower.close()

    asyncio.run(scenario())


def test_a_listener_that_closes_ends_the_handlers_whose_connections_are_gone() -> None:
    leader = Leader()

    async def scenario() -> None:
        async with two_listeners(leader.handle, WireLimits()) as (clients, _):
            node_bytes, wire = clients.transport._client_bytes, await clients.socket()
            wire.send(request_bytes(produce(MIB)))
            await until(lambda: leader.unacknowledged)
            reset(wire)
            await until(lambda: not clients.server._serving._connections)
            await clients.server.close()
            assert node_bytes.used_bytes == 0

    asyncio.run(scenario())


def test_a_peer_that_never_ends_its_frame_is_cut_off_and_frees_what_it_was_charged() -> None:
    async def scenario() -> None:
        async with two_listeners(echo, WireLimits(max_node_bytes=MIB, max_stalled_ms=300)) as (clients, _):
            silent, other = await clients.socket(), await clients.socket()
            silent.send(struct.pack(">i", 50 * MIB) + b"\0\3" + bytes(SCRATCH_BYTES))
            await until(lambda: clients.transport._client_bytes.used_bytes == 50 * MIB)
            other.send(request_bytes(produce(MIB)))
            assert await silent.ended() == b""
            await other.frame()
            other.close()

    asyncio.run(scenario())


def test_peers_that_announce_large_frames_and_send_nothing_take_no_bytes_from_others() -> None:
    async def scenario() -> None:
        async with two_listeners(echo, WireLimits(max_node_bytes=MIB)) as (clients, _):
            silent = [await clients.socket() for _ in range(8)]
            for wire in silent:
                wire.send(struct.pack(">i", 50 * MIB) + bytes(1_000))
            other = await clients.socket()
            other.send(request_bytes(produce(MIB)))
            await other.frame()
            assert clients.transport._client_bytes.used_bytes == 0
            for wire in (*silent, other):
                wire.close()

    asyncio.run(scenario())


def test_a_stranger_cannot_take_the_bytes_of_followers() -> None:
    async def scenario() -> None:
        async with two_listeners(echo, WireLimits()) as (_, internal):
            stranger = await internal.socket()
            stranger.send(struct.pack(">i", 50 * MIB) + b"\0\3")
            assert await stranger.ended() == b""
            node = await proven(internal)
            node.send(request_bytes(produce(MIB)))
            await node.frame()
            node.close()

    asyncio.run(scenario())
