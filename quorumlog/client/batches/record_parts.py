"""Converts what a caller passes as a record to what is sent.

Invalid parts are refused here, before the record joins a batch, because a batch is encoded as a whole.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

from quorumlog.client.batches.accumulator import Headers
from quorumlog.client.errors import RequestFailed
from quorumlog.errors import ApiError
from quorumlog.records.rowwise.plain import check_timestamps

HeadersLike = Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]]


def raw_bytes(part: Any, what: str) -> bytes | None:
    """A key or value as bytes. Raises TypeError."""
    if part is None or isinstance(part, bytes):
        return part
    if isinstance(part, str):
        return part.encode()
    if isinstance(part, bytearray | memoryview):
        return bytes(part)
    raise TypeError(f"the {what} must be bytes, str or None, not {type(part).__name__}")


def checked_timestamp(timestamp_ms: int) -> int:
    """The timestamp as an int. Raises RequestFailed INVALID_TIMESTAMP, TypeError if it is not an integer."""
    whole = operator.index(timestamp_ms)
    try:
        check_timestamps(whole, whole)
    except ApiError as error:
        raise RequestFailed(error.code, error.message) from error
    return whole


def header_pairs(headers: HeadersLike) -> Headers:
    """Headers as pairs of str and bytes. Raises TypeError that names the wrong item, UnicodeEncodeError."""
    items = headers.items() if isinstance(headers, Mapping) else headers
    pairs: list[tuple[str, bytes | None]] = []
    for place, item in enumerate(items):
        try:
            name, content = item
        except (TypeError, ValueError) as error:
            raise TypeError(f"header {place} is {item!r}, not a pair of name and bytes") from error
        if not isinstance(name, str) or not isinstance(content, bytes | str | None):
            raise TypeError(f"header {place} is {item!r}: the name must be str, the content bytes, str or None")
        name.encode()
        pairs.append((name, content.encode() if isinstance(content, str) else content))
    return tuple(pairs)
