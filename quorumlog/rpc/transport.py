"""The interface between the layers that call (handlers, clients, fetchers, the quorum) and the transports.

All layers above it use the dataclasses of `quorumlog.messages` and do not depend on the transport: gRPC, the data lane
(quorumlog/wire), or the simulated network. Guarantees:
1. `Connection.call` queues the request before its first suspension, so successive calls are sent in their order.
   Requests of an *ordered* type (`ORDERED`) reach the peer in that order and their handlers start in that order.
   Requests of other types may overtake each other.
2. An answer belongs to its request. A handler that returns None sends no answer (acks=0); `call` of such a request
   returns None as soon as it is sent.
3. Every call has a deadline. `NotDelivered` means that the peer has certainly not seen the request. Every other
   failure is `OutcomeUnknown`: the request may have been carried out.
4. Record data crosses as one buffer.
5. `Connection.on_closed` and `Context.on_closed` fire once, after an ordered stream broke or the peer was closed. A
   silent peer is not detected here; heartbeats and deadlines detect it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog.ids import NodeId, Uuid
from quorumlog.messages.controller import BrokerHeartbeatRequest
from quorumlog.messages.fetch import FetchChunkRequest
from quorumlog.messages.produce import ProduceRequest
from quorumlog.messages.quorum import QuorumFetchRequest
from quorumlog.proof.keys import keys_of
from quorumlog.proof.peer import Peer
from quorumlog.security.principal import Principal
from quorumlog.security.protocol import SecurityProtocol
from quorumlog.security.sasl.scram_keys import Keys

ORDERED: frozenset[type] = frozenset({ProduceRequest, BrokerHeartbeatRequest, QuorumFetchRequest, FetchChunkRequest})

MAX_MESSAGE_BYTES_DEFAULT = 100 * 1024 * 1024  # socket.request.max.bytes
CONNECT_TIMEOUT_MS_DEFAULT = 2_000


class RpcError(Exception):
    """A call failed in transport. An error of the peer arrives as a response instead."""


class NotDelivered(RpcError):
    """The peer has certainly not seen the request."""


class NotServed(NotDelivered):
    """The peer speaks no protocol that carries this request. To ask it again is of no use."""


class NotAuthenticated(NotDelivered):
    """The peer refuses this client's certificate or credentials, or this client the peer's certificate.

    To ask it again is of no use before somebody changes something.
    """


class OutcomeUnknown(RpcError):
    """The request may or may not have been carried out: a timeout, or a broken connection."""


class DoesNotFit(ValueError):
    """A value of the request does not fit into its field. Nothing was sent: it is the caller's mistake."""


@dataclass(frozen=True, slots=True, order=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """This node's identity, and the secret with which it proves it to internal listeners."""

    cluster_id: str
    node_id: NodeId
    incarnation_id: Uuid
    secret: bytes  # created by format, the same on all nodes of a cluster; never logged and never sent
    cluster_incarnation: ClusterIncarnation = FIRST
    secret_in_clear: bool = False  # except to and from nodes of older software, which prove nothing (clear_secret.py)

    @property
    def peer(self) -> Peer:
        """This node as others know it."""
        return Peer(
            cluster_id=self.cluster_id,
            node_id=self.node_id,
            incarnation_id=self.incarnation_id,
            cluster_incarnation=self.cluster_incarnation,
        )

    @property
    def keys(self) -> Keys:
        return keys_of(self.secret, self.cluster_id, self.cluster_incarnation)

    def __repr__(self) -> str:
        return f"Identity(cluster_id={self.cluster_id!r}, node_id={self.node_id})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """An address at which a node serves. Port 0 asks for a free port."""

    name: str
    address: Address
    internal: bool  # serves only nodes that prove that they know the cluster's secret
    lane: bool = False  # True: Kafka's own protocol; False: gRPC
    security: SecurityProtocol = SecurityProtocol.PLAINTEXT


class Context(Protocol):
    """What a handler knows of a request's origin. One per connection."""

    listener: Listener
    client_id: str
    client_host: str  # its address without a port; empty if unknown
    peer: Peer | None  # the node that calls an internal listener; it has proven itself
    principal: Principal  # who calls: a node that has proven itself, who has logged in, or ANONYMOUS

    @property
    def request_id(self) -> str:
        """CONNECTION:CORRELATION of the request that begins; empty for what another node has passed on."""

    @property
    def private(self) -> bool:
        """Nobody between the two can read what they send: it is encrypted, or does not leave the machine."""

    def on_closed(self, callback: Callable[[], None]) -> None:
        """Call back once when the connection is gone; at once if it is gone already."""


OnEnded = Callable[[Any, Exception | None], None]  # the response, or the error: an RpcError, or a mistake of ours
Cancel = Callable[[], object]  # gives a call up; nothing is told after that
Handler = Callable[[Context, Any], Awaitable[Any]]  # (context, request) -> response | None; raises ApiError


class Connection(Protocol):
    """A connection to one address, opened by the first call."""

    address: Address

    def call(self, request: Any, timeout_ms: int) -> Awaitable[Any]:
        """Send `request` and return its response. Raises NotDelivered or OutcomeUnknown."""

    def begin(self, request: Any, timeout_ms: int, ended: OnEnded) -> Cancel:
        """`call` for a caller without a task. ended: called once, unless the call was cancelled before; perhaps before
        this returns. It must not block or raise."""

    def on_closed(self, callback: Callable[[], None]) -> None:
        """Call back once when an ordered stream of this connection has broken; at once if one has already."""

    async def close(self) -> None:
        """Idempotent. Calls still waiting fail with OutcomeUnknown."""


@runtime_checkable
class CanRest(Protocol):
    """A connection that one caller may leave to another."""

    def rest(self) -> bool:
        """The caller is done: ordered streams are given up, and `on_closed` tells nothing of it. False: close it
        instead, since it is not connected any more, or a call still waits for an answer."""


class Server(Protocol):
    listener: Listener  # with the actual port

    async def close(self) -> None:
        """Stop serving. Requests in progress are cut off."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Every address of the host name refused the connection: nothing listens there."""


@dataclass(frozen=True, slots=True)
class Answered:
    """directory_id: of the node's metadata log. is_controller: it may be a voter, with these levels of kraft.version,
    both inclusive. Two answers are equal if the same process has given them."""

    node_id: NodeId
    incarnation_id: Uuid
    directory_id: Uuid = field(default=b"", compare=False)
    is_controller: bool = field(default=False, compare=False)
    min_kraft_version: int = field(default=0, compare=False)
    max_kraft_version: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class NoProof:
    """A timeout, no route, or an invalid answer: this proves nothing."""

    reason: str


ProbeResult = Refused | Answered | NoProof


class Transport(Protocol):
    def connect(self, address: Address, *, internal: bool, client_id: str = "") -> Connection:
        """internal: to an internal listener: both sides prove that they know the secret of the identity that the
        transport was given. No call is sent to a peer that does not. A peer that refuses this node is asked again by
        the next call, and the call is answered with the refusal."""

    async def listen(self, listener: Listener, handler: Handler) -> Server:
        """Raises AddressInUse, which names the port and the remedy."""

    async def probe(self, address: Address, timeout_ms: int) -> ProbeResult:
        """Ask an internal listener for its node's incarnation, over a fresh connection."""


class AddressInUse(Exception):
    def __init__(self, listener: Listener) -> None:
        super().__init__(
            f"cannot listen at {listener.address} for {listener.name}: the port is in use; "
            "stop the program that uses it, or set another port in `listeners`"
        )
        self.listener = listener
