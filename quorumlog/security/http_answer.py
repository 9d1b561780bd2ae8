"""One HTTP request, blocking, and its answer. Called in a thread.

A redirect is not followed: it would lead to a place that nobody has listed (CVE-2025-27817). Proxies of the environment
are not used. An answer is read up to a limit.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit


class FetchError(Exception):
    """Nothing came, or not what was asked for. It names the source, and no secret."""


class Answer(NamedTuple):
    status: int
    body: bytes


def ask(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    context: ssl.SSLContext | None,
    timeout_s: float,
    max_bytes: int,
) -> Answer:
    """url: http or https, checked by the caller, without a user in it. context: None: the system's authorities.

    timeout_s: to connect, and for each read. Raises FetchError.
    """
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
