"""A frame reaches the peer whole and in order, however much the socket takes at once and whatever waits before it."""

from __future__ import annotations

import asyncio
import random
import socket
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.wire.calling import sending
from quorumlog.wire.calling.sending import copied, send
from quorumlog.wire.protocol.codec import Frame
from quorumlog.wire.protocol.limits import PIECE_BYTES
from tests.left_behind import complaints


def frames(seed: int, largest_bytes: int) -> list[Frame]:
    rng = random.Random(seed)
    return [
        [memoryview(rng.randbytes(rng.choice([0, 1, 17, largest_bytes]))) for _ in range(rng.choice([0, 1, 2, 5]))]
        for _ in range(12)
    ]


async def sent_to(peer: socket.socket, ours: socket.socket, wanted: list[Frame]) -> bytes:
    transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=ours)
    for frame in wanted:
        send(transport, list(frame))
    transport.close()  # sends what it holds back
    received = bytearray()
    while data := await asyncio.get_running_loop().sock_recv(peer, 65536):
        received += data
    return bytes(received)


@pytest.mark.parametrize(("seed", "largest_bytes"), [(1, 100), (2, 5_000), (3, 400_000), (4, 2_000_000)])
def test_frames_arrive_whole_and_in_order(seed: int, largest_bytes: int) -> None:
    wanted = frames(seed, largest_bytes)
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    peer.setblocking(False)
    with peer:
        received = asyncio.run(sent_to(peer, ours, wanted))
    assert received == b"".join(bytes(buffer) for frame in wanted for buffer in frame)


@pytest.mark.parametrize("seed", [3, 4])
def test_frames_arrive_as_whole_where_transports_keep_buffers(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "_TRANSPORT_KEEPS_BUFFERS", True)
    test_frames_arrive_whole_and_in_order(seed, 1_000_000)


SIZES = st.lists(st.tuples(st.sampled_from([0, 1, 17, PIECE_BYTES, 3 * PIECE_BYTES + 5]), st.booleans()), max_size=5)


@given(SIZES)
def test_what_waits_is_in_pieces_and_holds_no_frame(sizes: list[tuple[int, bool]]) -> None:
    frame: Frame = [memoryview(bytes(size + 1000))[1000:] if view else bytes(size) for size, view in sizes]
    pieces = list(copied(frame))
    assert b"".join(pieces) == b"".join(frame)
    assert all(len(piece) <= PIECE_BYTES and not isinstance(piece, memoryview) for piece in pieces)
    assert len(pieces) == -(-sum(map(len, frame)) // PIECE_BYTES)


def test_what_waits_is_joined() -> None:
    """Since Python 3.12 a transport sums up the buffers that it holds at each write: 20,000 buffers took seconds."""
    frame: Frame = [memoryview(b"%05d" % number) for number in range(20_000)]
    assert [len(piece) for piece in copied(frame)] == [PIECE_BYTES, 100_000 - PIECE_BYTES]


def test_an_answer_that_a_slow_reader_does_not_take_releases_its_frames() -> None:
    """One unsent byte of a view kept the whole frame below it."""

    class Frames(bytearray):
        """bytearray has no weak references."""

    async def run() -> bool:
        ours, peer = socket.socketpair()
        ours.setblocking(False)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=ours)
        frame = Frames(2_000_000)
        alive = weakref.ref(frame)
        send(transport, [b"head", memoryview(frame)[1_000_000:]])
        assert transport.get_write_buffer_size() > 0
        del frame
        kept = alive() is not None
        transport.abort()
        peer.close()
        return kept

    assert not asyncio.run(run())


def test_more_buffers_than_one_call_takes() -> None:
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    peer.setblocking(False)
    with peer:
        received = asyncio.run(sent_to(peer, ours, [[b"%05d" % number for number in range(3_000)]]))
    assert received == b"".join(b"%05d" % number for number in range(3_000))


def test_a_peer_that_has_left_is_noticed_by_the_transport() -> None:
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


def test_a_peer_that_has_left_is_no_reason_to_complain() -> None:
    """asyncio warns "socket.send() raised exception." from the fifth write on after one that failed."""

    async def scenario() -> None:
        ours, peer = socket.socketpair()
        ours.setblocking(False)
        transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=ours)
        peer.close()
        for _ in range(20):
            send(transport, [b"x"])
            send(transport, [b"x"] * 20)
        await asyncio.sleep(0)
        assert transport.is_closing()

    with complaints() as left_behind:
        asyncio.run(scenario())
    assert left_behind == []
