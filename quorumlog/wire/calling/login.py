"""A client's login on one connection: SaslHandshake, then SaslAuthenticate until the mechanism's exchange is over.

It begins once the peer has answered ApiVersions, so nothing secret leaves before the peer has accepted this client's
certificate (with TLS 1.3 it judges that after the client's handshake). KIP-43, KIP-152, KIP-368.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from quorumlog.errors import ErrorCode
from quorumlog.rpc.caller_security import Login
from quorumlog.rpc.transport import Address, NotAuthenticated
from quorumlog.security.sasl.mechanism import LoginError
from quorumlog.wire.format.cursor import Malformed
from quorumlog.wire.format.header import RequestHeader
from quorumlog.wire.format.kio_schemas import request_shape, response_shape
from quorumlog.wire.format.schema import Values
from quorumlog.wire.protocol.codec import Frame, decode_response_values, encode_request_values
from quorumlog.wire.protocol.sasl import AUTHENTICATE_KEY, HANDSHAKE_KEY
from quorumlog.wire.protocol.versions import Versions

MAX_ROUNDS = 8  # of an exchange; those that are known here have two or three
_SCHEMAS = {HANDSHAKE_KEY: "sasl_handshake", AUTHENTICATE_KEY: "sasl_authenticate"}
_HANDSHAKE_VERSION = 1  # the first whose tokens have headers
_NEWEST_AUTHENTICATE = 2

Exchange = Callable[[Frame], Awaitable[memoryview]]


async def log_in(login: Login, address: Address, versions: Versions, exchange: Exchange) -> int:
    """How long the login holds, in ms; 0: as long as the connection.

    Raises NotAuthenticated, Malformed, CredentialsUnavailable, and what `exchange` raises.
    """
    version = _authenticate_version(address, versions)
    try:
        mechanism = await login.begin()
    except LoginError as error:
        raise NotAuthenticated(f"{login.who} cannot log in by {login.mechanism}: {error}: {login.cure}") from None
    await _agree(login, address, exchange)
    message: bytes | None = mechanism.first()
    for _ in range(MAX_ROUNDS):
        assert message is not None
        answer = await _ask(exchange, AUTHENTICATE_KEY, version, {"auth_bytes": message})
        if answer["error_code"] != ErrorCode.NONE:
            raise NotAuthenticated(_refusal(login, address, answer))
        try:
            message = mechanism.step(bytes(answer["auth_bytes"]))
        except LoginError as error:
            raise NotAuthenticated(f"the login at {address} by {login.mechanism} has failed: {error}") from None
        if message is None:
            return max(int(answer.get("session_lifetime", 0)), 0)
    raise Malformed(f"the exchange of {login.mechanism} takes more than {MAX_ROUNDS} rounds")


def _authenticate_version(address: Address, versions: Versions) -> int:
    _, newest = versions.get(AUTHENTICATE_KEY, (0, -1))
    if newest < 0 or versions.get(HANDSHAKE_KEY, (0, -1))[1] < _HANDSHAKE_VERSION:
        raise NotAuthenticated(
            f"{address} takes no login that is known here (SaslHandshake 1 and SaslAuthenticate): use a listener that "
            "does, or a broker of version 1.0 or later"
        )
    return min(newest, _NEWEST_AUTHENTICATE)


async def _agree(login: Login, address: Address, exchange: Exchange) -> None:
    answer = await _ask(exchange, HANDSHAKE_KEY, _HANDSHAKE_VERSION, {"mechanism": login.mechanism})
    code = answer["error_code"]
    if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(answer["mechanisms"]) or "none"
        raise NotAuthenticated(f"{address} offers {offered}, not {login.mechanism}: set sasl_mechanism to one of them")
    if code == ErrorCode.ILLEGAL_SASL_STATE:
        raise NotAuthenticated(
            f"{address} asks for no login: set security_protocol to PLAINTEXT or SSL, or use another listener"
        )
    if code != ErrorCode.NONE:
        raise NotAuthenticated(f"{address} refuses the SASL handshake with error {code}")


def _refusal(login: Login, address: Address, answer: Values) -> str:
    said = answer.get("error_message") or f"error {answer['error_code']}"
    return f"{address} refuses the login of {login.who} by {login.mechanism} ({said}): {login.cure}"


async def _ask(exchange: Exchange, key: int, version: int, values: dict[str, Any]) -> Values:
    header = RequestHeader(key, version, 0)
    frame = await exchange(encode_request_values(header, request_shape(_SCHEMAS[key], version), values))
    return decode_response_values(header, response_shape(_SCHEMAS[key], version), frame)
