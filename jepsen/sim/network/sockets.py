"""Simulated sockets: production's asyncio protocols over sessions, with `create_connection` and `create_server`.

The data lane runs on them unchanged, with frames, handshake and limits. This TCP keeps order, splits written data into
arbitrary pieces, and may break at any time; it neither loses nor repeats data. What a peer does not read fills buffers:
beyond KERNEL_BYTES and its own limit, a writing protocol is told to pause until the peer has read.
"""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from jepsen.sim.network.message import CLIENT, SERVER, Message, Phase
from jepsen.sim.network.network import Network
from jepsen.sim.network.session import Session
from jepsen.sim.time.loop import SimLoop
from quorumlog.messages.buffer import Buffer
from quorumlog.rpc.caller import Metadata
from quorumlog.rpc.transport import Address
from quorumlog.wire.format.frame_writer import LENGTH_BYTES
from quorumlog.wire.format.header import API_VERSIONS_KEY
from quorumlog.wire.protocol.apis import BY_KEY
from quorumlog.wire.protocol.sasl import AUTHENTICATE_KEY, HANDSHAKE_KEY

_INTRODUCTIONS = {
    API_VERSIONS_KEY: "ApiVersions",
    HANDSHAKE_KEY: "SaslHandshake",
    AUTHENTICATE_KEY: "SaslAuthenticate",
}
KERNEL_BYTES = 128 << 10  # of written data that the two kernels hold
LANE = "/lane/"  # prefix of an API's name, in place of a gRPC service
_CUT_IN_TWO = 0.1  # probability that arriving data is split
_RESET = 0.5  # probability that the other side's end arrives as a reset, otherwise as EOF

_HIGH_DEFAULT = 64 << 10  # asyncio's

Factory = Callable[[], asyncio.BufferedProtocol]


class SimSockets:
    """One process's sockets, used by its loop."""

    def __init__(self, network: Network, host: str, loop: SimLoop) -> None:
        self.network, self.host, self.loop = network, host, loop
        self.rng = network.scheduler.rng(f"sockets/{host}")
        self._open: dict[int, SimSocket] = {}
        self._servers: list[SimSocketServer] = []
        self._next_number = 1
        loop.sockets = self
        loop.on_kill(self._on_kill)

    async def connect(self, factory: Factory, address: Address) -> tuple[SimSocket, asyncio.BufferedProtocol]:
        """Raises ConnectionRefusedError. Waits for ever if the network is silent."""
        arrived: asyncio.Future[Session | None] = self.loop.create_future()
        self.network.connect(self.host, address, (), lambda session: self._arrived(arrived, session))
        session = await arrived
        if session is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")
        socket = self.opened(session, CLIENT, factory())
        socket.made()
        return socket, socket.protocol

    def listen(self, factory: Factory, address: Address, start_serving: bool = True) -> SimSocketServer:
        """start_serving: False: it refuses connections until its `start_serving` is called."""
        if address.port == 0:
            address = Address(address.host, self.network.free_port())
        if self.network.listens(address):
            raise OSError(errno.EADDRINUSE, "address in use")
        server = SimSocketServer(self, factory, address)
        if start_serving:
            self.network.listen(address, server)
        self._servers.append(server)
        return server

    def opened(self, session: Session, side: str, protocol: asyncio.BufferedProtocol) -> SimSocket:
        socket = SimSocket(self, self._next_number, session, side, protocol)
        self._open[self._next_number] = socket
        self._next_number += 1
        return socket

    def closed(self, number: int) -> None:
        self._open.pop(number, None)

    @property
    def protocols(self) -> list[asyncio.BufferedProtocol]:
        """Of the open sockets."""
        return [socket.protocol for socket in self._open.values()]

    def _arrived(self, arrived: asyncio.Future[Session | None], session: Session | None) -> None:
        if session is not None and not self.loop.alive:
            session.end_unused(CLIENT)
        self.loop.deliver(_settle, arrived, session)

    def _on_kill(self) -> None:
        """The kernel's work after the process ended: peers are told, this process is not."""
        for server in self._servers:
            server.close()
        for socket in list(self._open.values()):
            socket.abandon()


def _settle(arrived: asyncio.Future[Session | None], session: Session | None) -> None:
    if not arrived.done():
        arrived.set_result(session)
    elif session is not None:  # the caller was cancelled
        session.end_unused(CLIENT)


class SimSocketServer:
    """The result of `create_server`: `sockets[0].getsockname()` returns the port."""

    def __init__(self, sockets: SimSockets, factory: Factory, address: Address) -> None:
        self.sockets = [self]
        self._host_sockets, self._factory, self._address = sockets, factory, address

    def getsockname(self) -> tuple[str, int]:
        return self._address.host, self._address.port

    async def start_serving(self) -> None:
        self._host_sockets.network.listen(self._address, self)

    def dup(self) -> AbstractContextManager[SimSocketServer]:
        return nullcontext(self)

    def listen(self, backlog: int) -> None:
        """As many wait here as come."""

    def accept(self, session: Session, metadata: Metadata) -> None:
        """Called by the network, as the host."""
        socket = self._host_sockets.opened(session, SERVER, self._factory())
        self._host_sockets.loop.deliver(socket.made)

    def close(self) -> None:
        self._host_sockets.network.stop_listening(self._address, self)


class SimSocket(asyncio.Transport):
    """One end of a connection: an asyncio transport for its protocol, and an end of its session."""

    def __init__(
        self, sockets: SimSockets, number: int, session: Session, side: str, protocol: asyncio.BufferedProtocol
    ) -> None:
        super().__init__()
        self.protocol = protocol
        self._sockets, self._number, self._session, self._side = sockets, number, session, side
        self._loop: SimLoop = sockets.loop
        self._rng: random.Random = sockets.rng
        self._received = bytearray()  # not read by the protocol yet
        self._paused = self._closing = self._eof = False
        self._unread = 0  # bytes written that the peer's protocol has not taken
        self._high, self._low = _HIGH_DEFAULT, _HIGH_DEFAULT // 4
        self._told_to_pause = False
        session.attach(side, self)
        session.on_taken(side, self._taken)

    # --- the protocol's side

    def made(self) -> None:
        self.protocol.connection_made(self)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "peername":
            return self._session.host(SERVER if self._side == CLIENT else CLIENT), self._session.number
        return default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = _HIGH_DEFAULT if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return max(0, self._unread - KERNEL_BYTES)

    def is_closing(self) -> bool:
        return self._closing

    def write(self, data: Buffer | memoryview) -> None:
        if data and not self._closing:
            self._unread += len(data)
            self._session.send(self._side, self._message(bytes(data)))
            if not self._told_to_pause and self.get_write_buffer_size() > self._high:
                self._told_to_pause = True
                self._sockets.network.full_buffers += 1
                self.protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        self._loop.call_soon(self._read)

    def close(self) -> None:
        if not self._closing:
            self._close(None)

    abort = close  # written data has been sent already

    def abandon(self) -> None:
        self._session.close(self._side)

    # --- the session's side, outside of any node's loop

    def on_message(self, message: Message) -> None:
        self._loop.deliver(self._take, message)

    def on_broken(self) -> None:
        self._loop.deliver(self._broken)

    def _taken(self, count: int) -> None:
        """The peer's protocol has taken so many of the bytes that were written here."""
        self._unread -= count
        if self._told_to_pause and self.get_write_buffer_size() <= self._low:
            self._told_to_pause = False
            self._loop.deliver(self._resume_writing)

    def _resume_writing(self) -> None:
        if not self._closing and not self._told_to_pause:
            self.protocol.resume_writing()

    # --- within

    def _take(self, message: Message) -> None:
        if not message.path.startswith(LANE):
            self.close()  # a gRPC client at a lane listener
            return
        data = message.data
        if len(data) > 1 and self._rng.random() < _CUT_IN_TWO:
            first = self._rng.randrange(1, len(data))
            self._received += data[:first]
            self._read()
            data = data[first:]
        self._received += data
        self._read()

    def _read(self) -> None:
        while self._received and not self._paused and not self._closing:
            self.protocol.buffer_updated(self._fill())
        if self._eof and not self._received and not self._closing:
            self._eof = False
            if not self.protocol.eof_received():
                self._close(None)

    def _fill(self) -> int:
        """Copy received bytes into the protocol's buffer. Returns the number of bytes."""
        buffer = memoryview(self.protocol.get_buffer(-1))
        count = min(len(buffer), len(self._received))
        buffer[:count] = self._received[:count]
        del self._received[:count]
        self._session.taken(self._side, count)
        return count

    def _broken(self) -> None:
        if self._closing:
            return
        if self._rng.random() < _RESET:
            self._close(ConnectionResetError(errno.ECONNRESET, "reset"))
        else:
            self._eof = True
            self._read()

    def _close(self, error: OSError | None) -> None:
        self._closing = True
        self._received.clear()
        self._session.close(self._side)
        self._sockets.closed(self._number)
        self._loop.call_soon(self.protocol.connection_lost, error)

    def _message(self, data: bytes) -> Message:
        request = self._side == CLIENT
        other = SERVER if request else CLIENT
        return Message(
            source=self._session.host(self._side),
            destination=self._session.host(other),
            path=f"{LANE}{_api_name(data)}" if request else f"{LANE}answer",
            phase=Phase.REQUEST if request else Phase.RESPONSE,
            ordered=True,
            data=data,
        )


def _api_name(frame: bytes) -> str:
    """Name of a request's API, for the trace and for interceptors."""
    key = int.from_bytes(frame[LENGTH_BYTES : LENGTH_BYTES + 2], "big")
    return BY_KEY[key].method.name if key in BY_KEY else _INTRODUCTIONS[key]
