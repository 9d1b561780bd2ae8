"""Both wires behind one `transport.Transport`: a request goes by the lane if the peer serves it, else by gRPC.

A listener is configured to speak one wire (`Listener.lane`). A caller finds out which: the first call of a connection
sends ApiVersions, as the lane does. The answer also names the node's gRPC address, for requests that the lane does not
carry, or whose answers hold less in Kafka's form than in ours. A peer that does not answer ApiVersions speaks gRPC. On
internal connections only replica fetches do this: all other requests use gRPC, since a vote has no time for it.

A client with TLS uses gRPC with the same protection, or not at all. Whatever the lane carries goes by the lane, unless
it wants gRPC; the rest goes to the address that the node tells once the client has logged in there.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from quorumlog.messages.cluster import MetadataRequest
from quorumlog.messages.fetch import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from quorumlog.messages.produce import InitProducerIdRequest, ProduceRequest
from quorumlog.nursery import Nursery, OnCrash
from quorumlog.rpc.begun_call import begin_by_task
from quorumlog.rpc.caller_security import PLAIN_TEXT, CallerSecurity
from quorumlog.rpc.closing import Closing
from quorumlog.rpc.node_security import NodeSecurity
from quorumlog.rpc.serving.request_parts import RequestBook
from quorumlog.rpc.serving.request_time import RequestTime
from quorumlog.rpc.transport import (
    Address,
    Cancel,
    CanRest,
    Connection,
    Handler,
    Identity,
    Listener,
    NotAuthenticated,
    NotDelivered,
    NotServed,
    OnEnded,
    ProbeResult,
    RpcError,
    Server,
    Transport,
)
from quorumlog.security.protocol import SecurityProtocol
from quorumlog.security.quota.arrivals import Arrivals
from quorumlog.settings.security import StrangerLimits
from quorumlog.turn import Turn
from quorumlog.wire.calling.client import WireConnection
from quorumlog.wire.calling.socket_calls import SILENT
from quorumlog.wire.protocol.apis import BY_REQUEST
from quorumlog.wire.protocol.features import FeatureNotice
from quorumlog.wire.protocol.limits import ConnectionLimits, WireLimits
from quorumlog.wire.serving.counts import ConnectionCounts
from quorumlog.wire.serving.protection import Protection
from quorumlog.wire.transport import WireTransport, log_crash

BY_LANE: frozenset[type] = frozenset(
    {
        ProduceRequest,
        FetchRequest,
        ListOffsetsRequest,
        OffsetForLeaderEpochRequest,
        MetadataRequest,  # the addresses in its response are those of the wire by which it came
        InitProducerIdRequest,
    }
)
BY_INTERNAL_LANE: frozenset[type] = frozenset({FetchRequest})
ALL_OF_LANE = frozenset(BY_REQUEST)
MAX_UNDECIDED_CALLS = 10_000


class RoutingTransport:
    """grpc: replaces the default gRPC transport, with the same identity; the simulation passes a wire of its own.
    by_lane: request types that calls to client listeners send by the lane if possible; empty: none.
    advertised: the addresses that callers are told, by listener name; port 0: the port that is bound.
    random_bytes: a source of nonces that cannot be guessed, for the lane and the default gRPC transport.
    turn: of the node; None: the lane's own. features: what ApiVersions announces; None: nothing.
    connection_limits: of the lane's listeners; None: that of `limits`. protections: of the lane's listeners, by their
    names; the others are plain. stranger_limits: of peers that have not logged in at those.
    security: of a client, on both wires. nodes: for the lane, where nodes of the cluster speak TLS to each other; the
    gRPC transport has its own. time: likewise, what requests take of the loop. book: likewise, how long they take.
    arrivals: how fast clients may come to the lane's listeners. counts: what is counted of the lane's connections."""

    def __init__(
        self,
        identity: Identity | None = None,
        *,
        on_crash: OnCrash = log_crash,
        grpc: Transport | None = None,
        limits: WireLimits | None = None,
        serves: Collection[type] | None = None,
        advertised: Mapping[str, Address] | None = None,
        by_lane: frozenset[type] = BY_LANE,
        random_bytes: Callable[[int], bytes] = os.urandom,
        turn: Turn | None = None,
        features: FeatureNotice | None = None,
        connection_limits: ConnectionLimits | None = None,
        protections: Mapping[str, Protection] | None = None,
        stranger_limits: StrangerLimits | None = None,
        security: CallerSecurity = PLAIN_TEXT,
        nodes: NodeSecurity | None = None,
        time: RequestTime | None = None,
        book: RequestBook | None = None,
        arrivals: Arrivals | None = None,
        counts: ConnectionCounts | None = None,
    ) -> None:
        self._security = security
        self._on_crash, self._by_lane = on_crash, by_lane
        self._advertised = advertised or {}
        # Of this node: by whether the listener is internal, and by its protection
        self._grpc_addresses: dict[tuple[bool, SecurityProtocol], Address] = {}
        self._grpc, self._identity, self._random_bytes = grpc, identity, random_bytes
        self._lane = WireTransport(
            identity,
            on_crash=on_crash,
            limits=limits,
            serves=serves,
            grpc_address=lambda one: self._grpc_addresses.get((one.internal, one.security)),
            random_bytes=random_bytes,
            turn=turn,
            features=features,
            connection_limits=connection_limits,
            protections=protections,
            stranger_limits=stranger_limits,
            security=security,
            nodes=nodes,
            time=time,
            book=book,
            arrivals=arrivals,
            counts=counts,
        )

    @property
    def held_bytes(self) -> dict[bool, int]:
        """Bytes that connections to the lane's listeners hold, by whether the listener is internal."""
        return self._lane.held_bytes

    @property
    def strangers(self) -> int:
        """Connections to the lane's listeners for clients that have not shown yet who they are."""
        return len(self._lane.strangers[False])

    def connect(self, address: Address, *, internal: bool, client_id: str = "") -> RoutingConnection:
        is_secure = not internal and self._security is not PLAIN_TEXT
        by_lane = BY_INTERNAL_LANE if internal else self._by_lane
        if is_secure and by_lane:  # a login there need not show a password
            by_lane = ALL_OF_LANE
        return RoutingConnection(
            address,
            lane=self._lane.connect(address, internal=internal, client_id=client_id),
            connect_grpc=lambda to: self._by_grpc().connect(to, internal=internal, client_id=client_id),
            by_lane=by_lane,
            internal=internal,
            on_crash=self._on_crash,
            is_secure=is_secure,
            why_no_grpc=self._security.why_no_grpc if is_secure else "",
        )

    async def listen(self, listener: Listener, handler: Handler) -> Server:
        if listener.lane:
            return await self._lane.listen(listener, handler)
        server = await self._by_grpc().listen(listener, handler)
        announced = self._advertised.get(listener.name, listener.address)
        port = announced.port or server.listener.address.port
        self._grpc_addresses[listener.internal, listener.security] = Address(announced.host, port)
        return server

    async def probe(self, address: Address, timeout_ms: int) -> ProbeResult:
        return await self._by_grpc().probe(address, timeout_ms)

    def _by_grpc(self) -> Transport:
        """Made when first needed: gRPC takes longer to load than to connect, and a reader by the lane needs none."""
        if self._grpc is None:
            from quorumlog.rpc.grpc.channel_security import of_client
            from quorumlog.rpc.grpc.transport import GrpcTransport

            self._grpc = GrpcTransport(
                self._identity,
                on_crash=self._on_crash,
                random_bytes=self._random_bytes,
                security=None if self._security is PLAIN_TEXT else of_client(self._security),
            )
        return self._grpc


class _Undecided:
    """A call that waits until it is known which wires the peer serves."""

    def __init__(self, request: Any, timeout_ms: int) -> None:
        loop = asyncio.get_running_loop()
        self.request, self.deadline_s = request, loop.time() + timeout_ms / 1000
        self.routed: asyncio.Future[Awaitable[Any]] = loop.create_future()


class RoutingConnection:
    """`transport.Connection`. Calls made before the peer's wires are known are sent in their order once they are."""

    def __init__(
        self,
        address: Address,
        *,
        lane: WireConnection,
        connect_grpc: Callable[[Address], Connection],
        by_lane: frozenset[type],
        internal: bool,
        on_crash: OnCrash,
        is_secure: bool = False,
        why_no_grpc: str = "",
    ) -> None:
        """is_secure: a client that protects what it says; what a peer speaks is judged by TLS. why_no_grpc: it is never
        used, whatever the peer says."""
        self.address, self._is_secure, self._why_no_grpc = address, is_secure, why_no_grpc
        self._lane, self._connect_grpc = lane, connect_grpc
        self._by_lane, self._internal = by_lane, internal
        self._has_lane: bool | None = None  # None: not known yet
        self._no_lane = ""  # why the peer has none
        self._grpc_address: Address | None = address if internal else None
        self._grpc: Connection | None = None
        self._undecided: deque[_Undecided] = deque()
        self._nursery = Nursery(on_crash)
        self._closing = Closing()
        self._closed = False
        lane.on_closed(self._closing.close)

    def call(self, request: Any, timeout_ms: int) -> Awaitable[Any]:
        """See `transport.Connection.call`."""
        if self._closed:
            return _failed(NotDelivered(f"the connection to {self.address} is closed"))
        if self._internal and type(request) not in self._by_lane:
            return self._by_grpc(self.address).call(request, timeout_ms)
        if self._has_lane is not None and not self._undecided:
            return self._route(request, timeout_ms)
        return self._later(request, timeout_ms)

    def begin(self, request: Any, timeout_ms: int, ended: OnEnded) -> Cancel:
        """See `transport.Connection.begin`. Without a task once it is known that the peer serves the request's lane."""
        if self._has_lane and type(request) in self._by_lane and not self._undecided and not self._closed:
            return self._lane.begin(request, timeout_ms, ended)
        return begin_by_task(self.call(request, timeout_ms), ended, self._nursery, f"call to {self.address}")

    def on_closed(self, callback: Callable[[], None]) -> None:
        self._closing.on_closed(callback)

    def rest(self) -> bool:
        """See `transport.CanRest`."""
        if self._closed or self._closing.closed or self._undecided or self._has_lane is None:
            return False
        if self._has_lane and not self._lane.is_quiet:
            return False
        return self._grpc is None or (isinstance(self._grpc, CanRest) and self._grpc.rest())

    async def close(self) -> None:
        self._closed = True
        self._fail_undecided("the connection was closed")
        await self._lane.close()
        if self._grpc is not None:
            await self._grpc.close()
        await self._nursery.close()

    def _route(self, request: Any, timeout_ms: int) -> Awaitable[Any]:
        if not self._has_lane:
            return self._watched(self._by_grpc(self.address).call(request, timeout_ms))
        carried = type(request) in BY_REQUEST
        if type(request) in self._by_lane or (carried and self._grpc_address is None):
            return self._lane.call(request, timeout_ms)
        if self._grpc_address is None:
            return _failed(NotServed(self._why_not(type(request).__name__)))
        return self._by_grpc(self._grpc_address).call(request, timeout_ms)

    def _why_not(self, name: str) -> str:
        if self._why_no_grpc:
            return f"{self.address}: {name} is not carried by Kafka's protocol, and {self._why_no_grpc}"
        like = ", with the security protocol of this one" if self._is_secure else ""
        return (
            f"{self.address} serves {name} neither by the lane nor by gRPC: its node needs a listener whose name "
            f"begins with GRPC{like} (docs/configuration.md, Listeners)"
        )

    async def _watched(self, call: Awaitable[Any]) -> Any:
        """If a peer without a lane cannot be reached by gRPC, the next call asks for its wires again."""
        try:
            return await call
        except NotAuthenticated:
            raise
        except NotDelivered as error:
            self._has_lane = None
            text = (
                f"{self.address} serves neither Kafka's protocol ({self._no_lane}) nor gRPC ({error}): is it a broker?"
            )
            raise NotDelivered(text) from error

    def _by_grpc(self, address: Address) -> Connection:
        if self._grpc is None or self._grpc.address != address:
            old, self._grpc = self._grpc, self._connect_grpc(address)
            self._grpc.on_closed(self._closing.close)
            if old is not None:
                self._nursery.start(old.close(), f"close gRPC to {old.address}")
        return self._grpc

    def _later(self, request: Any, timeout_ms: int) -> Awaitable[Any]:
        call = _Undecided(request, timeout_ms)
        if len(self._undecided) >= MAX_UNDECIDED_CALLS:
            return _failed(NotDelivered(f"{self.address}: {MAX_UNDECIDED_CALLS} calls wait for a connection already"))
        self._undecided.append(call)
        if len(self._undecided) == 1:
            self._nursery.start(self._decide(), f"wires of {self.address}")
        return self._when_routed(call, timeout_ms)

    async def _when_routed(self, call: _Undecided, timeout_ms: int) -> Any:
        try:
            async with asyncio.timeout_at(call.deadline_s):
                answer = await call.routed
        except TimeoutError:
            why = SILENT if self._lane.is_unanswered else "is not connected within {} ms"
            raise NotDelivered(f"{self.address} {why.format(timeout_ms)}") from None
        except asyncio.CancelledError:
            if call.routed.cancelled() or not call.routed.done() or call.routed.exception() is not None:
                raise
            _cancel_again()  # it was routed just before: its wire knows how to give it up
            answer = call.routed.result()
        return await answer

    async def _decide(self) -> None:
        """Find out the peer's wires, then route the calls that wait."""
        if self._has_lane is None:
            try:
                await self._ask()
            except NotAuthenticated as error:
                self._fail_undecided(str(error), NotAuthenticated)
                return
            except NotDelivered as error:
                self._fail_undecided(str(error))
                return
        while self._undecided:
            call = self._undecided.popleft()
            left_ms = int((call.deadline_s - asyncio.get_running_loop().time()) * 1000)
            if left_ms > 0 and not call.routed.done():
                call.routed.set_result(self._route(call.request, left_ms))

    async def _ask(self) -> None:
        """The peer, what it speaks. Raises NotDelivered, NotAuthenticated."""
        wants_grpc = self._is_secure and not self._by_lane and not self._why_no_grpc
        if wants_grpc and await _speaks_grpc(self._by_grpc(self.address)):
            self._has_lane, self._no_lane = False, "it speaks gRPC"
            return
        negotiated = await self._lane.negotiate(ordered=not self._internal)
        if negotiated.denied is not None:
            raise NotAuthenticated(negotiated.reason)
        if not negotiated.reached or (self._is_secure and not negotiated.is_lane):
            raise NotDelivered(negotiated.reason)
        self._has_lane, self._no_lane = negotiated.is_lane, negotiated.reason
        if not self._internal and not self._why_no_grpc:
            self._grpc_address = negotiated.grpc_address

    def _fail_undecided(self, reason: str, kind: type[RpcError] = NotDelivered) -> None:
        while self._undecided:
            call = self._undecided.popleft()
            if not call.routed.done():
                call.routed.set_exception(kind(reason if kind is NotAuthenticated else f"{self.address}: {reason}"))


async def _speaks_grpc(connection: Connection) -> bool:
    """By TLS's own word (ALPN), before anything else is said: whoever wants gRPC may be told its address in place of
    the lane's. Raises NotDelivered, NotAuthenticated."""
    from quorumlog.rpc.grpc.client import GrpcConnection

    assert isinstance(connection, GrpcConnection), "a client's own gRPC"
    return await connection.is_grpc()


def _cancel_again() -> None:
    """Let the next wait of this task raise the cancellation that was caught, and count it once."""
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
    task.cancel()


async def _failed(error: RpcError) -> Any:
    raise error
