"""The worlds in which the transport contract is tested, each with one loop for both ends."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Protocol

from secured import by_name, channel_security, material_of, server_security

from jepsen.sim.network.network import Network
from jepsen.sim.network.sockets import SimSockets
from jepsen.sim.network.transport import SimTransport
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import Scheduler
from quorumlog.ids import NodeId
from quorumlog.nursery import OnCrash
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.node_security import NodeSecurity
from quorumlog.rpc.transport import Address, Identity, Listener, ProbeResult, Transport
from quorumlog.security.node_auth import NodeAuth
from quorumlog.security.protocol import SecurityProtocol
from quorumlog.security.tls.settings import ClientTls
from quorumlog.wire.protocol.apis import BY_REQUEST
from quorumlog.wire.transport import WireTransport

TEST_LIMIT_S = 20


def identity(node_id: NodeId, *, cluster_id: str = "c1", secret: bytes = b"s" * 32) -> Identity:
    return Identity(cluster_id=cluster_id, node_id=node_id, incarnation_id=bytes([node_id]) * 16, secret=secret)


class World(Protocol):
    crashes: list[tuple[str, BaseException]]  # unexpected exceptions of handlers

    def run(self, scenario: Coroutine[Any, Any, None]) -> None: ...

    def server(self, own: Identity | None) -> Transport: ...

    def client(self, own: Identity | None) -> Transport: ...

    def listener(self, *, internal: bool) -> Listener:
        """A listener at a free port of the server's host."""

    def dead_address(self) -> Address:
        """An address of the server's host at which nothing listens."""

    @staticmethod
    def carries(request: Any) -> bool:
        """Whether this transport carries requests of this type."""


class GrpcWorld:
    def __init__(self) -> None:
        self.crashes: list[tuple[str, BaseException]] = []

    def run(self, scenario: Coroutine[Any, Any, None]) -> None:
        async def limited() -> None:
            async with asyncio.timeout(TEST_LIMIT_S):
                await scenario

        asyncio.run(limited())

    def server(self, own: Identity | None) -> Transport:
        return GrpcTransport(own, on_crash=lambda name, error: self.crashes.append((name, error)))

    client = server

    def listener(self, *, internal: bool) -> Listener:
        return Listener(name="TEST", address=Address("127.0.0.1", 0), internal=internal)

    def dead_address(self) -> Address:
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            return Address("127.0.0.1", sock.getsockname()[1])

    @staticmethod
    def carries(request: Any) -> bool:
        return True


class GrpcTlsWorld(GrpcWorld):
    def server(self, own: Identity | None) -> Transport:
        trusted = material_of(None)
        return GrpcTransport(
            own,
            on_crash=lambda name, error: self.crashes.append((name, error)),
            security=channel_security(),
            server_security=by_name(server_security()),
            nodes=NodeSecurity(auth=NodeAuth.SECRET, tls=ClientTls(), material=lambda: trusted),
        )

    client = server

    def listener(self, *, internal: bool) -> Listener:
        return replace(super().listener(internal=internal), security=SecurityProtocol.SSL)


class LaneWorld(GrpcWorld):
    def server(self, own: Identity | None) -> Transport:
        return WireTransport(own, on_crash=lambda name, error: self.crashes.append((name, error)))

    client = server

    @staticmethod
    def carries(request: Any) -> bool:
        return type(request) in BY_REQUEST


class SimWorld:
    def __init__(self) -> None:
        self.crashes: list[tuple[str, BaseException]] = []
        self.scheduler = Scheduler(seed=4711)
        self.network = Network(self.scheduler)
        self.loop = SimLoop(self.scheduler, "test")

    def run(self, scenario: Coroutine[Any, Any, None]) -> None:
        try:
            self.loop.run_until_complete(scenario)
        finally:
            self.loop.kill()

    def _transport(self, host: str, own: Identity | None) -> Transport:
        on_crash = lambda name, error: self.crashes.append((name, error))  # noqa: E731
        return SimTransport(self.network, host, self.loop, own, on_crash=on_crash)

    def server(self, own: Identity | None) -> Transport:
        return self._transport("server", own)

    def client(self, own: Identity | None) -> Transport:
        return self._transport("client", own)

    def listener(self, *, internal: bool) -> Listener:
        return Listener(name="TEST", address=Address("server", 0), internal=internal)

    def dead_address(self) -> Address:
        return Address("server", 1)

    @staticmethod
    def carries(request: Any) -> bool:
        return True


class _SimLane(WireTransport):
    """The lane without its own probe, which would use the real network."""

    def __init__(self, own: Identity | None, on_crash: OnCrash, prover: SimTransport) -> None:
        super().__init__(own, on_crash=on_crash)
        self._prover = prover

    async def probe(self, address: Address, timeout_ms: int) -> ProbeResult:
        return await self._prover.probe(address, timeout_ms)


class SimLaneWorld(SimWorld):
    """The production lane on simulated sockets of one host."""

    def __init__(self) -> None:
        super().__init__()
        SimSockets(self.network, "server", self.loop)

    def _transport(self, host: str, own: Identity | None) -> Transport:
        on_crash = lambda name, error: self.crashes.append((name, error))  # noqa: E731
        return _SimLane(own, on_crash, SimTransport(self.network, host, self.loop, own, on_crash=on_crash))

    @staticmethod
    def carries(request: Any) -> bool:
        return type(request) in BY_REQUEST
