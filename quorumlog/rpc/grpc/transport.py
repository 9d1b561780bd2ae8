"""gRPC as a `transport.Transport`."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from functools import partial

from quorumlog.nursery import Nursery, OnCrash
from quorumlog.proof.node_certificate import none_denied
from quorumlog.rpc import clear_secret
from quorumlog.rpc.caller import Metadata, node_metadata
from quorumlog.rpc.calling.probe import ask_who, try_connect
from quorumlog.rpc.calling.prover import Ask, Prover
from quorumlog.rpc.grpc.channel_security import ChannelSecurity
from quorumlog.rpc.grpc.client import GrpcConnection
from quorumlog.rpc.grpc.healthy import HealthSource, always_serving
from quorumlog.rpc.grpc.options import GrpcOptions
from quorumlog.rpc.grpc.server import GrpcServer, MayDescribe, anybody, serve
from quorumlog.rpc.grpc.server_security import ServerSecurity
from quorumlog.rpc.node_security import NodeSecurity
from quorumlog.rpc.proof_log import ProofLog
from quorumlog.rpc.serving.dispatch import Dispatch
from quorumlog.rpc.serving.gate import Gate
from quorumlog.rpc.serving.request_parts import RequestBook
from quorumlog.rpc.serving.request_time import RequestTime
from quorumlog.rpc.transport import Address, Handler, Identity, Listener, NoProof, ProbeResult
from quorumlog.security.node_auth import NodeAuth

_log = logging.getLogger(__name__)


def log_crash(name: str, error: BaseException) -> None:
    _log.error("%s failed unexpectedly", name, exc_info=error)


DENIED_MS = 1_000  # a node that was refused is asked again soon: its peer may only be of another roll


def _channel_to_node(nodes: NodeSecurity, address: Address, own: Identity) -> ChannelSecurity:
    return ChannelSecurity(
        tls=nodes.tls,
        material=nodes.material,
        denied_ms=DENIED_MS,
        check=partial(nodes.check, address, own),
        plain_too=nodes.plain_too,
    )


class GrpcTransport:
    """identity: this node's, for internal connections and listeners; a client has none.
    on_crash: called with an unexpected exception of a handler or of a connection's task.
    health: the source of grpc.health.v1, at each listener.
    random_bytes: a source of nonces that cannot be guessed.
    security: of all channels; None: the bytes go in clear. server_security: of each listener whose protocol has TLS, by
    its name. nodes: where nodes of the cluster speak TLS to each other; None: they prove that they know the secret, in
    clear. time: what requests take of the loop; None: nobody has a quota of that. book: how long requests take; None:
    nobody asks.
    """

    def __init__(
        self,
        identity: Identity | None = None,
        *,
        on_crash: OnCrash = log_crash,
        options: GrpcOptions | None = None,
        health: HealthSource = always_serving,
        random_bytes: Callable[[int], bytes] = os.urandom,
        security: ChannelSecurity | None = None,
        server_security: Mapping[str, ServerSecurity] | None = None,
        nodes: NodeSecurity | None = None,
        time: RequestTime | None = None,
        book: RequestBook | None = None,
        may_describe: MayDescribe = anybody,
    ) -> None:
        self._nodes, self._time, self._book, self._may_describe = nodes, time, book, may_describe
        self.identity = identity
        self._security, self._server_security = security, server_security or {}
        self._random_bytes, self._proof_log = random_bytes, ProofLog()
        self._on_crash, self._options, self._health = on_crash, options or GrpcOptions(), health

    def connect(self, address: Address, *, internal: bool, client_id: str = "") -> GrpcConnection:
        assert not internal or self.identity is not None, "an internal connection needs an identity"
        identity = self.identity

        def make_prover(ask: Ask, nursery: Nursery) -> Prover:
            assert identity is not None
            return Prover(identity, address, ask, nursery=nursery, random_bytes=self._random_bytes, log=self._proof_log)

        proves = internal and (self._nodes is None or self._nodes.auth is not NodeAuth.MTLS)
        return GrpcConnection(
            address,
            client_id,
            self._options,
            self._on_crash,
            make_prover if proves else None,
            self._shown_unproven(identity) if internal and identity is not None else None,
            self._security_to(address, internal),
        )

    def _shown_unproven(self, own: Identity) -> Metadata | None:
        """What a call shows where the server takes no proof."""
        if self._nodes is not None and self._nodes.auth.has_certificates:
            return node_metadata(own.peer)
        return clear_secret.to_metadata(own) if own.secret_in_clear else None

    def _security_to(self, address: Address, internal: bool) -> ChannelSecurity | None:
        if not internal:
            return self._security
        if self._nodes is None or self.identity is None:
            return None
        return _channel_to_node(self._nodes, address, self.identity)

    async def listen(self, listener: Listener, handler: Handler) -> GrpcServer:
        dispatch = Dispatch(
            listener=listener,
            identity=self.identity,
            handler=handler,
            on_crash=self._on_crash,
            time=self._time,
            book=self._book,
        )
        nodes = self._nodes
        auth, is_denied = (nodes.auth, nodes.is_denied) if nodes is not None else (NodeAuth.SECRET, none_denied)
        gate = Gate(dispatch, self._random_bytes, self._proof_log, auth, is_denied)
        security = self._server_security.get(listener.name) if listener.security.tls else None
        return await serve(dispatch, gate, self._options, self._on_crash, self._health, security, self._may_describe)

    async def probe(self, address: Address, timeout_ms: int) -> ProbeResult:
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        try:
            async with asyncio.timeout_at(deadline):
                refused = await try_connect(address)
        except TimeoutError:
            return NoProof(f"no connection within {timeout_ms} ms")
        if refused is not None:
            return refused
        remaining_ms = int((deadline - asyncio.get_running_loop().time()) * 1000)
        if remaining_ms <= 0:
            return NoProof(f"no answer within {timeout_ms} ms")
        return await ask_who(self.connect(address, internal=True), remaining_ms)
