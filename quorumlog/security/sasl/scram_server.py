"""The server's side of a user's login by SCRAM (RFC 5802, RFC 7677). Pure.

state    first message              final message
NEW      ASKED, or OVER if bad      OVER
ASKED    OVER                       OVER: logged in, or refused
OVER     refused                    refused

A name that is not known is asked as a known one is, with a salt of its own that is always the same, and is refused as a
wrong password is (Kafka refuses it at once, which tells who has a credential). The salt of a known one is the stored
one, so the length of a salt may still tell them apart where a tool has chosen it.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from quorumlog.security.principal import USER, Principal
from quorumlog.security.sasl.credential import ScramCredential
from quorumlog.security.sasl.mechanism import Challenge, Credentials, Done, Failed, Outcome, shown_user
from quorumlog.security.sasl.scram_keys import (
    HASHES,
    MIN_ITERATIONS,
    Verifier,
    fake_salt,
    is_client_proof,
    server_signature,
)
from quorumlog.security.sasl.scram_text import (
    BadMessage,
    Transcript,
    from_base64,
    read_attributes,
    read_name,
    text_within,
    to_base64,
)

MAX_MESSAGE_BYTES = 8 * 1024
_NONCE = re.compile(r"[\x21-\x7e]+")  # without commas, which end it
_NAME = re.compile(r"[\x01-\x7f]+")


class _State(Enum):
    NEW = auto()
    ASKED = auto()
    OVER = auto()


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """header: the gs2 header, with its last comma. bare: what follows it. nonce: the client's."""

    header: str
    bare: str
    name: str
    nonce: str


def read_client_first(message: bytes) -> ClientFirst:
    """`n,[a=ID],n=NAME,r=NONCE[,extensions]`. Raises BadMessage.

    `y` instead of `n` is taken (the client could bind to a TLS channel); `p=` is not. ID must be NAME: nobody acts for
    another (CVE-2017-12610).
    """
    text = text_within(message, MAX_MESSAGE_BYTES)
    flag, first_comma, rest = text.partition(",")
    identity, second_comma, bare = rest.partition(",")
    if not second_comma or flag not in ("n", "y"):
        raise BadMessage("a first message does not begin with `n,` or `y,`: channel binding is not supported")
    escaped, nonce = read_attributes(bare, "nr")
    name = read_name(escaped)
    if not _NAME.fullmatch(name):
        raise BadMessage("a name is empty or not ASCII")
    if not _NONCE.fullmatch(nonce):
        raise BadMessage("a nonce is empty or not printable")
    if identity and identity != f"a={escaped}":
        raise BadMessage("it wants to act for another user")
    return ClientFirst(f"{flag}{first_comma}{identity}{second_comma}", bare, name, nonce)


@dataclass(frozen=True, slots=True)
class ClientFinal:
    """unproven: the message without its last attribute, the proof."""

    binding: str
    nonce: str
    unproven: str
    proof: bytes


def read_client_final(message: bytes) -> ClientFinal:
    """`c=BINDING,r=NONCE[,extensions],p=PROOF`. Raises BadMessage."""
    text = text_within(message, MAX_MESSAGE_BYTES)
    unproven, found, proof = text.rpartition(",p=")
    if not found:
        raise BadMessage("attribute 'p' is missing")
    binding, nonce = read_attributes(unproven, "cr")
    if ",m=" in unproven:
        raise BadMessage("it asks for an extension that is not known")
    return ClientFinal(binding, nonce, unproven, from_base64(proof))


class ScramServer:
    """mechanism: SCRAM-SHA-256 or SCRAM-SHA-512. nonce: of `new_nonce`, never used before. fake_key: the same on all
    nodes of a cluster, and told to nobody; it makes the salts of names that are not known."""

    def __init__(self, mechanism: str, credentials: Credentials, nonce: str, fake_key: bytes) -> None:
        self._mechanism, self._hash = mechanism, HASHES[mechanism]
        self._credentials, self._own_nonce, self._fake_key = credentials, nonce, fake_key
        self._state = _State.NEW
        self._first = ClientFirst("", "", "", "")
        self._credential: ScramCredential | None = None
        self._nonce = self._asked = ""  # nonce: of both sides

    def step(self, message: bytes, now_ms: int) -> Outcome:
        before, self._state = self._state, _State.OVER  # unless this message is found right
        try:
            if before is _State.NEW:
                return self._ask(read_client_first(message))
            if before is _State.ASKED:
                return self._judge(read_client_final(message))
        except BadMessage as error:
            return Failed(f"{self._mechanism}: {error}")
        return Failed(f"{self._mechanism}: a message after the end of the exchange")

    def resume(self, result: Any, now_ms: int) -> Outcome:
        raise AssertionError("SCRAM asks for no work")

    def _ask(self, first: ClientFirst) -> Challenge:
        self._first = first
        self._credential = self._credentials.scram(self._mechanism, first.name)
        salt, iterations = fake_salt(self._fake_key, self._mechanism, first.name), MIN_ITERATIONS
        if self._credential is not None:
            salt, iterations = self._credential.salt, self._credential.iterations
        self._nonce = first.nonce + self._own_nonce
        self._asked = f"r={self._nonce},s={to_base64(salt)},i={iterations}"
        self._state = _State.ASKED
        return Challenge(self._asked.encode())

    def _judge(self, final: ClientFinal) -> Outcome:
        if final.nonce != self._nonce:  # the whole of it (CVE-2024-56128)
            return Failed(f"{self._mechanism}: the nonce is not that of this exchange")
        if final.binding != to_base64(self._first.header.encode()):
            return Failed(f"{self._mechanism}: the channel binding is not that of the first message")
        transcript = Transcript(self._first.bare, self._asked, final.unproven).as_bytes()
        verifier = self._verifier()
        proven = is_client_proof(verifier, transcript, final.proof)
        user = shown_user(self._first.name)
        if self._credential is None:
            return Failed(f"{self._mechanism}: {user} has no credential")
        if not proven:
            return Failed(f"{self._mechanism}: wrong password of {user}")
        if not self._is_still_stored(self._credential):
            return Failed(f"{self._mechanism}: the credential of {user} has just been changed or deleted")
        signature = to_base64(server_signature(verifier, transcript))
        return Done(f"v={signature}".encode(), Principal(USER, self._first.name))

    def _is_still_stored(self, used: ScramCredential) -> bool:
        stored = self._credentials.scram(self._mechanism, self._first.name)
        return stored is not None and hmac.compare_digest(stored.stored_key, used.stored_key)

    def _verifier(self) -> Verifier:
        """Of a name that is not known: one to which no password is known, so that the check costs the same."""
        if self._credential is not None:
            return Verifier(self._credential.stored_key, self._credential.server_key, self._hash)
        unknown = hmac.digest(self._fake_key, self._first.bare.encode(), self._hash)
        return Verifier(unknown, unknown, self._hash)
