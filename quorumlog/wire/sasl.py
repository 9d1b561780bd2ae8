"""How a node proves its identity on internal listeners of the lane: Kafka's SASL exchange, with one mechanism.

The bytes are those of PLAIN (RFC 4616): authorisation id (empty), name, secret, separated by NUL; the name is
`cluster id/node id/incarnation`. The claim is checked where both wires check it (rpc/access). A caller that is refused
reads the reason in the response to its next request.
"""

from __future__ import annotations

from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import format_uuid, parse_uuid
from quorumlog.rpc.transport import Identity
from quorumlog.wire.codec import Frame, decode_response_values, encode_request_values, encode_values, read_whole
from quorumlog.wire.cursor import Cursor
from quorumlog.wire.entities import request_shape, response_shape
from quorumlog.wire.header import RequestHeader, read_rest
from quorumlog.wire.schema import Values

HANDSHAKE_KEY, AUTHENTICATE_KEY = 17, 36
SASL_VERSIONS = {HANDSHAKE_KEY: (0, 1), AUTHENTICATE_KEY: (0, 2)}
MECHANISM = "PLAIN"
_SCHEMAS = {HANDSHAKE_KEY: "sasl_handshake", AUTHENTICATE_KEY: "sasl_authenticate"}
_OUR_VERSION = 1  # of both APIs, in our own requests


def read_request(cursor: Cursor, fixed: RequestHeader) -> Values:
    """A request of either API, after the fixed part of its header. Raises Malformed."""
    shape = request_shape(_SCHEMAS[fixed.api_key], fixed.version)
    read_rest(cursor, fixed, shape.flexible)
    return read_whole(cursor, shape)


def answer_handshake(fixed: RequestHeader, mechanism: str, internal: bool) -> Frame:
    """On a client listener there is nothing to authenticate: ILLEGAL_SASL_STATE."""
    if not internal:
        code = ErrorCode.ILLEGAL_SASL_STATE
    else:
        code = ErrorCode.NONE if mechanism == MECHANISM else ErrorCode.UNSUPPORTED_SASL_MECHANISM
    return _answer(fixed, {"error_code": code, "mechanisms": [MECHANISM] if internal else []})


def answer_authenticate(fixed: RequestHeader, refusal: ApiError | None) -> Frame:
    if refusal is None:
        return _answer(fixed, {})
    return _answer(fixed, {"error_code": ErrorCode.SASL_AUTHENTICATION_FAILED, "error_message": refusal.message})


def ask_handshake(correlation_id: int) -> Frame:
    return _ask(HANDSHAKE_KEY, correlation_id, {"mechanism": MECHANISM})


def ask_authenticate(correlation_id: int, identity: Identity) -> Frame:
    return _ask(AUTHENTICATE_KEY, correlation_id, {"auth_bytes": to_bytes(identity)})


def read_answer(key: int, frame: memoryview) -> Values:
    """Raises Malformed."""
    return decode_response_values(
        RequestHeader(key, _OUR_VERSION, 0), response_shape(_SCHEMAS[key], _OUR_VERSION), frame
    )


def to_bytes(identity: Identity) -> bytes:
    name = f"{identity.cluster_id}/{identity.node_id}/{format_uuid(identity.incarnation_id)}"
    return b"\0".join((b"", name.encode("utf-8"), identity.secret))


def from_bytes(shown: bytes) -> Identity | None:
    """The identity that a caller claims; None: the bytes are not an identity."""
    parts = shown.split(b"\0", 2)
    if len(parts) != 3:
        return None
    try:
        cluster_id, node_id, incarnation = parts[1].decode("utf-8").rsplit("/", 2)
        if not (node_id.isascii() and node_id.isdigit() and len(node_id) <= 10):
            return None
        incarnation_id = parse_uuid(incarnation)
    except ValueError:
        return None
    return Identity(cluster_id=cluster_id, node_id=int(node_id), incarnation_id=incarnation_id, secret=parts[2])


def _ask(key: int, correlation_id: int, values: dict[str, Any]) -> Frame:
    return encode_request_values(
        RequestHeader(key, _OUR_VERSION, correlation_id), request_shape(_SCHEMAS[key], _OUR_VERSION), values
    )


def _answer(fixed: RequestHeader, values: dict[str, Any]) -> Frame:
    return encode_values(fixed, response_shape(_SCHEMAS[fixed.api_key], fixed.version), values)
