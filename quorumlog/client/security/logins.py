"""Logins of clients, as `caller_security.Login`: each exchange begins with a fresh nonce, or with a fresh token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from quorumlog.security.sasl.mechanism import OAUTHBEARER, PLAIN, ClientMechanism
from quorumlog.security.sasl.oauth_client import OauthClient
from quorumlog.security.sasl.plain import PlainClient
from quorumlog.security.sasl.scram_client import ScramClient
from quorumlog.security.sasl.scram_text import NONCE_RANDOM_BYTES, new_nonce
from quorumlog.security.secret import Secret


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
        nonce = new_nonce(self.random_bytes(NONCE_RANDOM_BYTES))
        return ScramClient(self.mechanism, self.name, self.password, nonce)


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """source: the token of the next exchange. whence: for messages. refused: told when a broker takes no such token."""

    source: Callable[[], Awaitable[Secret]] = field(repr=False)
    whence: str
    refused: Callable[[], None] | None = field(default=None, repr=False)
    mechanism: str = OAUTHBEARER
    cure: str = "check what the token's issuer and audience are, and that the broker trusts them"

    @property
    def who(self) -> str:
        return f"the token of {self.whence}"

    async def begin(self) -> ClientMechanism:
        return OauthClient(await self.source(), on_refusal=self.refused)
