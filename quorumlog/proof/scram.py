"""What both sides of a SCRAM exchange compute (RFC 5802 section 3)."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from quorumlog.proof.keys import HASH, Keys
from quorumlog.proof.peer import Peer

_CALL_KEY = b"quorumlog call key"


@dataclass(frozen=True, slots=True)
class Transcript:
    """All that was said before the proofs, so that the proofs hold for this exchange only.

    client_first: without its gs2 header. client_final: without the proof.
    """

    client_first: str
    server_first: str
    client_final: str

    def as_bytes(self) -> bytes:
        return f"{self.client_first},{self.server_first},{self.client_final}".encode()


@dataclass(frozen=True, slots=True)
class Proven:
    """The end of an exchange in which both sides have proven themselves.

    peer: the node that called. nonce: the server's part, which names the session. call_key: for the MACs of the
    session's calls; known to the two nodes only.
    """

    peer: Peer
    nonce: str
    call_key: bytes

    def __repr__(self) -> str:
        return f"Proven({self.peer})"


def client_proof(keys: Keys, transcript: bytes) -> bytes:
    return _xor(keys.client_key, hmac.digest(keys.stored_key, transcript, HASH))


def is_client_proof(keys: Keys, transcript: bytes, proof: bytes) -> bool:
    """Takes the same time for every wrong proof of a length."""
    if len(proof) != len(keys.client_key):
        return False
    client_key = _xor(proof, hmac.digest(keys.stored_key, transcript, HASH))
    return hmac.compare_digest(hashlib.sha256(client_key).digest(), keys.stored_key)


def server_signature(keys: Keys, transcript: bytes) -> bytes:
    return hmac.digest(keys.server_key, transcript, HASH)


def call_key(keys: Keys, transcript: bytes) -> bytes:
    """Made as RFC 5802 section 6 makes a key for messages after the exchange."""
    return hmac.digest(keys.stored_key, _CALL_KEY + keys.client_key + transcript, HASH)


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
