"""Documents from listed sources, and tokens from endpoints. Blocking: called in a thread.

A redirect is not followed: it would lead to a place that nobody has listed (CVE-2025-27817). Proxies of the environment
are not used. An answer is read up to a limit.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from quorumlog.security.sasl.jwks import MAX_DOCUMENT_BYTES
from quorumlog.security.sasl.token_request import MAX_ANSWER_BYTES, TokenRequest

TIMEOUT_S = 10.0  # to connect, and for each read


class FetchError(Exception):
    """Nothing came, or not what was asked for. It names the source, and no secret."""


class Answer(NamedTuple):
    status: int
    body: bytes


def fetch_document(url: str, context: ssl.SSLContext | None, timeout_s: float = TIMEOUT_S) -> bytes:
    """The document at a URL that `check_source` has passed. context: None: the system's CAs. Raises FetchError."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return read_file(unquote(parts.path))
    status, body = _ask("GET", url, {"Accept": "application/json"}, b"", context, timeout_s, MAX_DOCUMENT_BYTES)
    if status != 200:
        raise FetchError(f"{url} answered {status}; a redirect is not followed")
    return body


def read_file(path: str, max_bytes: int = MAX_DOCUMENT_BYTES) -> bytes:
    """Raises FetchError."""
    try:
        with open(path, "rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise FetchError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > max_bytes:
        raise FetchError(f"{path} is longer than {max_bytes} bytes")
    return content


def ask_token(request: TokenRequest, context: ssl.SSLContext | None, timeout_s: float = TIMEOUT_S) -> Answer:
    """Raises FetchError."""
    headers = {name: value.reveal() for name, value in request.headers.items()}
    return _ask("POST", request.url, headers, request.body, context, timeout_s, MAX_ANSWER_BYTES)


def _ask(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    context: ssl.SSLContext | None,
    timeout_s: float,
    max_bytes: int,
) -> Answer:
    parts = urlsplit(url)
    assert parts.hostname is not None, "the URL was checked"
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        trusted = context or ssl.create_default_context()
        connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout_s, context=trusted)
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(method, target, body or None, dict(headers))
        answer = connection.getresponse()
        content = answer.read(max_bytes + 1)
    except (OSError, http.client.HTTPException) as error:
        raise FetchError(f"{parts.scheme}://{parts.netloc} gave no answer: {error}") from None
    finally:
        connection.close()
    if len(content) > max_bytes:
        raise FetchError(f"{parts.scheme}://{parts.netloc} sent more than {max_bytes} bytes")
    return Answer(answer.status, content)
