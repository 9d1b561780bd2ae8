"""Documents from listed sources, and tokens from endpoints. Blocking: called in a thread.

How a request is made, and what it does not follow: `quorumlog.security.http_answer`.
"""

from __future__ import annotations

import ssl
from urllib.parse import unquote, urlsplit

from quorumlog.security.http_answer import Answer, FetchError, ask
from quorumlog.security.sasl.jwks import MAX_DOCUMENT_BYTES
from quorumlog.security.sasl.token_request import MAX_ANSWER_BYTES, TokenRequest

TIMEOUT_S = 10.0  # to connect, and for each read


def fetch_document(url: str, context: ssl.SSLContext | None, timeout_s: float = TIMEOUT_S) -> bytes:
    """The document at a URL that `check_source` has passed. context: None: the system's CAs. Raises FetchError."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return read_file(unquote(parts.path))
    status, body = ask("GET", url, {"Accept": "application/json"}, b"", context, timeout_s, MAX_DOCUMENT_BYTES)
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
    return ask("POST", request.url, headers, request.body, context, timeout_s, MAX_ANSWER_BYTES)
