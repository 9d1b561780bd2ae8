"""What one served connection has proven: the exchange that goes on, and the node at its end. Pure."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.proof.node_certificate import IsDenied, check_claim, check_node, none_denied
from quorumlog.proof.peer import Peer
from quorumlog.proof.scram_server import ScramServer
from quorumlog.proof.scram_text import NONCE_BYTES, new_nonce
from quorumlog.rpc import clear_secret
from quorumlog.rpc.transport import Identity
from quorumlog.security.node_auth import NodeAuth
from quorumlog.security.tls.der import BadDer
from quorumlog.security.tls.peer import fingerprint, node_of, read_not_after_ms
from quorumlog.wire.protocol import sasl


class ConnectionProof:
    """own: this node's identity; None: this is a client listener, where there is nothing to prove.

    A connection has one exchange: a caller that was refused connects again.
    """

    __slots__ = ("_auth", "_certificate", "_claimed", "_is_denied", "_known_by", "_own", "_peer", "_random_bytes",
                 "_scram")  # fmt: skip

    def __init__(
        self,
        own: Identity | None,
        random_bytes: Callable[[int], bytes],
        auth: NodeAuth = NodeAuth.SECRET,
        is_denied: IsDenied = none_denied,
    ) -> None:
        self._own, self._random_bytes = own, random_bytes
        self._auth, self._is_denied = auth, is_denied
        self._certificate: bytes | None = None
        self._scram: ScramServer | None = None
        self._peer: Peer | None = None  # a node of older software, which has shown the secret itself
        self._claimed: Peer | None = None
        self._known_by: tuple[str, int] | None = None  # the certificate's fingerprint, and when it ends (Unix, ms)

    @property
    def is_needed(self) -> bool:
        """An internal listener, and nothing is proven yet."""
        return self._own is not None and self.peer is None

    @property
    def peer(self) -> Peer | None:
        """The node that has proven itself."""
        proven = self._scram.proven if self._scram is not None else None
        return proven.peer if proven is not None else self._peer

    @property
    def claimed(self) -> Peer | None:
        """The node that the caller says it is."""
        return self._scram.claimed if self._scram is not None else self._claimed

    def why_over(self, unix_ms: int) -> str:
        """Why the certificate of the node counts no more; "" if it does, or if there is none."""
        if self._known_by is None:
            return ""
        mark, ends_ms = self._known_by
        if self._is_denied(mark):
            return f"its certificate {mark} is denied"
        return "its certificate has ended" if unix_ms >= ends_ms else ""

    def shown(self, certificate: bytes | None) -> None:
        """The certificate of the connection, DER, which TLS has verified."""
        self._certificate = certificate

    def take(self, message: bytes) -> bytes:
        """The answer to the caller's next message. Raises ApiError; the connection ends then."""
        own = self._own
        if own is None:
            raise ApiError(ErrorCode.ILLEGAL_SASL_STATE, "this listener asks for no proof")
        if self._scram is not None:  # its second message, or one too many, which it refuses
            answer = self._scram.final(message)
            self._check_beside_proof(own)
            return answer
        is_external, named = sasl.read_external(message)
        if is_external:
            return self._take_external(own, named)
        if self._auth is NodeAuth.MTLS:
            reason = "this node takes certificates of nodes, and no proof of the secret; set quorumlog.inter.node.auth"
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, reason)
        if clear_secret.is_plain(message):
            return self._take_plain(own, message)
        nonce = new_nonce(self._random_bytes(NONCE_BYTES))
        self._scram = ScramServer(own.keys, own.cluster_id, nonce, own.cluster_incarnation)
        return self._scram.first(message)

    def _take_external(self, own: Identity, named: Peer | None) -> bytes:
        if not self._auth.has_certificates or self._certificate is None or self._claimed is not None:
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "the caller shows no certificate that counts here")
        self._claimed = named
        self._peer = self._certified(own, self._certificate, named)
        return b""

    def _check_beside_proof(self, own: Identity) -> None:
        """Who has proven that it knows the secret, and shows a certificate: both name one node."""
        proven = self._scram.proven if self._scram is not None else None
        if self._auth.has_certificates and self._certificate is not None and proven is not None:
            try:
                self._certified(own, self._certificate, proven.peer)
            except ApiError:
                self._scram, self._claimed = None, proven.peer
                raise

    def _certified(self, own: Identity, der: bytes, claim: Peer | None) -> Peer:
        """Raises ApiError."""
        mark = fingerprint(der)
        node_id = check_node(node_of(der), mark, own.cluster_id, self._is_denied)
        peer = check_claim(claim, node_id, own.cluster_id, own.cluster_incarnation)
        try:
            self._known_by = mark, read_not_after_ms(der)
        except BadDer:
            reason = "its certificate does not say when it ends"
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, reason) from None
        return peer

    def _take_plain(self, own: Identity, message: bytes) -> bytes:
        claim = clear_secret.read_plain(message)
        if claim is None or self._claimed is not None:
            raise ApiError(ErrorCode.SASL_AUTHENTICATION_FAILED, "this names no node, or the second one")
        self._claimed = claim.peer
        self._peer = clear_secret.admit(own, claim)
        return b""
