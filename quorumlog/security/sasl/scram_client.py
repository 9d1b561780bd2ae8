"""The client's side of a user's login by SCRAM, which also makes the server prove itself. Pure."""

from __future__ import annotations

import hmac
import re

from quorumlog.security.sasl.mechanism import LoginError, check_utf8
from quorumlog.security.sasl.scram_keys import (
    HASHES,
    MIN_ITERATIONS,
    Keys,
    client_proof,
    salted_password,
    server_signature,
)
from quorumlog.security.sasl.scram_text import (
    BadMessage,
    Transcript,
    escape_name,
    from_base64,
    read_attributes,
    text_within,
    to_base64,
)
from quorumlog.security.secret import Secret

MAX_MESSAGE_BYTES = 8 * 1024
MAX_ASKED_ITERATIONS = (
    100_000  # a server may keep this client busy for so long (CVE-2026-10143); Kafka's have <= 16,384
)
_GS2 = "n,,"  # no channel binding, no other identity
_ITERATIONS = re.compile(r"[1-9][0-9]{0,9}")


class ScramClient:
    """mechanism: SCRAM-SHA-256 or SCRAM-SHA-512. name: Kafka takes ASCII only. nonce: of `new_nonce`, used once.

    Raises LoginError for a name or a password that UTF-8 cannot say.
    """

    def __init__(self, mechanism: str, name: str, password: Secret, nonce: str) -> None:
        check_utf8(name, password)
        self.name = mechanism
        self._hash, self._password, self._nonce = HASHES[mechanism], password, nonce
        self._bare = f"n={escape_name(name)},r={nonce}"
        self._keys: Keys | None = None
        self._transcript = b""
        self._taken = 0  # messages of the server, also those that were wrong

    def first(self) -> bytes:
        return f"{_GS2}{self._bare}".encode()

    def step(self, message: bytes) -> bytes | None:
        """Takes the server's two messages in turn. Raises LoginError; the exchange is over then."""
        self._taken += 1
        try:
            text = text_within(message, MAX_MESSAGE_BYTES)
            if self._taken == 1:
                return self._prove(text)
            if self._taken > 2 or self._keys is None:
                raise LoginError(f"the server said more than {self.name} allows")
            self._check(text, self._keys)
        except BadMessage as error:
            raise LoginError(f"the server's answer is not one of {self.name}: {error}") from None
        return None

    def _prove(self, text: str) -> bytes:
        if text.startswith("e="):
            raise LoginError(f"the server ended {self.name}: {text[2:100]!r}")
        nonce, salt, iterations = read_attributes(text, "rsi")
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise LoginError("the server's nonce does not continue this client's: somebody repeats an old answer")
        if not _ITERATIONS.fullmatch(iterations):
            raise BadMessage("the number of iterations is no number")
        count = int(iterations)
        if not MIN_ITERATIONS <= count <= MAX_ASKED_ITERATIONS:
            raise LoginError(
                f"the server asks for {count} iterations; {MIN_ITERATIONS} to {MAX_ASKED_ITERATIONS} are accepted:"
                " fewer would help it to guess the password, more would keep this client busy"
            )
        salted = salted_password(self._password.reveal(), from_base64(salt), count, self._hash)
        self._keys = keys = Keys(salted, self._hash)
        unproven = f"c={to_base64(_GS2.encode())},r={nonce}"
        self._transcript = Transcript(self._bare, text, unproven).as_bytes()
        return f"{unproven},p={to_base64(client_proof(keys, self._transcript))}".encode()

    def _check(self, text: str, keys: Keys) -> None:
        if text.startswith("e="):
            raise LoginError(f"the server refused the login: {text[2:100]!r}")
        (signature,) = read_attributes(text, "v")
        if not hmac.compare_digest(from_base64(signature), server_signature(keys, self._transcript)):
            raise LoginError("the server has not proven that it knows this user's password: it may be another server")
