"""The serving side of the lane: one listener, its connections, and the sweep that closes idle and stalled ones."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace

from quorumlog.nursery import Nursery, OnCrash
from quorumlog.proof.node_certificate import none_denied
from quorumlog.rpc.proof_log import ProofLog
from quorumlog.rpc.serving.bind import why_not_bound
from quorumlog.rpc.serving.dispatch import Dispatch
from quorumlog.rpc.transport import Address, AddressInUse, Listener
from quorumlog.security.login import tell_nobody
from quorumlog.security.node_auth import NodeAuth
from quorumlog.security.quota.arrivals import Arrivals
from quorumlog.settings.security import StrangerLimits
from quorumlog.turn import Turn
from quorumlog.wire.protocol.features import FeatureNotice
from quorumlog.wire.protocol.limits import ConnectionLimits, NodeBytes, WireLimits
from quorumlog.wire.protocol.versions import Answers, served_versions
from quorumlog.wire.serving.answering import Slot
from quorumlog.wire.serving.counts import ConnectionCounts
from quorumlog.wire.serving.door import Door
from quorumlog.wire.serving.gate import Gate, RefusalLines
from quorumlog.wire.serving.outgoing import SendTurns
from quorumlog.wire.serving.protection import Protection
from quorumlog.wire.serving.secured import SecuredConnection
from quorumlog.wire.serving.served import ServedConnection
from quorumlog.wire.serving.strangers import Strangers
from quorumlog.wire.serving.tls_transport import SCRATCH_BYTES, TlsTransport

_log = logging.getLogger(__name__)
_SWEEPS_PER_LIMIT = 4
_SWEEP_MAX_S = 10.0
_BACKLOG = 512
_PROTECTED_AT_ONCE = 16


class Serving:
    """What the connections of one listener share.

    serves: types of requests that have a handler; None: all. grpc_address: where this node serves the other APIs.
    random_bytes: a source of nonces that cannot be guessed. features: what ApiVersions announces; None: nothing.
    connection_limits: shared by all listeners of a node; None: that of `limits`. protection: None: the listener is
    plain, and knows nobody. strangers, stranger_bytes: peers that have not logged in, and what they may hold together;
    shared by all listeners of a kind. refusals: shared by all listeners of a node.
    arrivals: how fast clients may come, shared by all listeners of a node; None: as fast as they like. counts: of all
    listeners of a node.
    """

    def __init__(
        self,
        dispatch: Dispatch,
        *,
        limits: WireLimits,
        node_bytes: NodeBytes,
        scratch: memoryview,
        send_turns: SendTurns,
        serves: Collection[type] | None,
        grpc_address: Callable[[], Address | None],
        on_crash: OnCrash,
        random_bytes: Callable[[int], bytes],
        proof_log: ProofLog,
        turn: Turn,
        features: FeatureNotice | None = None,
        connection_limits: ConnectionLimits | None = None,
        protection: Protection | None = None,
        strangers: Strangers | None = None,
        stranger_bytes: NodeBytes | None = None,
        refusals: RefusalLines | None = None,
        arrivals: Arrivals | None = None,
        counts: ConnectionCounts | None = None,
    ) -> None:
        self.protection, self.counts = protection, counts or ConnectionCounts()
        self._tls_scratch = memoryview(bytearray(0 if protection is None else SCRATCH_BYTES))
        self.node_auth = NodeAuth.SECRET if protection is None else protection.node_auth
        self.is_denied = none_denied if protection is None else protection.is_denied
        known = Strangers(StrangerLimits()) if strangers is None else strangers
        by_certificate = protection is not None and protection.certified is not None
        on_login = protection.on_login if protection is not None and by_certificate else tell_nobody
        self.gate = Gate(dispatch.listener, known, refusals or RefusalLines(), on_login, self.counts)
        self.door: Door | None = None
        if arrivals is not None and not dispatch.listener.internal:
            self.door = Door(self.gate, arrivals, asyncio.get_running_loop())
        self.stranger_bytes = stranger_bytes or node_bytes
        self.features = features or FeatureNotice()
        self.connection_limits = connection_limits or ConnectionLimits(lambda _listener: limits.max_connections)
        self.turn = turn
        self.random_bytes, self.proof_log = random_bytes, proof_log
        self.dispatch, self.limits, self.node_bytes, self.scratch = dispatch, limits, node_bytes, scratch
        self.send_turns = send_turns
        self.grpc_address, self.on_crash = grpc_address, on_crash
        has_login = protection is not None and protection.sasl is not None
        self.versions = served_versions(serves, dispatch.listener.internal or has_login, dispatch.listener.internal)
        self.version_answers = Answers(self.versions)
        self.loop = asyncio.get_running_loop()
        self.nursery = Nursery(on_crash)
        self._connections: dict[ServedConnection, str] = {}  # with the address that counts for each; "": none
        self._unheard: dict[int, Slot] = {}  # whose connections are gone, by id()
        self.closed = False

    def accept(self) -> asyncio.BaseProtocol:
        """The protocol of a new connection."""
        return self._connection() if self.door is None else self.door.accept(self._connection)

    def _connection(self) -> asyncio.BaseProtocol:
        """The protocol of a connection that is let in."""
        protection = self.protection
        if protection is None:
            return ServedConnection(self)
        # A node proves itself by what it says, or by the certificate that it shows (`ConnectionProof`).
        knows = protection.knows_clients and not self.dispatch.listener.internal
        connection = SecuredConnection(self, protection) if knows else ServedConnection(self)
        if protection.context is None:
            return connection
        timeout_s, plain_too = protection.timeout_ms / 1000, protection.node_auth is NodeAuth.BOTH
        return TlsTransport(
            connection,
            protection.context(),
            self.gate,
            self._tls_scratch,
            timeout_s,
            plain_too,
            lambda: connection.missing_bytes,
        )

    def admit(self, connection: ServedConnection, address: str) -> str:
        """Why it may not stay, as there are too many connections; "" if it is admitted. address: of its peer."""
        limits, internal = self.connection_limits, self.dispatch.listener.internal
        most = limits.of_listener(self.dispatch.listener)
        if len(self._connections) >= most:
            return f"{most} connections to {self.dispatch.listener.name} are open already (max.connections)"
        if internal:
            address = ""
        elif limits.open[address] >= (most := limits.of_address(address)):
            return f"{most} connections from {address} are open already (max.connections.per.ip)"
        else:
            limits.open[address] += 1
        self._connections[connection] = address
        self.counts.of(self.dispatch.listener.name).created += 1
        return ""

    def left(self, connection: ServedConnection) -> None:
        address = self._connections.pop(connection, None)
        if address is None:
            return
        self.counts.of(self.dispatch.listener.name).closed += 1
        if address:
            self.connection_limits.open[address] -= 1
            if not self.connection_limits.open[address]:
                del self.connection_limits.open[address]

    def goes_on(self, slot: Slot) -> None:
        """Its connection is gone, and its request stays charged until its handler has ended."""
        self._unheard[id(slot)] = slot

    def ended(self, slot: Slot) -> None:
        """The handler of a slot that went on."""
        del self._unheard[id(slot)]
        self.node_bytes.give_back(slot.size_bytes)

    def _close_excess(self) -> None:
        """Where the maximum was lowered, those that were used least recently go, idle ones first (as Kafka's processors
        do; connections of nodes stay)."""
        if self.dispatch.listener.internal:
            return
        most = self.connection_limits.of_listener(self.dispatch.listener)
        if (excess := len(self._connections) - most) > 0:
            for connection in sorted(self._connections, key=lambda one: (not one.idle, one.active_s))[:excess]:
                connection.close(f"more than {most} connections are open since max.connections was lowered")

    def cut_all(self) -> None:
        """The listener closes. A connection that is being accepted is cut when it is made."""
        self.closed = True
        if self.door is not None:
            self.door.close()
        for connection in list(self._connections):
            connection.cut()
        for slot in list(self._unheard.values()):
            if slot.running is not None:
                slot.running.cancel()

    async def sweep(self) -> None:
        """Close connections that were idle for too long, and those whose peers take no answers, end no frame, do not
        prove themselves, or have a certificate that was denied meanwhile."""
        limits = self.limits
        shortest_ms = min(limits.max_idle_ms, limits.max_stalled_ms)
        if self.dispatch.listener.internal:
            shortest_ms = min(shortest_ms, limits.max_unproven_ms)
        sweep_s = min(_SWEEP_MAX_S, shortest_ms / 1000 / _SWEEPS_PER_LIMIT)
        glance_s = min(sweep_s, limits.max_stalled_while_others_wait_ms / 1000 / _SWEEPS_PER_LIMIT)
        others_wait = asyncio.Event()
        for held in (self.node_bytes, self.stranger_bytes):
            held.on_others_wait(others_wait.set)
        while True:
            others_wait.clear()
            if self.node_bytes.others_wait or self.stranger_bytes.others_wait:
                await asyncio.sleep(glance_s)
            else:
                await _set_within(others_wait, sweep_s)
            self._close_excess()
            now_s = self.loop.time()
            for connection in list(self._connections):
                self._judge(connection, now_s)

    def _judge(self, connection: ServedConnection, now_s: float) -> None:
        stalled_s = connection.stalled_since_s
        max_receiving_ms = self.limits.max_stalled_ms
        if connection.others_wait:
            max_receiving_ms = min(max_receiving_ms, self.limits.max_stalled_while_others_wait_ms)
        if stalled_s is not None and (now_s - stalled_s) * 1000 >= self.limits.max_stalled_ms:
            connection.close(f"it has taken no answers for {self.limits.max_stalled_ms} ms")
        elif connection.is_denied:
            connection.close("its certificate is denied")
        elif connection.is_unproven and (now_s - connection.accepted_s) * 1000 >= self.limits.max_unproven_ms:
            connection.close(f"it has not proven itself within {self.limits.max_unproven_ms} ms")
        elif self.dispatch.listener.internal and (reason := connection.why_over):
            connection.close(reason)
        elif connection.is_receiving and (now_s - connection.active_s) * 1000 >= max_receiving_ms:
            connection.close(f"it has sent nothing of a frame that it began for {max_receiving_ms} ms")
        elif connection.idle and (now_s - connection.active_s) * 1000 >= self.limits.max_idle_ms:
            _log.debug("closed an idle connection of %s", connection.peer)
            connection.cut()


async def _set_within(event: asyncio.Event, timeout_s: float) -> None:
    """Returns when the event is set, or after the time."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        pass


class WireServer:
    """`transport.Server`."""

    def __init__(self, server: asyncio.Server, serving: Serving) -> None:
        self.listener = serving.dispatch.listener
        self._server, self._serving = server, serving

    async def close(self) -> None:
        self._server.close()
        self._serving.cut_all()
        await self._serving.nursery.close()


async def serve(serving: Serving) -> WireServer:
    """Listen at the address of the dispatch's listener. Raises AddressInUse, or OSError for any other reason."""
    listener = serving.dispatch.listener
    protection = serving.protection
    may_open = None if protection is None else protection.may_open
    try:
        server = await serving.loop.create_server(
            serving.accept,
            listener.address.host or None,
            listener.address.port,
            backlog=_BACKLOG if protection is None else _PROTECTED_AT_ONCE,
            reuse_address=True,
            start_serving=may_open is None,
        )
    except OSError as error:
        raise _why(error, listener) from None
    port: int = server.sockets[0].getsockname()[1]
    serving.dispatch.listener = serving.gate.listener = replace(listener, address=Address(listener.address.host, port))
    serving.nursery.start(serving.sweep(), f"sweep of {listener.name}")
    if may_open is not None:
        serving.nursery.start(_open(server, may_open), f"opening of {listener.name}")
    elif protection is not None:
        _let_more_wait(server)
    return WireServer(server, serving)


async def _open(server: asyncio.Server, may_open: Callable[[], Awaitable[object]]) -> None:
    await may_open()
    await server.start_serving()
    _let_more_wait(server)


def _let_more_wait(server: asyncio.Server) -> None:
    """asyncio accepts as many connections in a turn as it lets wait. Here fewer are accepted at once, as each costs a
    handshake or a login; the others wait in the kernel."""
    for listening in server.sockets:
        with listening.dup() as same:
            same.listen(_BACKLOG)


def _why(error: OSError, listener: Listener) -> Exception:
    if error.errno == errno.EADDRINUSE:
        return AddressInUse(listener)
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return why_not_bound(listener)
    return error
