"""The simulated network as a `transport.Transport`, with production's codec, proofs, access checks and dispatch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from jepsen.sim.network.client import SimConnection
from jepsen.sim.network.message import CLIENT
from jepsen.sim.network.network import Network
from jepsen.sim.network.server import SimServer
from jepsen.sim.network.session import Session
from jepsen.sim.time.loop import SimLoop
from quorumlog.nursery import Nursery, OnCrash
from quorumlog.rpc.calling.probe import ask_who
from quorumlog.rpc.calling.prover import Ask, Prover
from quorumlog.rpc.proof_log import ProofLog
from quorumlog.rpc.serving.dispatch import Dispatch
from quorumlog.rpc.serving.gate import Gate
from quorumlog.rpc.serving.request_time import RequestTime
from quorumlog.rpc.transport import (
    Address,
    AddressInUse,
    Handler,
    Identity,
    Listener,
    NoProof,
    ProbeResult,
    Refused,
)

_OWN_HOST = ("", "0.0.0.0", "::", "127.0.0.1", "::1", "localhost")


class SimTransport:
    """One process's access to the network. A restarted process gets a new one for its new loop.

    random_bytes: a source of nonces that gives no value twice, not even to a later process of the host.
    """

    def __init__(
        self,
        network: Network,
        host: str,
        loop: SimLoop,
        identity: Identity | None = None,
        *,
        on_crash: OnCrash,
        random_bytes: Callable[[int], bytes] | None = None,
        time: RequestTime | None = None,
    ) -> None:
        self.identity = identity
        self._random_bytes = random_bytes or network.new_random_bytes(host)
        self._proof_log = ProofLog()
        self._network, self._host, self._loop, self._on_crash = network, host, loop, on_crash
        self._time = time
        self._servers: list[SimServer] = []
        self._connections: list[SimConnection] = []
        loop.on_kill(self._on_kill)

    def connect(self, address: Address, *, internal: bool, client_id: str = "") -> SimConnection:
        assert not internal or self.identity is not None, "an internal connection needs an identity"
        address, identity = self._resolved(address), self.identity

        def make_prover(ask: Ask, nursery: Nursery) -> Prover:
            assert identity is not None
            return Prover(identity, address, ask, nursery=nursery, random_bytes=self._random_bytes, log=self._proof_log)

        connection = SimConnection(
            self._network,
            self._host,
            self._loop,
            address,
            client_id,
            self._on_crash,
            make_prover if internal else None,
        )
        self._connections = [other for other in self._connections if not other.closed]
        self._connections.append(connection)
        return connection

    async def listen(self, listener: Listener, handler: Handler) -> SimServer:
        address = self._resolved(listener.address)
        assert address.host == self._host, f"{self._host} cannot listen at {address}"
        if address.port == 0:
            address = Address(address.host, self._network.free_port())
        if self._network.listens(address):
            raise AddressInUse(listener)
        dispatch = Dispatch(
            listener=replace(listener, address=address),
            identity=self.identity,
            handler=handler,
            on_crash=self._on_crash,
            time=self._time,
        )
        gate = Gate(dispatch, self._random_bytes, self._proof_log)
        server = SimServer(self._network, self._loop, dispatch, gate, self._on_crash)
        self._network.listen(address, server)
        self._servers.append(server)
        return server

    async def probe(self, address: Address, timeout_ms: int) -> ProbeResult:
        deadline = self._loop.time() + timeout_ms / 1000
        address = self._resolved(address)
        try:
            async with asyncio.timeout_at(deadline):
                accepted = await self._accepted(address)
        except TimeoutError:
            return NoProof(f"no connection within {timeout_ms} ms")
        if not accepted:
            return Refused()
        remaining_ms = int((deadline - self._loop.time()) * 1000)
        if remaining_ms <= 0:
            return NoProof(f"no answer within {timeout_ms} ms")
        return await ask_who(self.connect(address, internal=True), remaining_ms)

    async def _accepted(self, address: Address) -> bool:
        """Whether the address has a listener. Opens a connection and closes it."""
        result: asyncio.Future[bool] = self._loop.create_future()

        def on_result(session: Session | None) -> None:
            if session is not None:
                session.end_unused(CLIENT)
            refused = session is None or address.host in self._network.wrong_refusals
            self._loop.deliver(settle, not refused)

        def settle(accepted: bool) -> None:
            if not result.done():
                result.set_result(accepted)

        self._network.connect(self._host, address, (), on_result)
        return await result

    def _resolved(self, address: Address) -> Address:
        return Address(self._host, address.port) if address.host in _OWN_HOST else address

    def _on_kill(self) -> None:
        for server in self._servers:
            server.abandon()
        for connection in self._connections:
            connection.abandon()
