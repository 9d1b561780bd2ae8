"""What one served connection has proven: the exchange that goes on, and the node at its end. Pure."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.proof.peer import Peer
from quorumlog.proof.scram_server import ScramServer
from quorumlog.proof.scram_text import NONCE_BYTES, new_nonce
from quorumlog.rpc import clear_secret
from quorumlog.rpc.transport import Identity


class ConnectionProof:
    """own: this node's identity; None: this is a client listener, where there is nothing to prove.

    A connection has one exchange: a caller that was refused connects again.
    """

    __slots__ = ("_claimed", "_own", "_peer", "_random_bytes", "_scram")

    def __init__(self, own: Identity | None, random_bytes: Callable[[int], bytes]) -> None:
        self._own, self._random_bytes = own, random_bytes
        self._scram: ScramServer | None = None
        self._peer: Peer | None = None  # a node of older software, which has shown the secret itself
        self._claimed: Peer | None = None

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

    def take(self, message: bytes) -> bytes:
        """The answer to the caller's next message. Raises ApiError; the connection ends then."""
        if self._own is None:
            raise ApiError(ErrorCode.ILLEGAL_SASL_STATE, "this listener asks for no proof")
        if self._scram is not None:  # its second message, or one too many, which it refuses
            return self._scram.final(message)
        own = self._own
        if clear_secret.is_plain(message):
            return self._take_plain(own, message)
        nonce = new_nonce(self._random_bytes(NONCE_BYTES))
        self._scram = ScramServer(own.keys, own.cluster_id, nonce, own.cluster_incarnation)
        return self._scram.first(message)

    def _take_plain(self, own: Identity, message: bytes) -> bytes:
        claim = clear_secret.read_plain(message)
        if claim is None or self._claimed is not None:
            raise ApiError(ErrorCode.SASL_AUTHENTICATION_FAILED, "this names no node, or the second one")
        self._claimed = claim.peer
        self._peer = clear_secret.admit(own, claim)
        return b""
