"""A frame reaches the peer whole and in order, a turn of the loop writes no more than it may, and nothing is held."""

from __future__ import annotations

import asyncio
import random
import socket
import weakref
from collections import Counter

import pytest

from quorumlog.wire.protocol.codec import Frame
from quorumlog.wire.protocol.limits import PIECE_BYTES
from quorumlog.wire.serving.outgoing import Outgoing, SendTurns, WriteNow, writer_of

MIB = 1024 * 1024


class Ends(asyncio.Protocol):
    """outgoing: of the connection. lost: set when it has ended."""

    def __init__(self) -> None:
        self.outgoing: Outgoing | None = None
        self.lost = asyncio.Event()

    def resume_writing(self) -> None:
        if self.outgoing is not None:
            self.outgoing.resumed()

    def connection_lost(self, exc: Exception | None) -> None:
        assert self.outgoing is not None
        self.outgoing.drop()
        self.lost.set()


class Connection:
    """One served end and its peer. written: bytes that the socket took, by turn of the loop."""

    def __init__(self, turns: SendTurns, send_buffer_bytes: int | None = None) -> None:
        self.turns = turns
        self.ours, self.peer = socket.socketpair()
        for end in (self.ours, self.peer):
            end.setblocking(False)
        if send_buffer_bytes is not None:
            self.ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
        self.written: Counter[int] = Counter()
        self.progress = 0

    async def open(self, turn_of: Turn) -> Connection:
        transport, protocol = await asyncio.get_running_loop().create_connection(Ends, sock=self.ours)
        transport.set_write_buffer_limits(high=0)
        real = writer_of(transport)
        assert real is not None

        def noted(buffers: list[bytes | bytearray | memoryview]) -> int:
            sent = real(buffers)
            self.written[turn_of.number] += sent
            return sent

        write_now: WriteNow = noted
        self.transport, self.protocol = transport, protocol
        self.outgoing = protocol.outgoing = Outgoing(transport, write_now, self.turns, self._on_progress)
        return self

    def _on_progress(self) -> None:
        self.progress += 1

    async def received(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            data += await asyncio.get_running_loop().sock_recv(self.peer, MIB)
        return bytes(data)


class Turn:
    """number: of the loop's turn."""

    def __init__(self) -> None:
        self.number = 0
        self._next()

    def _next(self) -> None:
        self.number += 1
        asyncio.get_running_loop().call_soon(self._next)


def frames(seed: int) -> list[Frame]:
    rng = random.Random(seed)
    sizes = [0, 1, 17, 5_000, PIECE_BYTES, 400_000, 3 * MIB]
    return [
        [memoryview(rng.randbytes(rng.choice(sizes[: rng.randrange(1, 8)]))) for _ in range(rng.choice([0, 1, 2, 5]))]
        for _ in range(12)
    ]


@pytest.mark.parametrize("seed", range(8))
def test_frames_arrive_whole_and_in_order_whatever_a_turn_may_write(seed: int) -> None:
    wanted = frames(seed)
    whole = b"".join(bytes(buffer) for frame in wanted for buffer in frame)

    async def scenario() -> None:
        turn_bytes = random.Random(seed).choice([1_000, 100_000, MIB, 100 * MIB])
        if len(whole) > 1_000 * turn_bytes:
            turn_bytes = MIB
        connection = await Connection(SendTurns(turn_bytes)).open(Turn())
        rng = random.Random(seed)
        receiving = asyncio.ensure_future(connection.received(len(whole)))
        for frame in wanted:
            connection.outgoing.send(list(frame))
            if rng.random() < 0.5:
                await asyncio.sleep(0)
        assert await receiving == whole
        connection.outgoing.close()
        await connection.protocol.lost.wait()

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_all_connections_together_write_no_more_in_a_turn_than_it_may() -> None:
    async def scenario() -> None:
        turn, turns = Turn(), SendTurns(MIB)
        connections = [await Connection(turns).open(turn) for _ in range(5)]
        receiving = [asyncio.ensure_future(one.received(4 * MIB)) for one in connections]
        for one in connections:
            one.outgoing.send([b"head", bytes(4 * MIB - 4)])
        await asyncio.gather(*receiving)
        written: Counter[int] = Counter()
        for one in connections:
            written += one.written
        assert max(written.values()) <= MIB and sum(written.values()) > MIB
        for one in connections:
            one.transport.abort()

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_connection_with_a_large_answer_does_not_keep_the_others_from_sending() -> None:
    async def scenario() -> None:
        turn, turns = Turn(), SendTurns(64 * 1024)
        large, small = [await Connection(turns).open(turn) for _ in range(2)]
        receiving = asyncio.ensure_future(large.received(20 * MIB))
        large.outgoing.send([b"head", bytes(20 * MIB - 4)])
        small.outgoing.send([b"small"])
        assert await small.received(5) == b"small" and not receiving.done()
        small.outgoing.send([bytes(200_000)])
        assert await small.received(200_000) == bytes(200_000) and not receiving.done()
        await receiving
        for one in (large, small):
            one.transport.abort()

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_peer_that_takes_nothing_is_charged_for_all_and_holds_no_frame() -> None:
    """One unsent byte of a view kept the whole frame below it."""

    class Frames(bytearray):
        """bytearray has no weak references."""

    async def scenario() -> None:
        connection = await Connection(SendTurns(256 * 1024), send_buffer_bytes=4096).open(Turn())
        frame = Frames(8 * MIB)
        alive = weakref.ref(frame)
        connection.outgoing.send([b"head", memoryview(frame)[4 * MIB :]])
        del frame
        turns = 0
        while alive() is not None:
            turns += 1
            await asyncio.sleep(0)
        assert 10 < turns < 100
        unsent = connection.outgoing.unsent_bytes
        assert 4 * MIB - 200_000 < unsent <= 4 * MIB + 4
        assert connection.transport.get_write_buffer_size() <= PIECE_BYTES
        data = await connection.received(4 * MIB + 4)
        assert data == b"head" + bytes(4 * MIB) and connection.progress > 0
        while connection.outgoing.unsent_bytes:  # noqa: ASYNC110
            await asyncio.sleep(0)
        connection.transport.abort()

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_what_is_unsent_when_it_is_closed_is_sent_first() -> None:
    async def scenario() -> None:
        connection = await Connection(SendTurns(MIB), send_buffer_bytes=4096).open(Turn())
        connection.outgoing.send([b"head", bytes(5 * MIB)])
        connection.outgoing.close()
        assert not connection.transport.is_closing()
        assert len(await connection.received(5 * MIB + 4)) == 5 * MIB + 4
        await connection.protocol.lost.wait()

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_what_is_unsent_when_the_peer_leaves_is_dropped() -> None:
    async def scenario() -> None:
        connection = await Connection(SendTurns(MIB), send_buffer_bytes=4096).open(Turn())
        connection.outgoing.send([b"head", bytes(5 * MIB)])
        connection.peer.close()
        await connection.protocol.lost.wait()
        assert connection.outgoing.unsent_bytes == 0 and not connection.outgoing._views

    asyncio.run(asyncio.wait_for(scenario(), 30))
