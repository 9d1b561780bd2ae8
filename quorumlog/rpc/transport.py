"""The seam between whoever speaks (handlers, clients, fetchers, the quorum) and the wire they speak by.

Everyone above this seam sees the dataclasses of `quorumlog.messages` and never knows which wire is below: gRPC,
the data lane (quorumlog/wire), or the simulated network. What the seam promises:

1. `Connection.call` puts the request into the connection before its first suspension, so calls made one after the
   other go out in that order. Requests of an *ordered* type (`ORDERED`) reach the handler in that order, and their
   handlers are started in that order; other types may overtake each other.
2. An answer belongs to its request. A handler that returns None sends no answer (acks=0), and `call` of such a
   request returns None as soon as it is on its way.
3. Every call has a deadline. `NotDelivered` means that the peer has certainly not seen the request; every other
   failure is `OutcomeUnknown`: it may have been carried out (RELIABILITY 0.6).
4. Record data crosses as one buffer.
5. A peer that goes away is noticed: `Connection.on_closed` and `Context.on_closed` fire once, after an ordered stream
   broke or the peer was closed. A silent peer is not noticed here; that is what heartbeats and deadlines are for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from quorumlog.ids import NodeId, Uuid
from quorumlog.messages.controller import BrokerHeartbeatRequest
from quorumlog.messages.produce import ProduceRequest

ORDERED: frozenset[type] = frozenset({ProduceRequest, BrokerHeartbeatRequest})

MAX_MESSAGE_BYTES_DEFAULT = 100 * 1024 * 1024  # socket.request.max.bytes
CONNECT_TIMEOUT_MS_DEFAULT = 2_000


class RpcError(Exception):
    """A call failed on its way; the peer's own word would have come as an answer."""


class NotDelivered(RpcError):
    """The peer has certainly not seen the request."""


class OutcomeUnknown(RpcError):
    """The request may or may not have been carried out: a time-out, a broken connection."""


@dataclass(frozen=True, slots=True, order=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a node is, shown with every call to an internal listener (DESIGN 4)."""

    cluster_id: str
    node_id: NodeId
    incarnation_id: Uuid
    secret: bytes  # made at format, equal on all nodes of a cluster; never logged

    def __repr__(self) -> str:
        return f"Identity(cluster_id={self.cluster_id!r}, node_id={self.node_id})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A place to serve at. Port 0 asks for a free one."""

    name: str
    address: Address
    internal: bool  # only nodes that show the cluster's identity are served
    lane: bool = False  # Kafka's own protocol is spoken here, gRPC elsewhere


class Context(Protocol):
    """What a handler may know of where a request came from. One per connection."""

    listener: Listener
    client_id: str
    peer: Identity | None  # on an internal listener; already verified

    def on_closed(self, callback: Callable[[], None]) -> None:
        """Call back once when the connection is gone; at once if it is gone already."""


Handler = Callable[[Context, Any], Awaitable[Any]]  # (context, request) -> response | None; raises ApiError


class Connection(Protocol):
    """A way to one address, opened by the first call."""

    address: Address

    def call(self, request: Any, timeout_ms: int) -> Awaitable[Any]:
        """Send `request`, give its response. Raises NotDelivered or OutcomeUnknown."""

    def on_closed(self, callback: Callable[[], None]) -> None:
        """Call back once when an ordered stream of this connection broke; at once if one has."""

    async def close(self) -> None:
        """Idempotent. Calls still waiting fail with OutcomeUnknown."""


class Server(Protocol):
    listener: Listener  # with the port that is really used

    async def close(self) -> None:
        """Stop serving; requests being handled are cut off."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Every address behind the name refused the connection: nothing listens there."""


@dataclass(frozen=True, slots=True)
class Answered:
    node_id: NodeId
    incarnation_id: Uuid


@dataclass(frozen=True, slots=True)
class NoProof:
    """A time-out, no route, an answer that is not one: it proves nothing."""

    reason: str


ProbeResult = Refused | Answered | NoProof


class Transport(Protocol):
    def connect(self, address: Address, *, internal: bool, client_id: str = "") -> Connection:
        """internal: show this node's identity (the transport was given it); needed for an internal listener."""

    async def listen(self, listener: Listener, handler: Handler) -> Server:
        """Raises AddressInUse with the port and what to do."""

    async def probe(self, address: Address, timeout_ms: int) -> ProbeResult:
        """Ask an internal listener who is there, by a fresh connection (DESIGN 5)."""


class AddressInUse(Exception):
    def __init__(self, listener: Listener) -> None:
        super().__init__(
            f"cannot listen at {listener.address} for {listener.name}: the port is in use; "
            "stop what uses it, or set another port in `listeners`"
        )
        self.listener = listener
