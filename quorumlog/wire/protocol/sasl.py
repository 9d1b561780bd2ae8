"""The frames of Kafka's SASL exchange: a node proves itself by it on internal listeners of the lane, and a client logs
in by it at a listener with SASL.

SaslHandshake names the mechanism and begins an exchange. SaslAuthenticate requests carry the mechanism's messages; of
nodes there are two, of SCRAM-SHA-256 (`quorumlog.proof`). A caller that is refused reads the reason in the answer, and
the connection ends. After SaslHandshake 0 the messages are bare: a length and bytes, without headers.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.proof.peer import Peer, name_of, peer_of
from quorumlog.rpc import clear_secret
from quorumlog.security.node_auth import NodeAuth
from quorumlog.wire.format.cursor import Cursor
from quorumlog.wire.format.header import RequestHeader, read_rest
from quorumlog.wire.format.kio_schemas import request_shape, response_shape
from quorumlog.wire.format.schema import Values
from quorumlog.wire.protocol.codec import (
    Frame,
    decode_response_values,
    encode_request_values,
    encode_values,
    read_whole,
)

HANDSHAKE_KEY, AUTHENTICATE_KEY = 17, 36
SASL_VERSIONS = {HANDSHAKE_KEY: (0, 1), AUTHENTICATE_KEY: (0, 2)}
MECHANISM = "SCRAM-SHA-256"
EXTERNAL = "EXTERNAL"  # RFC 4422, appendix A: what TLS has shown is the proof; the message says who it is
_NODE = b"node="
_SCHEMAS = {HANDSHAKE_KEY: "sasl_handshake", AUTHENTICATE_KEY: "sasl_authenticate"}
_LENGTH = struct.Struct(">i")
_FIRST_WITH_LIFETIME = 1
_OUR_VERSION = 1  # of both APIs, in our own requests
_CODES = frozenset(map(int, ErrorCode))


def read_request(cursor: Cursor, fixed: RequestHeader) -> Values:
    """A request of either API, after the fixed part of its header. Raises Malformed."""
    shape = request_shape(_SCHEMAS[fixed.api_key], fixed.version)
    read_rest(cursor, fixed, shape.flexible)
    return read_whole(cursor, shape)


def external(own: Peer) -> bytes:
    """The message of EXTERNAL."""
    return _NODE + name_of(own).encode("utf-8")


def read_external(message: bytes) -> tuple[bool, Peer | None]:
    """Whether it is one of EXTERNAL, and the node that it names."""
    if not message.startswith(_NODE):
        return False, None
    return True, peer_of(message.removeprefix(_NODE).decode("utf-8", errors="replace"))


def mechanisms_of(auth: NodeAuth, clear: bool) -> list[str]:
    """That an internal listener takes. clear: the secret itself."""
    by_secret = [MECHANISM, clear_secret.MECHANISM] if clear else [MECHANISM]
    return [
        *([EXTERNAL] if auth.has_certificates else []),
        *([] if auth is NodeAuth.MTLS else by_secret),
    ]


def answer_handshake(
    fixed: RequestHeader, mechanism: str, internal: bool, clear: bool = False, auth: NodeAuth = NodeAuth.SECRET
) -> Frame:
    """On a client listener there is nothing to authenticate: ILLEGAL_SASL_STATE. clear: the secret itself is taken."""
    mechanisms = mechanisms_of(auth, clear)
    if not internal:
        code = ErrorCode.ILLEGAL_SASL_STATE
    else:
        code = ErrorCode.NONE if mechanism in mechanisms else ErrorCode.UNSUPPORTED_SASL_MECHANISM
    return _answer(fixed, {"error_code": code, "mechanisms": mechanisms if internal else []})


def answer_authenticate(fixed: RequestHeader, message: bytes) -> Frame:
    return _answer(fixed, {"auth_bytes": message})


def refuse(fixed: RequestHeader, refusal: ApiError) -> Frame:
    """The answer to SaslAuthenticate."""
    return _answer(fixed, {"error_code": refusal.code, "error_message": refusal.message})


def answer_client_handshake(fixed: RequestHeader, code: ErrorCode, mechanisms: Sequence[str]) -> Frame:
    return _answer(fixed, {"error_code": code, "mechanisms": mechanisms})


def answer_login(
    fixed: RequestHeader, code: ErrorCode, error_message: str | None, auth_bytes: bytes, lifetime_ms: int
) -> Frame:
    """To SaslAuthenticate. lifetime_ms: for how long the client is known; 0: there is no end (KIP-368)."""
    values: Values = {"error_code": code, "error_message": error_message, "auth_bytes": auth_bytes}
    if fixed.version >= _FIRST_WITH_LIFETIME:
        values["session_lifetime"] = lifetime_ms
    return _answer(fixed, values)


def bare(message: bytes) -> Frame:
    """A message after SaslHandshake 0."""
    return [_LENGTH.pack(len(message)) + message]


def ask_handshake(correlation_id: int, mechanism: str = MECHANISM) -> Frame:
    return _ask(HANDSHAKE_KEY, correlation_id, {"mechanism": mechanism})


def ask_authenticate(correlation_id: int, message: bytes) -> Frame:
    return _ask(AUTHENTICATE_KEY, correlation_id, {"auth_bytes": message})


def read_answer(key: int, frame: memoryview) -> Values:
    """Raises Malformed, or ApiError with the peer's refusal."""
    values = decode_response_values(
        RequestHeader(key, _OUR_VERSION, 0), response_shape(_SCHEMAS[key], _OUR_VERSION), frame
    )
    code = values["error_code"]
    if code != ErrorCode.NONE:
        known = code if code in _CODES else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        raise ApiError(ErrorCode(known), values.get("error_message") or "")
    return values


def _ask(key: int, correlation_id: int, values: dict[str, Any]) -> Frame:
    return encode_request_values(
        RequestHeader(key, _OUR_VERSION, correlation_id), request_shape(_SCHEMAS[key], _OUR_VERSION), values
    )


def _answer(fixed: RequestHeader, values: dict[str, Any]) -> Frame:
    return encode_values(fixed, response_shape(_SCHEMAS[fixed.api_key], fixed.version), values)
