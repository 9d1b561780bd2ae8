"""A frame reaches the peer whole and in order, whatever the socket takes at once and whatever waits before it."""

from __future__ import annotations

import asyncio
import random
import socket

import pytest

from quorumlog.wire.codec import Frame
from quorumlog.wire.sending import send


def frames(seed: int, largest_bytes: int) -> list[Frame]:
    rng = random.Random(seed)
    return [
        [memoryview(rng.randbytes(rng.choice([0, 1, 17, largest_bytes]))) for _ in range(rng.choice([0, 1, 2, 5]))]
        for _ in range(12)
    ]


async def sent_to(peer: socket.socket, ours: socket.socket, told: list[Frame]) -> bytes:
    transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=ours)
    for frame in told:
        send(transport, list(frame))
    transport.close()  # flushes what is held back
    received = bytearray()
    while data := await asyncio.get_running_loop().sock_recv(peer, 65536):
        received += data
    return bytes(received)


@pytest.mark.parametrize(("seed", "largest_bytes"), [(1, 100), (2, 5_000), (3, 400_000), (4, 2_000_000)])
def test_frames_arrive_whole_and_in_order(seed: int, largest_bytes: int) -> None:
    told = frames(seed, largest_bytes)
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    peer.setblocking(False)
    with peer:
        received = asyncio.run(sent_to(peer, ours, told))
    assert received == b"".join(bytes(buffer) for frame in told for buffer in frame)


def test_more_buffers_than_one_call_takes() -> None:
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    peer.setblocking(False)
    with peer:
        received = asyncio.run(sent_to(peer, ours, [[b"%05d" % number for number in range(3_000)]]))
    assert received == b"".join(b"%05d" % number for number in range(3_000))


def test_a_peer_that_has_left_is_the_transports_to_notice() -> None:
    async def run() -> Exception | None:
        ours, peer = socket.socketpair()
        ours.setblocking(False)
        lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

        class Notices(asyncio.Protocol):
            def connection_lost(self, exc: Exception | None) -> None:
                lost.set_result(exc)

        transport, _ = await asyncio.get_running_loop().create_connection(Notices, sock=ours)
        peer.close()
        send(transport, [b"a", b"b"])
        return await lost

    assert isinstance(asyncio.run(run()), OSError | None)
