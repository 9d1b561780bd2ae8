"""The client's side of one SCRAM exchange, which also makes the server prove itself. Pure."""

from __future__ import annotations

import hmac

from quorumlog.proof.keys import ITERATIONS, salt_of
from quorumlog.proof.peer import Peer, name_of
from quorumlog.proof.scram import Proven, call_key
from quorumlog.proof.scram_text import NO_BINDING, NONCE_CHARACTERS, check_nonce, text_of
from quorumlog.security.sasl.scram_keys import Keys, client_proof, server_signature
from quorumlog.security.sasl.scram_text import (
    BadMessage,
    Transcript,
    escape_name,
    from_base64,
    read_attributes,
    to_base64,
)


class NotProven(Exception):
    """The server has not proven that it knows the cluster's secret."""


class ScramClient:
    """own: this node. nonce: this side's, never used before. Call `first`, `final` and `verify` once each, in order."""

    def __init__(self, keys: Keys, own: Peer, nonce: str) -> None:
        self._keys, self._own, self._nonce = keys, own, nonce
        self._first = f"n={escape_name(name_of(own))},r={nonce}"
        self._server_nonce = ""
        self._transcript = b""

    def first(self) -> bytes:
        return f"{NO_BINDING}{self._first}".encode()

    def final(self, server_first: bytes) -> bytes:
        """Raises NotProven for an answer that no node of this cluster gives.

        A salt or a count of iterations that the server chooses freely would help it to guess the secret.
        """
        try:
            text = text_of(server_first)
            nonce, salt, iterations = read_attributes(text, "rsi")
            salt_bytes = from_base64(salt)
            self._server_nonce = check_nonce(nonce.removeprefix(self._nonce))
        except BadMessage as error:
            raise NotProven(f"its answer is not one of SCRAM: {error}") from None
        if not nonce.startswith(self._nonce) or len(self._server_nonce) != NONCE_CHARACTERS:
            raise NotProven("its nonce does not continue this node's")
        if salt_bytes != salt_of(self._own.cluster_id, self._own.cluster_incarnation) or iterations != str(ITERATIONS):
            raise NotProven("it names another salt or number of iterations than this cluster has")
        unproven = f"c={to_base64(NO_BINDING.encode())},r={nonce}"
        self._transcript = Transcript(self._first, text, unproven).as_bytes()
        return f"{unproven},p={to_base64(client_proof(self._keys, self._transcript))}".encode()

    def verify(self, server_final: bytes) -> Proven:
        """Raises NotProven."""
        assert self._transcript, "`final` comes first"
        try:
            (signature,) = read_attributes(text_of(server_final), "v")
            given = from_base64(signature)
        except BadMessage as error:
            raise NotProven(f"its answer is not one of SCRAM: {error}") from None
        if not hmac.compare_digest(given, server_signature(self._keys, self._transcript)):
            raise NotProven("its proof is wrong: it does not know this cluster's secret")
        return Proven(self._own, self._server_nonce, call_key(self._keys, self._transcript))
