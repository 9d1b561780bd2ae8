"""What one served connection has proven: the exchange that goes on, and the node at its end. Pure."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.proof.keys import keys_of
from quorumlog.proof.peer import Peer
from quorumlog.proof.scram_server import ScramServer
from quorumlog.proof.scram_text import NONCE_BYTES, new_nonce
from quorumlog.rpc.transport import Identity


class ConnectionProof:
    """own: this node's identity; None: this is a client listener, where there is nothing to prove.

    A connection has one exchange: a caller that was refused connects again.
    """

    __slots__ = ("_own", "_random_bytes", "_scram")

    def __init__(self, own: Identity | None, random_bytes: Callable[[int], bytes]) -> None:
        self._own, self._random_bytes = own, random_bytes
        self._scram: ScramServer | None = None

    @property
    def is_needed(self) -> bool:
        """An internal listener, and nothing is proven yet."""
        return self._own is not None and self.peer is None

    @property
    def peer(self) -> Peer | None:
        """The node that has proven itself."""
        proven = self._scram.proven if self._scram is not None else None
        return proven.peer if proven is not None else None

    @property
    def claimed(self) -> Peer | None:
        """The node that the caller says it is."""
        return self._scram.claimed if self._scram is not None else None

    def take(self, message: bytes) -> bytes:
        """The answer to the caller's next message. Raises ApiError; the connection ends then."""
        if self._own is None:
            raise ApiError(ErrorCode.ILLEGAL_SASL_STATE, "this listener asks for no proof")
        if self._scram is not None:  # its second message, or one too many, which it refuses
            return self._scram.final(message)
        own = self._own
        nonce = new_nonce(self._random_bytes(NONCE_BYTES))
        self._scram = ScramServer(keys_of(own.secret, own.cluster_id), own.cluster_id, nonce)
        return self._scram.first(message)
