"""Where a client's tokens come from: a callable, a file, or a token endpoint (`client_credentials`, RFC 6749 4.4).

Each login asks anew, so a renewed login brings a new token; a file is read again, since somebody else replaces it. A
token that is over is never sent: that would be a refusal, while a new token may come at any time.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import inspect
import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from quorumlog.client.errors import ConfigError
from quorumlog.rpc.caller_security import CredentialsUnavailable
from quorumlog.rpc.transport import NotAuthenticated

ENDPOINT_TIMEOUT_S = 8.0
MAX_ANSWER_BYTES = 64 * 1024
MAX_TOKEN_BYTES = 16 * 1024
UNSECURED_LIFETIME_S = 3_600
Given = Callable[[], "str | Awaitable[str]"]


async def ask_callable(source: Given) -> str:
    """A plain function runs in a thread: it may ask somebody over the network."""
    try:
        given = await asyncio.to_thread(source)
        token = await given if inspect.isawaitable(given) else given
    except Exception as error:
        raise CredentialsUnavailable(f"sasl_oauthbearer_token has failed: {type(error).__name__}") from error
    return checked(token, "sasl_oauthbearer_token")


async def read_file(path: Path) -> str:
    try:
        text = await asyncio.to_thread(path.read_text)
    except (OSError, UnicodeDecodeError) as error:
        raise CredentialsUnavailable(f"the token's file {path} cannot be read: {_why(error)}") from error
    return checked(text.strip(), f"the token's file {path}")


async def ask_endpoint(
    url: str, client_id: str, secret: str, scope: str, *, urlencode: bool, tls: ssl.SSLContext | None
) -> str:
    """urlencode: id and secret are form-encoded before base64, as RFC 6749 2.3.1 has it and Kafka by default not.

    Raises NotAuthenticated if the endpoint refuses the client, CredentialsUnavailable for everything else.
    """
    if urlencode:
        client_id, secret = urllib.parse.quote_plus(client_id), urllib.parse.quote_plus(secret)
    code = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
    form = {"grant_type": "client_credentials", **({"scope": scope} if scope else {})}
    request = urllib.request.Request(
        url,
        data=urllib.parse.urlencode(form).encode(),
        headers={"Authorization": f"Basic {code}", "Accept": "application/json"},
    )
    answer = await asyncio.to_thread(_fetch, request, tls)
    token = answer.get("access_token")
    if not isinstance(token, str):
        raise CredentialsUnavailable(f"the answer of {url} has no access_token")
    return checked(token, f"the answer of {url}")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The secret goes to the address that was configured and to no other."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _fetch(request: urllib.request.Request, tls: ssl.SSLContext | None) -> dict[str, Any]:
    url = request.full_url
    opener = urllib.request.build_opener(_NoRedirect, urllib.request.HTTPSHandler(context=tls))
    try:
        with opener.open(request, timeout=ENDPOINT_TIMEOUT_S) as response:
            found = json.loads(response.read(MAX_ANSWER_BYTES))
    except urllib.error.HTTPError as error:
        if error.code in (400, 401, 403):
            raise NotAuthenticated(
                f"the token endpoint {url} refuses this client (HTTP {error.code}): check "
                "sasl_oauthbearer_client_credentials_client_id, its secret, and the scope"
            ) from None
        raise CredentialsUnavailable(f"the token endpoint {url} answers HTTP {error.code}") from None
    except (OSError, ValueError) as error:
        raise CredentialsUnavailable(f"the token endpoint {url} gives no token: {_why(error)}") from None
    return found if isinstance(found, dict) else {}


def unsecured(claims: dict[str, str]) -> str:
    """A token without a signature (KIP-255): only brokers of a development cluster accept it."""
    now_s = int(time.time())
    body = {**claims, "iat": now_s, "exp": now_s + UNSECURED_LIFETIME_S}
    return f"{_part({'alg': 'none'})}.{_part(body)}."


def checked(token: object, whence: str) -> str:
    """Raises CredentialsUnavailable for what is no token, or a token whose time is over."""
    if not isinstance(token, str) or not token or len(token) > MAX_TOKEN_BYTES or not token.isascii():
        raise CredentialsUnavailable(f"{whence} gave no token: a text of 1 to {MAX_TOKEN_BYTES} ASCII characters")
    if any(not "!" <= sign <= "~" for sign in token):
        raise CredentialsUnavailable(f"{whence} gave a text with spaces or control characters, which no token has")
    expires_s = expiry_s(token)
    if expires_s is not None and expires_s <= time.time():
        raise CredentialsUnavailable(f"the token of {whence} has expired")
    return token


def expiry_s(token: str) -> float | None:
    """Of a JWT (RFC 7519), in Unix time; None: it does not say. The token is not verified: the broker does that."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        body = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return None
    expires = body.get("exp") if isinstance(body, dict) else None
    return float(expires) if isinstance(expires, int | float) and not isinstance(expires, bool) else None


def path_of(url: str) -> Path:
    """Of a file: URL. Raises ConfigError."""
    parts = urllib.parse.urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path:
        raise ConfigError("sasl_oauthbearer_token_endpoint_url: write file:///PATH, with three slashes")
    return Path(urllib.parse.unquote(parts.path))


def _part(values: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def _why(error: Exception) -> str:
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
