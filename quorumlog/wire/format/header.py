"""The headers of messages: versions 1 and 2 of the request header, 0 and 1 of the response header.

A flexible message has tags in its header, too (request header 2, response header 1). The client id is not compact even
in version 2. The response to ApiVersions always has header 0, so that a client can read it before it knows the
broker's versions (KIP-511).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from quorumlog.wire.format.cursor import Cursor
from quorumlog.wire.format.frame_writer import FrameWriter
from quorumlog.wire.format.primitives import SHORT, text

FIXED = struct.Struct(">hhi")
API_VERSIONS_KEY = 18
_read_client_id, _write_client_id = text(SHORT, nullable=True)


class RequestHeader(NamedTuple):
    api_key: int
    version: int
    correlation_id: int
    client_id: str = ""


def read_fixed(cursor: Cursor) -> RequestHeader:
    """The part that is the same in all versions; what follows depends on the API. Raises Malformed."""
    return RequestHeader(*FIXED.unpack_from(cursor.data, cursor.skip(FIXED.size)))


def read_rest(cursor: Cursor, fixed: RequestHeader, flexible: bool) -> RequestHeader:
    client_id = _read_client_id(cursor) or ""
    if flexible:
        cursor.skip_tags()
    return RequestHeader(fixed.api_key, fixed.version, fixed.correlation_id, client_id)


def write_request_header(writer: FrameWriter, header: RequestHeader, flexible: bool) -> None:
    writer.tail += FIXED.pack(header.api_key, header.version, header.correlation_id)
    _write_client_id(writer, header.client_id)
    if flexible:
        writer.tail.append(0)


def read_response_header(cursor: Cursor, api_key: int, flexible: bool) -> int:
    """Returns the correlation id. Raises Malformed."""
    correlation_id = cursor.i32()
    if flexible and api_key != API_VERSIONS_KEY:
        cursor.skip_tags()
    return correlation_id


def write_response_header(writer: FrameWriter, header: RequestHeader, flexible: bool) -> None:
    writer.tail += struct.pack(">i", header.correlation_id)
    if flexible and header.api_key != API_VERSIONS_KEY:
        writer.tail.append(0)
