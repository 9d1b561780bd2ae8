"""Where a client's tokens come from: a callable, a file, or a token endpoint (`client_credentials`, RFC 6749 4.4).

A callable and a file are asked for each login: who replaces a token there wants it used. The token of an endpoint
serves all connections of a client, and is renewed as `Renewal` plans. A token that is over is never sent: that would be
a refusal, while a new token may come at any time.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import ssl
import time
import urllib.parse
from collections.abc import Awaitable, Callable
from typing import Any

from quorumlog.client.errors import ConfigError
from quorumlog.rpc.caller_security import CredentialsUnavailable
from quorumlog.rpc.transport import NotAuthenticated
from quorumlog.security.http_answer import FetchError
from quorumlog.security.sasl.edge import fetching
from quorumlog.security.sasl.edge.fetching import ask_token
from quorumlog.security.sasl.mechanism import LoginError
from quorumlog.security.sasl.oauth_message import MAX_TOKEN_CHARACTERS, is_token
from quorumlog.security.sasl.renewal import Renewal, RenewalRules
from quorumlog.security.sasl.token_request import (
    BearerToken,
    TokenRequest,
    made_token,
    read_token_answer,
    read_token_file,
)
from quorumlog.security.secret import Secret

ENDPOINT_TIMEOUT_S = 8.0
UNSECURED_LIFETIME_S = 3_600
RECENT_MS = 10_000
_REFUSALS = (400, 401, 403)  # of the client, by HTTP
Given = Callable[[], "str | Awaitable[str]"]


def wall_ms() -> int:
    """Unix time."""
    return time.time_ns() // 1_000_000


async def ask_callable(source: Given) -> Secret:
    """A plain function runs in a thread: it may ask somebody over the network. Raises CredentialsUnavailable."""
    whence = "sasl_oauthbearer_token"
    try:
        given = await asyncio.to_thread(source)
        token = await given if inspect.isawaitable(given) else given
    except Exception as error:  # of the application, which may mend it while the client goes on trying
        raise CredentialsUnavailable(f"{whence} has failed: {type(error).__name__}") from error
    if not isinstance(token, str) or not is_token(token):
        raise CredentialsUnavailable(
            f"{whence} gave no token: a text of 1 to {MAX_TOKEN_CHARACTERS} letters, digits and -._~+/="
        )
    return _current(made_token(Secret(token), None), whence)


async def read_file(path: str) -> Secret:
    """Raises CredentialsUnavailable."""
    try:
        token = read_token_file(await asyncio.to_thread(fetching.read_file, path))
    except (FetchError, LoginError) as error:
        raise CredentialsUnavailable(f"the token's file {path}: {error}") from None
    return _current(token, f"the token's file {path}")


class RecentToken:
    """Of a source that is asked anew for each login, for calls by gRPC, each of which shows a token: one that was given
    less than RECENT_MS ago, and has not ended, serves again. now_ms: a clock that never goes back."""

    def __init__(self, source: Callable[[], Awaitable[Secret]], now_ms: Callable[[], int]) -> None:
        self._source, self._now_ms = source, now_ms
        self._kept: BearerToken | None = None
        self._since_ms = 0
        self._asking = asyncio.Lock()  # one question for all calls that wait

    async def newest(self) -> Secret:
        """Raises what the source raises."""
        async with self._asking:
            if self._kept is None or not self._serves(self._kept):
                asked_ms = self._now_ms()
                self._kept, self._since_ms = made_token(await self._source(), None), asked_ms
            return self._kept.value

    def _serves(self, token: BearerToken) -> bool:
        has_ended = token.expires_ms is not None and token.expires_ms <= wall_ms()
        return not has_ended and self._now_ms() - self._since_ms < RECENT_MS

    def forget(self) -> None:
        self._kept = None


class EndpointTokens:
    """Of one client. tls: whom it trusts there; None: the system's authorities. fraction: random numbers from 0 to
    below 1. now_ms: Unix time."""

    def __init__(
        self,
        request: TokenRequest,
        tls: ssl.SSLContext | None,
        fraction: Callable[[], float],
        now_ms: Callable[[], int] = wall_ms,
    ) -> None:
        self._request, self._tls, self._fraction, self._now_ms = request, tls, fraction, now_ms
        self._renewal = Renewal(RenewalRules(), fraction)
        self._failure: CredentialsUnavailable | NotAuthenticated | None = None  # of the last request
        self._asking = asyncio.Lock()  # one request for all logins that wait

    async def newest(self) -> Secret:
        """Raises NotAuthenticated if the endpoint refuses the client, CredentialsUnavailable for everything else.

        A token that has not ended serves while the endpoint gives no other.
        """
        async with self._asking:
            if self._now_ms() >= self._renewal.due_ms:
                await self._renew()
        kept = self._renewal.usable(self._now_ms())
        if kept is not None:
            return kept.value
        if self._failure is not None:
            raise type(self._failure)(str(self._failure))
        raise CredentialsUnavailable(f"the token of {self._request.url} has expired")

    def forget(self) -> None:
        """A broker refuses the token: the next login asks for another one."""
        self._renewal, self._failure = Renewal(RenewalRules(), self._fraction), None

    async def _renew(self) -> None:
        asked_ms = self._now_ms()
        try:
            token = await asyncio.to_thread(self._fetch, asked_ms)
        except (CredentialsUnavailable, NotAuthenticated) as failure:
            self._failure = failure
            self._renewal.failed(self._now_ms())
        else:
            self._failure = None
            self._renewal.fetched(token, asked_ms)

    def _fetch(self, asked_ms: int) -> BearerToken:
        url = self._request.url
        try:
            status, body = ask_token(self._request, self._tls, ENDPOINT_TIMEOUT_S)
        except FetchError as error:
            raise CredentialsUnavailable(f"the token endpoint {url} gives no token: {error}") from None
        try:
            return read_token_answer(status, body, asked_ms)
        except LoginError as error:
            if status in _REFUSALS:
                raise NotAuthenticated(
                    f"{url} refuses this client: {error}: check sasl_oauthbearer_client_credentials_client_id, its "
                    "secret, and the scope"
                ) from None
            raise CredentialsUnavailable(f"{url}: {error}") from None


def unsecured(claims: dict[str, str]) -> Secret:
    """A token without a signature (KIP-255): only brokers of a development cluster accept it."""
    now_s = wall_ms() // 1000
    body = {**claims, "iat": now_s, "exp": now_s + UNSECURED_LIFETIME_S}
    return Secret(f"{_part({'alg': 'none'})}.{_part(body)}.")


def path_of(url: str) -> str:
    """Of a file: URL. Raises ConfigError."""
    parts = urllib.parse.urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path:
        raise ConfigError("sasl_oauthbearer_token_endpoint_url: write file:///PATH, with three slashes")
    return urllib.parse.unquote(parts.path)


def _current(token: BearerToken, whence: str) -> Secret:
    """Raises CredentialsUnavailable."""
    if token.expires_ms is not None and token.expires_ms <= wall_ms():
        raise CredentialsUnavailable(f"the token of {whence} has expired")
    return token.value


def _part(values: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")
