"""The lane as a `transport.Transport`, for the requests that it carries."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Mapping

from quorumlog.nursery import OnCrash
from quorumlog.rpc.caller_security import PLAIN_TEXT, CallerSecurity
from quorumlog.rpc.calling.probe import try_connect
from quorumlog.rpc.node_security import NodeSecurity
from quorumlog.rpc.proof_log import ProofLog
from quorumlog.rpc.serving.dispatch import Dispatch
from quorumlog.rpc.serving.request_parts import RequestBook
from quorumlog.rpc.serving.request_time import RequestTime
from quorumlog.rpc.transport import Address, Handler, Identity, Listener, NoProof, ProbeResult
from quorumlog.security.quota.arrivals import Arrivals
from quorumlog.settings.security import StrangerLimits
from quorumlog.turn import Turn
from quorumlog.wire.calling.client import WireConnection
from quorumlog.wire.format.framing import SCRATCH_BYTES
from quorumlog.wire.protocol.features import FeatureNotice
from quorumlog.wire.protocol.limits import ConnectionLimits, NodeBytes, WireLimits
from quorumlog.wire.serving.counts import ConnectionCounts
from quorumlog.wire.serving.gate import RefusalLines
from quorumlog.wire.serving.outgoing import SendTurns
from quorumlog.wire.serving.protection import Protection
from quorumlog.wire.serving.server import Serving, WireServer, serve
from quorumlog.wire.serving.strangers import Strangers

_log = logging.getLogger(__name__)


def log_crash(name: str, error: BaseException) -> None:
    _log.error("%s failed unexpectedly", name, exc_info=error)


class WireTransport:
    """Used on one loop. identity: this node's; a client has none.

    serves: types of requests that have a handler; None: all. grpc_address: where this node serves gRPC with the
    protection of this listener; announced to quorumlog's own callers. random_bytes: a source of nonces that cannot be
    guessed.
    """

    def __init__(
        self,
        identity: Identity | None = None,
        *,
        on_crash: OnCrash = log_crash,
        limits: WireLimits | None = None,
        serves: Collection[type] | None = None,
        grpc_address: Callable[[Listener], Address | None] = lambda _listener: None,
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
        """turn: of the node; None: one of its own. features: what ApiVersions announces; None: nothing.
        connection_limits: of all listeners; None: that of `limits`. protections: by the names of listeners; the others
        are plain. security: of a client. nodes: where nodes of the cluster speak TLS to each other; None: in clear.
        time: what requests take of the loop; None: nobody has a quota of that. book: how long requests take; None:
        nobody asks. arrivals: how fast clients may come; None: as fast as they like. counts: what is counted of its
        connections."""
        self._nodes, self._time, self._book, self._arrivals = nodes, time, book, arrivals
        self._protections = protections or {}
        most = stranger_limits or StrangerLimits()
        self.counts = counts or ConnectionCounts()
        self.strangers = {
            internal: Strangers(most, self.counts.strangers) for internal in (False, True)
        }  # by whether the listener is internal
        self._stranger_bytes = NodeBytes(most.max_bytes, 0)
        self._refusals = RefusalLines()
        self._connection_limits = connection_limits
        self._features = features
        self._turn = turn or Turn()
        self._random_bytes, self._proof_log = random_bytes, ProofLog()
        self.identity, self._security = identity, security
        self._on_crash, self._serves, self._grpc_address = on_crash, serves, grpc_address
        self._limits = limits or WireLimits()
        self._client_bytes = NodeBytes(self._limits.max_node_bytes, self._limits.min_grant_bytes)
        self._internal_bytes = NodeBytes(self._limits.max_internal_bytes, self._limits.min_grant_bytes)
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._send_turns = SendTurns(self._limits.max_sent_bytes_per_turn)

    @property
    def held_bytes(self) -> dict[bool, int]:
        """By whether the listener is internal."""
        return {False: self._client_bytes.used_bytes, True: self._internal_bytes.used_bytes}

    def connect(self, address: Address, *, internal: bool, client_id: str = "") -> WireConnection:
        assert not internal or self.identity is not None, "an internal connection needs an identity"
        return WireConnection(
            address,
            identity=self.identity if internal else None,
            client_id=client_id,
            limits=self._limits,
            scratch=self._scratch,
            on_crash=self._on_crash,
            random_bytes=self._random_bytes,
            proof_log=self._proof_log,
            turn=self._turn,
            security=PLAIN_TEXT if internal else self._security,
            nodes=self._nodes if internal else None,
        )

    async def listen(self, listener: Listener, handler: Handler) -> WireServer:
        dispatch = Dispatch(
            listener=listener,
            identity=self.identity,
            handler=handler,
            on_crash=self._on_crash,
            time=self._time,
            book=self._book,
        )
        serving = Serving(
            dispatch,
            limits=self._limits,
            node_bytes=self._internal_bytes if listener.internal else self._client_bytes,
            scratch=self._scratch,
            send_turns=self._send_turns,
            serves=self._serves,
            grpc_address=lambda: self._grpc_address(listener),
            on_crash=self._on_crash,
            random_bytes=self._random_bytes,
            proof_log=self._proof_log,
            turn=self._turn,
            features=self._features,
            connection_limits=self._connection_limits,
            protection=self._protections.get(listener.name),
            strangers=self.strangers[listener.internal],
            stranger_bytes=self._stranger_bytes,
            refusals=self._refusals,
            arrivals=self._arrivals,
            counts=self.counts,
        )
        return await serve(serving)

    async def probe(self, address: Address, timeout_ms: int) -> ProbeResult:
        """The lane can prove that no process listens, but it cannot ask a listening process which node it is."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                refused = await try_connect(address)
        except TimeoutError:
            return NoProof(f"no connection within {timeout_ms} ms")
        return refused if refused is not None else NoProof("a process listens; the lane cannot tell which node it is")
