"""The calling side of the lane: one connection to one address, over as many sockets as its calls need.

A socket answers in order, so a slow request delays all requests behind it. Ordered types (Produce) share one socket,
because they need that order. Every other call uses a socket of a small pool alone until it is answered. A call that is
given up before its answer closes its socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from quorumlog.nursery import Nursery, OnCrash
from quorumlog.rpc.begun_call import already_ended
from quorumlog.rpc.caller_security import PLAIN_TEXT, CallerSecurity
from quorumlog.rpc.closing import Closing
from quorumlog.rpc.node_security import NodeSecurity
from quorumlog.rpc.proof_log import ProofLog
from quorumlog.rpc.transport import (
    ORDERED,
    Address,
    Cancel,
    Identity,
    NotAuthenticated,
    NotDelivered,
    OnEnded,
    RpcError,
)
from quorumlog.turn import Turn
from quorumlog.wire.calling.socket_calls import Caller, PendingCall, SocketCalls
from quorumlog.wire.protocol.apis import BY_REQUEST
from quorumlog.wire.protocol.limits import WireLimits


@dataclass(frozen=True, slots=True)
class Negotiated:
    """What the peer answered to ApiVersions. reached: there is a peer. is_lane: it speaks Kafka's protocol.

    grpc_address: where it serves gRPC, if it said so. reason: why it was not reached, or does not speak the protocol.
    denied: its refusal, or this client's of it.
    """

    reached: bool
    is_lane: bool
    grpc_address: Address | None
    reason: str
    denied: NotAuthenticated | None = None


MAX_POOLED_SOCKETS = 16  # of one connection; further calls queue behind others


class WireConnection:
    """`transport.Connection`, for requests that the lane carries. Used on the loop of its first call."""

    def __init__(
        self,
        address: Address,
        *,
        identity: Identity | None,
        client_id: str,
        limits: WireLimits,
        scratch: memoryview,
        on_crash: OnCrash,
        random_bytes: Callable[[int], bytes],
        proof_log: ProofLog,
        turn: Turn,
        security: CallerSecurity = PLAIN_TEXT,
        nodes: NodeSecurity | None = None,
    ) -> None:
        self.address, self._turn = address, turn
        self._caller = Caller(address, identity, client_id, random_bytes, proof_log, security, nodes)
        self._limits, self._scratch = limits, scratch
        self._nursery = Nursery(on_crash)
        self._ordered: SocketCalls | None = None
        self._pool: list[SocketCalls] = []
        self._closing = Closing()
        self._closed = False

    def call(self, request: Any, timeout_ms: int) -> Awaitable[Any]:
        assert timeout_ms > 0, "every call has a deadline"
        name = BY_REQUEST[type(request)].method.name
        if self._closed:
            return _failed(NotDelivered(f"{name}: the connection to {self.address} is closed"))
        if (denied := self._denied()) is not None:
            return _failed(denied)
        call = PendingCall(request, timeout_ms)
        if type(request) in ORDERED:
            self.ordered_socket().add(call)
            return call.wait()
        socket = self._free_socket()
        socket.add(call)
        return self._alone(socket, call)

    def begin(self, request: Any, timeout_ms: int, ended: OnEnded) -> Cancel:
        assert timeout_ms > 0, "every call has a deadline"
        assert type(request) not in ORDERED, "ordered requests are awaited"

        def over(response: Any, error: Exception | None) -> None:
            if error is not None:
                self._give_up(socket, call)
            ended(response, error)

        if self._closed:
            name = BY_REQUEST[type(request)].method.name
            ended(None, NotDelivered(f"{name}: the connection to {self.address} is closed"))
            return already_ended
        if (denied := self._denied()) is not None:
            ended(None, denied)
            return already_ended
        call, socket = PendingCall(request, timeout_ms, over), self._free_socket()
        socket.add(call)

        def cancel() -> None:
            call.give_up()
            self._give_up(socket, call)

        return cancel

    def on_closed(self, callback: Callable[[], None]) -> None:
        self._closing.on_closed(callback)

    async def close(self) -> None:
        self._closed = True
        for socket in [*([self._ordered] if self._ordered is not None else []), *self._pool]:
            socket.end("the connection was closed")
        await self._nursery.close()

    def ordered_socket(self) -> SocketCalls:
        """The socket of the ordered calls; opened if there is none."""
        if self._ordered is None:
            self._ordered = self._open()
        return self._ordered

    @property
    def is_quiet(self) -> bool:
        """It is connected, and no call waits: none of its sockets will bring an answer."""
        sockets = [*self._pool, *([self._ordered] if self._ordered is not None else [])]
        return not self._closed and bool(sockets) and all(one.ready and len(one) == 0 for one in sockets)

    @property
    def is_unanswered(self) -> bool:
        """The peer has accepted a connection, and has not introduced itself yet."""
        return any(one.is_unanswered for one in (*self._pool, *([self._ordered] if self._ordered is not None else [])))

    async def negotiate(self, *, ordered: bool) -> Negotiated:
        """Ask the peer what it speaks. The socket stays open for later calls; ordered: for the ordered ones."""
        if (denied := self._denied()) is not None:
            return Negotiated(True, False, None, str(denied), denied)
        socket = self.ordered_socket() if ordered else self._free_socket()
        await socket.introduced.wait()
        return Negotiated(socket.reached, socket.is_lane, socket.grpc_address, socket.end_reason, socket.denied)

    def _denied(self) -> NotAuthenticated | None:
        """A refusal in force. Sockets that logged in before it go on; the next call is told, and opens none."""
        return self._caller.record.denied(asyncio.get_running_loop().time())

    async def _alone(self, socket: SocketCalls, call: PendingCall) -> Any:
        try:
            return await call.wait()
        except asyncio.CancelledError:
            self._give_up(socket, call)
            raise
        except RpcError:
            self._give_up(socket, call)
            raise

    def _give_up(self, socket: SocketCalls, call: PendingCall) -> None:
        """Close the socket of a sent call, so that its answer cannot be taken for the next call's."""
        if call.sent and len(socket) <= 1:
            socket.end("the call was given up")

    def _free_socket(self) -> SocketCalls:
        free = next((socket for socket in self._pool if len(socket) == 0), None)
        if free is not None:
            return free
        if len(self._pool) >= MAX_POOLED_SOCKETS:
            return min(self._pool, key=len)
        self._pool.append(self._open())
        return self._pool[-1]

    def _open(self) -> SocketCalls:
        socket = SocketCalls(self._caller, self._limits, self._scratch, self._turn, self._on_end)
        self._nursery.start(socket.run(), f"lane to {self.address}")
        return socket

    def _on_end(self, socket: SocketCalls, was_ready: bool) -> None:
        if socket in self._pool:
            self._pool.remove(socket)
        if socket is self._ordered:
            self._ordered = None
            if was_ready:
                self._closing.close()


async def _failed(error: RpcError) -> Any:
    raise error
