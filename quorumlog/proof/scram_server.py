"""The server's side of one SCRAM exchange. Pure.

state            first message     final message
NEW              ASKED             REFUSED
ASKED            REFUSED           PROVEN, or REFUSED if the proof is wrong
PROVEN, REFUSED  REFUSED           REFUSED
"""

from __future__ import annotations

from enum import Enum, auto

from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.proof.keys import ITERATIONS, salt_of
from quorumlog.proof.peer import Peer, peer_of
from quorumlog.proof.same_cluster import check_same_cluster
from quorumlog.proof.scram import Proven, call_key
from quorumlog.proof.scram_text import check_nonce, read_header, text_of
from quorumlog.security.sasl.scram_keys import Keys, is_client_proof, server_signature
from quorumlog.security.sasl.scram_text import (
    BadMessage,
    Transcript,
    from_base64,
    read_attributes,
    read_name,
    to_base64,
)

WRONG_SECRET = "wrong cluster secret"


class State(Enum):
    NEW = auto()
    ASKED = auto()
    PROVEN = auto()
    REFUSED = auto()


class ScramServer:
    """cluster_id, incarnation: of this node's cluster. nonce: this side's, never used before. claimed: who the caller
    says it is.

    `first` and `final` return the message to send, and raise ApiError for a caller that is refused.
    """

    def __init__(self, keys: Keys, cluster_id: str, nonce: str, incarnation: ClusterIncarnation = FIRST) -> None:
        self._keys, self._cluster_id, self._incarnation = keys, cluster_id, incarnation
        self._own_nonce = nonce
        self._header = self._client_first = self._server_first = ""
        self._nonce = ""  # of both sides
        self.claimed: Peer | None = None
        self.state = State.NEW
        self.proven: Proven | None = None

    def first(self, message: bytes) -> bytes:
        self._expect(State.NEW)
        try:
            return self._ask(text_of(message))
        except BadMessage as error:
            raise _refused(str(error)) from None

    def final(self, message: bytes) -> bytes:
        self._expect(State.ASKED)
        try:
            return self._judge(text_of(message))
        except BadMessage as error:
            raise _refused(str(error)) from None

    def _expect(self, state: State) -> None:
        before, self.state = self.state, State.REFUSED  # until this message is found right
        if before is not state:
            raise ApiError(ErrorCode.ILLEGAL_SASL_STATE, "a message of the proof came out of its order")

    def _ask(self, text: str) -> bytes:
        self._header = read_header(text)
        self._client_first = text[len(self._header) :]
        name, client_nonce = read_attributes(self._client_first, "nr")
        self.claimed = self._caller(read_name(name))
        self._nonce = check_nonce(client_nonce) + self._own_nonce
        self._server_first = f"r={self._nonce},s={to_base64(self._salt)},i={ITERATIONS}"
        self.state = State.ASKED
        return self._server_first.encode()

    @property
    def _salt(self) -> bytes:
        return salt_of(self._cluster_id, self._incarnation)

    def _caller(self, name: str) -> Peer:
        """The cluster id comes first: a node of another cluster has another secret too, and the error should name the
        actual mistake."""
        peer = peer_of(name)
        if peer is None:
            raise _refused("the caller's name is not that of a node")
        check_same_cluster(peer, self._cluster_id, self._incarnation)
        return peer

    def _judge(self, text: str) -> bytes:
        binding, nonce, proof = read_attributes(text, "crp")
        if binding != to_base64(self._header.encode()) or nonce != self._nonce:
            raise _refused("the final message belongs to another exchange")
        unproven = text[: text.rindex(",p=")]
        transcript = Transcript(self._client_first, self._server_first, unproven).as_bytes()
        if not is_client_proof(self._keys, transcript, from_base64(proof)):
            raise _refused(WRONG_SECRET)
        assert self.claimed is not None
        self.state = State.PROVEN
        self.proven = Proven(self.claimed, self._own_nonce, call_key(self._keys, transcript))
        return f"v={to_base64(server_signature(self._keys, transcript))}".encode()


def _refused(reason: str) -> ApiError:
    return ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, reason)
