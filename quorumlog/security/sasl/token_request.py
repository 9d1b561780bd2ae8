"""How a client gets a bearer token: the request for `client_credentials` (RFC 6749, section 4.4), and what comes back.

Pure: an edge sends the request. Names of settings and their meaning are Kafka's (KIP-768, KIP-1139).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote_plus, urlsplit

from quorumlog.security.host import is_near
from quorumlog.security.sasl.mechanism import LoginError
from quorumlog.security.sasl.oauth_message import is_token
from quorumlog.security.sasl.token import BadToken, read_unverified, time_ms
from quorumlog.security.secret import Secret

MAX_ANSWER_BYTES = 64 * 1024
MAX_ERROR_CHARACTERS = 200
MAX_LIFETIME_S = 10 * 365 * 86_400


@dataclass(frozen=True, slots=True)
class BearerToken:
    """expires_ms: Unix time; None: it tells no end."""

    value: Secret
    expires_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """A POST. body: hidden where it is printed; headers hold a Secret."""

    url: str
    headers: Mapping[str, Secret]
    body: bytes = field(repr=False)


def client_credentials_request(
    url: str, client_id: str, client_secret: Secret, scope: str = "", is_header_encoded: bool = False
) -> TokenRequest:
    """scope: empty: none. is_header_encoded: sasl.oauthbearer.header.urlencode: id and secret are form-encoded before
    they become base64, as RFC 6749 has it and many servers do not. Raises ValueError."""
    _check_endpoint(url)
    for name, value in (("client_id", client_id), ("client_secret", client_secret.reveal())):
        if not value:
            raise ValueError(
                f"a token of an endpoint needs sasl_oauthbearer_client_credentials_{name}: set it, or clientId and "
                "clientSecret in sasl_jaas_config"
            )
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(f"sasl_oauthbearer_client_credentials_{name} is not text that UTF-8 can say") from None
    if not is_header_encoded and ":" in client_id:
        raise ValueError("the client's id has a colon in it: set sasl_oauthbearer_header_urlencode=true")
    pair = [client_id, client_secret.reveal()]
    if is_header_encoded:
        pair = [quote_plus(one, safe="*-._") for one in pair]
    basic = base64.b64encode(":".join(pair).encode("utf-8")).decode("ascii")  # the standard alphabet, not that of URLs
    body = "grant_type=client_credentials" + (f"&scope={quote_plus(scope, safe='*-._')}" if scope else "")
    headers = {
        "Authorization": f"Basic {basic}",
        "Accept": "application/json",
        "Content-Type": "application/x-www-form-urlencoded",
        "Cache-Control": "no-cache",
    }
    return TokenRequest(url=url, headers={name: Secret(value) for name, value in headers.items()}, body=body.encode())


def _check_endpoint(url: str) -> None:
    """Plain http is for this machine only. A password in the URL would be shown where the URL is named."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ValueError("sasl_oauthbearer_token_endpoint_url is no URL: write https://HOST/PATH") from None
    host = parts.hostname or ""
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and is_near(host))):
        raise ValueError("sasl_oauthbearer_token_endpoint_url must begin with https://: the client's secret goes there")
    if "@" in parts.netloc or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(
            "sasl_oauthbearer_token_endpoint_url is https://HOST/PATH in ASCII, without a user, a password or blanks: "
            "remove them"
        )


def read_token_answer(status: int, body: bytes, now_ms: int) -> BearerToken:
    """now_ms: Unix time at which it was asked for. Raises LoginError without anything of a token."""
    try:
        told = json.loads(body[:MAX_ANSWER_BYTES])
    except (ValueError, RecursionError):
        told = None
    if status != 200 or not isinstance(told, dict):
        raise LoginError(f"the token endpoint answered {status}{_error_of(told)}")
    token = told.get("access_token")
    if not isinstance(token, str) or not is_token(token):
        raise LoginError("the token endpoint's answer has no `access_token`")
    return made_token(Secret(token), _end(told.get("expires_in"), now_ms))


def _error_of(told: object) -> str:
    """The endpoint's own error, which names no secret: `error` and `error_description` (RFC 6749, section 5.2)."""
    if not isinstance(told, dict):
        return " and no JSON object"
    words = [told[name] for name in ("error", "error_description") if isinstance(told.get(name), str)]
    return f": {': '.join(words)[:MAX_ERROR_CHARACTERS]!a}" if words else ""


def _end(expires_in_s: object, now_ms: int) -> int | None:
    if isinstance(expires_in_s, str) and expires_in_s.isascii() and expires_in_s.isdigit():  # some endpoints quote it
        expires_in_s = int(expires_in_s[:12])
    if isinstance(expires_in_s, bool) or not isinstance(expires_in_s, int | float):
        return None
    return now_ms + int(expires_in_s * 1000) if 0 < expires_in_s <= MAX_LIFETIME_S else None


def read_token_file(content: bytes) -> BearerToken:
    """A file that holds a token and blanks around it. Raises LoginError."""
    found = content[: 2 * MAX_ANSWER_BYTES].strip()
    text = found.decode("ascii") if found.isascii() else ""  # other text would take eight times its bytes
    if not is_token(text):
        raise LoginError("the token's file is empty, or does not hold a bearer token")
    return made_token(Secret(text), None)


def made_token(value: Secret, expires_ms: int | None) -> BearerToken:
    """A token with its end: the earlier of what was told and of its own `exp`, if it is a JWT."""
    try:
        own_ms = time_ms(read_unverified(value), "exp")
    except BadToken:
        own_ms = None
    ends = [end for end in (expires_ms, own_ms) if end is not None]
    return BearerToken(value, min(ends, default=None))
