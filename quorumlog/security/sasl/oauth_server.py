"""The server's side of a login by OAUTHBEARER (RFC 7628, KIP-255). Pure.

A token that is refused is answered with a challenge, as the RFC wants it; the client's next message ends the exchange.
A token by a key that is not known lets the document of keys be fetched once, and is looked at again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quorumlog.security.principal import USER, Principal
from quorumlog.security.sasl.jwks import BadJwks, Jwks
from quorumlog.security.sasl.mechanism import OAUTHBEARER, Challenge, Done, Failed, Outcome, Step, Work
from quorumlog.security.sasl.oauth_message import INVALID_TOKEN, BadMessage, TokenMessage, read_token_message
from quorumlog.security.sasl.token import BadToken, TokenRules, UnknownKey, read_token


class OauthServer:
    """fetch: gets the document of keys, in a thread; None: it could not."""

    def __init__(self, rules: TokenRules, jwks: Jwks, fetch: Callable[[], bytes | None]) -> None:
        self._rules, self._jwks, self._fetch = rules, jwks, fetch
        self._message: TokenMessage | None = None
        self._refused = ""  # why; the client's next message ends the exchange
        self._is_over = False

    def step(self, message: bytes, now_ms: int) -> Step:
        if self._refused or self._is_over:
            self._is_over = True
            return Failed(self._refused or f"{OAUTHBEARER}: a message after the end of the exchange")
        try:
            self._message = read_token_message(message)
        except BadMessage as error:
            self._is_over = True
            return Failed(f"{OAUTHBEARER}: {error}")
        try:
            return self._judge(self._message, now_ms)
        except UnknownKey as error:
            if self._jwks.may_fetch_unknown(now_ms):
                return Work(self._fetch)
            return self._refuse(str(error))

    def resume(self, result: Any, now_ms: int) -> Outcome:
        """result: what `fetch` returned."""
        assert self._message is not None, "no work was asked for"
        if result is None:
            self._jwks.failed(now_ms)
            return self._refuse("its key is not known, and the document of keys could not be fetched")
        try:
            self._jwks.fetched(result, now_ms)
            return self._judge(self._message, now_ms)
        except BadJwks as error:
            return self._refuse(f"its key is not known, and the new document of keys is not usable: {error}")
        except UnknownKey as error:
            return self._refuse(str(error))

    def _judge(self, message: TokenMessage, now_ms: int) -> Outcome:
        """Raises UnknownKey."""
        try:
            claims = read_token(message.token, self._rules, self._jwks, now_ms)
        except BadToken as error:
            return self._refuse(str(error))
        if message.identity not in ("", claims.name):
            return self._refuse("it wants to act for another user")
        self._is_over = True
        return Done(b"", Principal(USER, claims.name), claims.expires_ms)

    def _refuse(self, reason: str) -> Challenge:
        self._refused = f"{OAUTHBEARER}: the token is refused: {reason}"
        return Challenge(INVALID_TOKEN)
