"""The client's side of a user's login by SCRAM, which also makes the server prove itself. Pure."""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass

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
MAX_TOLD_CHARACTERS = 100  # of the server's own error
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
            if self._taken == 1:
                return self._prove(read_server_first(message))
            if self._taken > 2 or self._keys is None:
                raise LoginError(f"the server said more than {self.name} allows")
            self._check(read_server_final(message), self._keys)
        except BadMessage as error:
            raise LoginError(f"the server's answer is not one of {self.name}: {error}") from None
        return None

    def _prove(self, first: ServerFirst) -> bytes:
        if not first.nonce.startswith(self._nonce) or len(first.nonce) == len(self._nonce):
            raise LoginError("the server's nonce does not continue this client's: somebody repeats an old answer")
        if not MIN_ITERATIONS <= first.iterations <= MAX_ASKED_ITERATIONS:
            raise LoginError(
                f"the server asks for {first.iterations} iterations; {MIN_ITERATIONS} to {MAX_ASKED_ITERATIONS} are"
                " accepted: fewer would help it to guess the password, more would keep this client busy"
            )
        salted = salted_password(self._password.reveal(), first.salt, first.iterations, self._hash)
        self._keys = keys = Keys(salted, self._hash)
        unproven = f"c={to_base64(_GS2.encode())},r={first.nonce}"
        self._transcript = Transcript(self._bare, first.text, unproven).as_bytes()
        return f"{unproven},p={to_base64(client_proof(keys, self._transcript))}".encode()

    def _check(self, signature: bytes, keys: Keys) -> None:
        if not hmac.compare_digest(signature, server_signature(keys, self._transcript)):
            raise LoginError("the server has not proven that it knows this user's password: it may be another server")


@dataclass(frozen=True, slots=True)
class ServerFirst:
    """text: the whole message. nonce: of both sides. iterations: as told, any number."""

    text: str
    nonce: str
    salt: bytes
    iterations: int


def read_server_first(message: bytes) -> ServerFirst:
    """`r=NONCE,s=SALT,i=ITERATIONS[,extensions]`. Raises BadMessage."""
    text = _told(message)
    nonce, salt, iterations = read_attributes(text, "rsi")
    if not _ITERATIONS.fullmatch(iterations):
        raise BadMessage("the number of iterations is no number")
    return ServerFirst(text, nonce, from_base64(salt), int(iterations))


def read_server_final(message: bytes) -> bytes:
    """`v=SIGNATURE[,extensions]`: the signature. Raises BadMessage."""
    (signature,) = read_attributes(_told(message), "v")
    return from_base64(signature)


def _told(message: bytes) -> str:
    """Raises BadMessage for the server's own error, too."""
    text = text_within(message, MAX_MESSAGE_BYTES)
    if text.startswith("e="):
        raise BadMessage(f"it refused the login: {text[2:MAX_TOLD_CHARACTERS]!a}")
    return text
