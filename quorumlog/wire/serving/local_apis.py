"""The APIs that concern the connection itself: answered where they arrive, without a handler."""

from __future__ import annotations

from quorumlog.rpc.transport import Address
from quorumlog.security.node_auth import NodeAuth
from quorumlog.wire.format.cursor import Cursor, Unsupported
from quorumlog.wire.format.header import API_VERSIONS_KEY, RequestHeader
from quorumlog.wire.protocol import sasl, versions
from quorumlog.wire.protocol.codec import Frame
from quorumlog.wire.protocol.features import Features

LOCAL_APIS = (API_VERSIONS_KEY, sasl.HANDSHAKE_KEY, sasl.AUTHENTICATE_KEY)


def check_version(fixed: RequestHeader) -> None:
    """Raises Unsupported. ApiVersions is answered in every version."""
    if fixed.api_key == API_VERSIONS_KEY:
        return
    low, high = sasl.SASL_VERSIONS[fixed.api_key]
    if not low <= fixed.version <= high:
        raise Unsupported(f"api {fixed.api_key} version {fixed.version} is not served, only {low} to {high}")


def answer(
    cursor: Cursor,
    fixed: RequestHeader,
    answers: versions.Answers,
    grpc_address: Address | None,
    internal: bool,
    features: Features = versions.NO_FEATURES,
    clear: bool = False,
    auth: NodeAuth = NodeAuth.SECRET,
    heard: versions.Heard = versions.nobody_hears,
) -> Frame:
    """To any of LOCAL_APIS but SaslAuthenticate. cursor: behind `fixed`. answers: to ApiVersions. Raises Malformed."""
    if fixed.api_key == API_VERSIONS_KEY:
        return answers.answer(cursor, fixed, grpc_address, features, heard)
    assert fixed.api_key == sasl.HANDSHAKE_KEY, fixed.api_key
    return sasl.answer_handshake(fixed, sasl.read_request(cursor, fixed)["mechanism"], internal, clear, auth)
