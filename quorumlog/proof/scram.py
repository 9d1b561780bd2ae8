"""What nodes make of an exchange by SCRAM beyond the proofs: who called, and a key for the calls of a session."""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from quorumlog.proof.keys import HASH
from quorumlog.proof.peer import Peer
from quorumlog.security.sasl.scram_keys import Keys

_CALL_KEY = b"quorumlog call key"


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


def call_key(keys: Keys, transcript: bytes) -> bytes:
    """Made as RFC 5802 section 6 makes a key for messages after the exchange."""
    return hmac.digest(keys.stored_key, _CALL_KEY + keys.client_key + transcript, HASH)
