"""Logins of clients, as `caller_security.Login`: each exchange begins with a fresh nonce, or with a fresh token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from quorumlog.proof.scram_text import NONCE_BYTES, new_nonce
from quorumlog.security.sasl.mechanism import OAUTHBEARER, PLAIN, ClientMechanism, LoginError
from quorumlog.security.sasl.scram_client import ScramClient
from quorumlog.security.secret import Secret

_SEPARATOR = "\x01"  # RFC 7628, 3.1; also the client's last word after a refusal


class PlainClient:
    """RFC 4616. name, password: without NUL."""

    def __init__(self, name: str, password: Secret) -> None:
        self.name, self._message = PLAIN, f"\0{name}\0{password.reveal()}".encode()

    def first(self) -> bytes:
        return self._message

    def step(self, message: bytes) -> bytes | None:
        if message:
            raise LoginError("the server answers PLAIN with a message, which has none")
        return None


class TokenClient:
    """RFC 7628, KIP-255. token: of visible ASCII characters."""

    def __init__(self, token: str) -> None:
        self.name, self._token = OAUTHBEARER, token

    def first(self) -> bytes:
        return f"n,,{_SEPARATOR}auth=Bearer {self._token}{_SEPARATOR}{_SEPARATOR}".encode()

    def step(self, message: bytes) -> bytes | None:
        """A message is the server's reason for its refusal, which it completes once the client has said so."""
        return _SEPARATOR.encode() if message else None


@dataclass(frozen=True, slots=True)
class PasswordLogin:
    """mechanism: PLAIN, or one of SCRAM's."""

    mechanism: str
    name: str
    password: Secret
    random_bytes: Callable[[int], bytes] = field(repr=False)
    cure: str = "check sasl_username, sasl_password and sasl_mechanism"

    @property
    def who(self) -> str:
        return f"user {self.name!r}"

    async def begin(self) -> ClientMechanism:
        if self.mechanism == PLAIN:
            return PlainClient(self.name, self.password)
        return ScramClient(self.mechanism, self.name, self.password, new_nonce(self.random_bytes(NONCE_BYTES)))


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """source: a token, new for each exchange. whence: for messages."""

    source: Callable[[], Awaitable[str]] = field(repr=False)
    whence: str
    mechanism: str = OAUTHBEARER
    cure: str = "check what the token's issuer and audience are, and that the broker trusts them"

    @property
    def who(self) -> str:
        return f"the token of {self.whence}"

    async def begin(self) -> ClientMechanism:
        return TokenClient(await self.source())
