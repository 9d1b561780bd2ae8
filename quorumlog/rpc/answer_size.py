"""How much a fetch by gRPC is answered with. protobuf and gRPC copy an answer several times, all in one turn of the
loop: 25 MB took it 32 to 55 ms. The data lane copies nothing and sends in pieces, so it needs no such limit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quorumlog.messages.fetch import FetchChunkRequest, FetchRequest

MAX_FETCHED_BYTES = 4 * 1024 * 1024  # of records; the first batch is sent even if it is larger


def bounded(request: Any) -> Any:
    """The request as it is carried out: a fetch asks for no more than MAX_FETCHED_BYTES."""
    if type(request) is FetchRequest and request.max_bytes > MAX_FETCHED_BYTES:
        return replace(request, max_bytes=MAX_FETCHED_BYTES)
    if type(request) is FetchChunkRequest and request.fetch is not None:
        return replace(request, fetch=bounded(request.fetch))
    return request
