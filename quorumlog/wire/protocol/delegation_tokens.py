"""The four APIs of delegation tokens (KIP-48), which are not built: each is answered as Kafka does with tokens off.

A client that has not shown who it is is told DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (Kafka's KafkaApis asks that first),
and everybody else DELEGATION_TOKEN_AUTH_DISABLED. They are announced, as in Kafka, so that its tools print their own
message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorumlog.errors import ErrorCode
from quorumlog.security.principal import ANONYMOUS, USER, Principal
from quorumlog.wire.format.cursor import Cursor, Unsupported
from quorumlog.wire.format.header import RequestHeader, read_rest
from quorumlog.wire.format.kio_schemas import request_shape, response_shape
from quorumlog.wire.format.schema import Values
from quorumlog.wire.protocol.codec import Frame, encode_values, read_whole

CREATE, RENEW, EXPIRE, DESCRIBE = 38, 39, 40, 41
_SCHEMAS = {
    CREATE: "create_delegation_token",
    RENEW: "renew_delegation_token",
    EXPIRE: "expire_delegation_token",
    DESCRIBE: "describe_delegation_token",
}
TOKEN_VERSIONS: Mapping[int, tuple[int, int]] = {CREATE: (1, 3), RENEW: (1, 2), EXPIRE: (1, 2), DESCRIBE: (1, 3)}
TOKEN_KEYS: dict[str, int] = {name: key for key, name in _SCHEMAS.items()}
_NO_TIME = -1


def answer_token_request(cursor: Cursor, fixed: RequestHeader, who: Principal) -> Frame:
    """cursor: behind `fixed`. who: has sent it. Raises Malformed, Unsupported."""
    low, high = TOKEN_VERSIONS[fixed.api_key]
    if not low <= fixed.version <= high:
        raise Unsupported(f"api {fixed.api_key} version {fixed.version} is not served, only {low} to {high}")
    name = _SCHEMAS[fixed.api_key]
    shape = request_shape(name, fixed.version)
    header = read_rest(cursor, fixed, shape.flexible)
    asked = read_whole(cursor, shape)
    said: dict[str, Any] = {"error_code": _code(asked, who)}
    if fixed.api_key == CREATE:
        named = asked.get("owner_principal_name")
        owner = Principal(asked.get("owner_principal_type") or "", named) if named else who
        said |= {"principal_type": owner.type, "principal_name": owner.name}
        said |= {"token_requester_principal_type": who.type, "token_requester_principal_name": who.name}
        said |= dict.fromkeys(("issue_timestamp", "expiry_timestamp", "max_timestamp"), _NO_TIME)
    elif fixed.api_key != DESCRIBE:
        said["expiry_timestamp"] = _NO_TIME
    return encode_values(header, response_shape(name, fixed.version), said)


def _code(asked: Values, who: Principal) -> ErrorCode:
    if who == ANONYMOUS:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if any(one["principal_type"] != USER for one in asked.get("renewers") or ()):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
