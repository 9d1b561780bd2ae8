"""Logins of clients, as `caller_security.Login`: each exchange begins with a fresh nonce, or with a fresh token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from quorumlog.rpc.transport import NotAuthenticated
from quorumlog.security.sasl.mechanism import OAUTHBEARER, PLAIN, ClientMechanism, LoginError, check_utf8
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

    async def authorization(self) -> str:
        """The password itself, whatever the mechanism is: gRPC has no exchange. The channel has TLS, and the peer has
        shown that it is the one that is meant."""
        from quorumlog.rpc.serving.logins import basic  # where gRPC is used

        try:
            check_utf8(self.name, self.password)
        except LoginError as error:
            raise NotAuthenticated(f"{self.who} cannot log in by gRPC: {error}: {self.cure}") from None
        return basic(self.name, self.password.reveal())

    def renew(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """source: the token of the next exchange. shown: of the next call by gRPC, of which there are many. refused: told
    when a broker takes no such token. whence: for messages."""

    source: Callable[[], Awaitable[Secret]] = field(repr=False)
    shown: Callable[[], Awaitable[Secret]] = field(repr=False)
    refused: Callable[[], None] = field(repr=False)
    whence: str
    mechanism: str = OAUTHBEARER
    cure: str = "check what the token's issuer and audience are, and that the broker trusts them"

    @property
    def who(self) -> str:
        return f"the token of {self.whence}"

    async def begin(self) -> ClientMechanism:
        return OauthClient(await self.source(), on_refusal=self.refused)

    async def authorization(self) -> str:
        from quorumlog.rpc.serving.logins import bearer

        return bearer((await self.shown()).reveal())

    def renew(self) -> bool:
        self.refused()
        return True
