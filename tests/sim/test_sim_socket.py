"""Simulated sockets behave as asyncio's: bytes in order, in pieces; refusals; ends that the other side notices."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from jepsen.sim.network.message import Message, Verdict
from jepsen.sim.network.network import Network
from jepsen.sim.network.sockets import SimSockets
from jepsen.sim.time import killed_coroutines
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_S, Scheduler

PORT = 9092
_BUFFER_BYTES = 7
_FRAME = b"\0\0\0\x08\0\x01\0\x04\0\0\0\x01"  # a Fetch request, as far as the network reads it


class Peer(asyncio.BufferedProtocol):
    """Records what it receives, through a small buffer."""

    def __init__(self) -> None:
        self.transport: Any = None
        self.received = b""
        self.reads = 0
        self.ends: list[str] = []
        self._buffer = bytearray(_BUFFER_BYTES)

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self._buffer[:nbytes]
        self.reads += 1

    def eof_received(self) -> bool:
        self.ends.append("eof")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.ends.append("lost" if exc is None else "reset")


class Pair:
    """Host `a` connects to host `b`."""

    def __init__(self, seed: int = 1) -> None:
        self.scheduler = Scheduler(seed)
        self.network = Network(self.scheduler)
        self.a, self.b = SimLoop(self.scheduler, "a"), SimLoop(self.scheduler, "b")
        SimSockets(self.network, "a", self.a)
        SimSockets(self.network, "b", self.b)
        self.server = Peer()
        self.client = Peer()

    def connect(self) -> None:
        self.b.run_until_complete(self.b.create_server(lambda: self.server, "b", PORT))
        self.a.run_until_complete(self.a.create_connection(lambda: self.client, "b", PORT))

    def settle(self, seconds: int = 1) -> None:
        self.scheduler.run_for(seconds * NS_PER_S)


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    made.connect()
    yield made
    made.a.kill()
    made.b.kill()
    killed_coroutines.empty()


def test_bytes_arrive_in_their_order(pair: Pair) -> None:
    sent = b"".join(_FRAME + bytes([number]) for number in range(100))
    for number in range(100):
        pair.client.transport.writelines([_FRAME, bytes([number])])
    pair.settle()
    assert pair.server.received == sent
    assert pair.server.reads > 100  # no piece is larger than the buffer
    pair.server.transport.write(b"answer")
    pair.settle()
    assert pair.client.received == b"answer"


def test_nothing_is_read_while_reading_pauses(pair: Pair) -> None:
    pair.server.transport.pause_reading()
    pair.client.transport.write(_FRAME)
    pair.settle()
    assert pair.server.received == b""
    pair.server.transport.resume_reading()
    pair.settle()
    assert pair.server.received == _FRAME


def test_a_connection_without_a_listener_is_refused() -> None:
    pair = Pair()
    with pytest.raises(ConnectionRefusedError):
        pair.a.run_until_complete(pair.a.create_connection(lambda: pair.client, "b", PORT))


def test_a_port_has_one_listener(pair: Pair) -> None:
    with pytest.raises(OSError, match="in use"):
        pair.b.run_until_complete(pair.b.create_server(Peer, "b", PORT))


@pytest.mark.parametrize("end", ["close", "kill"])
def test_the_other_side_notices_an_end(end: str) -> None:
    seen: dict[str, None] = {}
    for seed in range(12):
        pair = Pair(seed)
        pair.connect()
        if end == "close":
            pair.client.transport.close()
        else:
            pair.a.kill()
        pair.settle()
        seen[" ".join(pair.server.ends)] = None
        assert pair.client.ends == (["lost"] if end == "close" else [])  # a killed process notices nothing
        pair.b.kill()
        killed_coroutines.empty()
    assert sorted(seen) == ["eof lost", "reset"]


def test_data_written_before_the_end_arrives_before_it() -> None:
    for seed in range(12):
        pair = Pair(seed)
        pair.connect()
        pair.client.transport.write(_FRAME)
        pair.client.transport.close()
        pair.settle()
        assert pair.server.received == _FRAME
        assert pair.server.ends


def test_a_lost_segment_ends_the_connection_on_both_sides(pair: Pair) -> None:
    def drop(_: Message) -> Verdict:
        return Verdict.DROP

    pair.network.intercept = drop
    pair.client.transport.write(_FRAME)
    pair.settle()
    assert pair.server.received == b""
    assert pair.client.ends and pair.server.ends


def test_a_cut_delays_data_and_loses_nothing(pair: Pair) -> None:
    pair.network.cut("a", "b")
    pair.client.transport.write(_FRAME)
    pair.settle(2)
    assert pair.server.received == b""
    pair.network.heal("a", "b")
    pair.settle()
    assert pair.server.received == _FRAME
