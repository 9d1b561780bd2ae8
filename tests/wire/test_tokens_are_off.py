"""Delegation tokens are answered as Kafka does with tokens off: by version, by who asks, and by what is asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from lane import echo, serving

from quorumlog.errors import ErrorCode
from quorumlog.security.principal import ANONYMOUS, Principal
from quorumlog.wire.format.cursor import Cursor, Malformed, Unsupported
from quorumlog.wire.format.header import RequestHeader, read_fixed
from quorumlog.wire.format.kio_schemas import request_shape, response_shape
from quorumlog.wire.protocol.codec import decode_response_values, encode_request_values
from quorumlog.wire.protocol.delegation_tokens import TOKEN_VERSIONS, answer_token_request
from quorumlog.wire.protocol.versions import served_versions

ADA = Principal("User", "ada")
NAMES = {38: "create_delegation_token", 39: "renew_delegation_token", 40: "expire_delegation_token"}
NAMES |= {41: "describe_delegation_token"}
VERSIONS = [(key, version) for key, (low, high) in TOKEN_VERSIONS.items() for version in range(low, high + 1)]
ASKED: dict[str, Any] = {
    "owner_principal_type": "User", "owner_principal_name": "bob", "max_lifetime": -1, "hmac": b"h", "owners": None,
    "renewers": [{"principal_type": "User", "principal_name": "eve"}], "renew_period": 1, "expiry_time_period": 1,
}  # fmt: skip


def request(key: int, version: int, **more: Any) -> tuple[RequestHeader, bytes]:
    header, shape = RequestHeader(key, version, 7, "by hand"), request_shape(NAMES[key], version)
    values = {name: value for name, value in {**ASKED, **more}.items() if shape.has(name)}
    return header, b"".join(encode_request_values(header, shape, values))


def answered(key: int, version: int, who: Principal, **more: Any) -> dict[str, Any]:
    header, data = request(key, version, **more)
    cursor = Cursor(memoryview(data)[4:])
    frame = b"".join(answer_token_request(cursor, read_fixed(cursor), who))
    return decode_response_values(header, response_shape(NAMES[key], version), memoryview(frame)[4:])


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_tokens_are_off(key: int, version: int) -> None:
    said = answered(key, version, ADA)
    assert said["error_code"] == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert answered(key, version, ANONYMOUS)["error_code"] == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if key == 38:
        owner = ("bob", "ada") if version == 3 else ("ada", None)
        assert (said["principal_name"], said.get("token_requester_principal_name")) == owner
        times = [said[name] for name in ("issue_timestamp", "expiry_timestamp", "max_timestamp")]
        assert times == [-1, -1, -1] and said["token_id"] == ""
        nobody = answered(key, version, ADA, owner_principal_type="Group", owner_principal_name=None)
        assert (nobody["principal_type"], nobody["principal_name"]) == ADA
        other = answered(key, version, ADA, renewers=[{"principal_type": "Group", "principal_name": "x"}])
        assert other["error_code"] == ErrorCode.INVALID_PRINCIPAL_TYPE
    elif key == 41:
        assert said["tokens"] == []
    else:
        assert said["expiry_timestamp"] == -1


def test_what_is_damaged_or_older_is_no_request() -> None:
    for key, (low, high) in TOKEN_VERSIONS.items():
        for version in (low - 1, high + 1):
            with pytest.raises(Unsupported):
                answer_token_request(Cursor(memoryview(b"")), RequestHeader(key, version, 1), ADA)
        _, data = request(key, high)
        cursor = Cursor(memoryview(data)[4:-1])
        with pytest.raises(Malformed):
            answer_token_request(cursor, read_fixed(cursor), ADA)


def test_a_listener_of_clients_announces_and_answers_them_and_one_of_nodes_does_not() -> None:
    assert TOKEN_VERSIONS.items() <= served_versions((), authenticates=False).items()
    assert not TOKEN_VERSIONS.keys() & served_versions((), authenticates=True, internal=True).keys()

    async def scenario(internal: bool) -> bytes:
        async with serving(echo, internal=internal) as served:
            socket = await served.socket()
            socket.send(request(41, 3)[1])
            answer = b"" if internal else await socket.frame()
            if internal:
                assert await socket.ended() == b""
            socket.close()
        assert served.crashes == []
        return answer

    answer = asyncio.run(scenario(internal=False))
    said = decode_response_values(RequestHeader(41, 3, 7), response_shape(NAMES[41], 3), memoryview(answer))
    assert said["error_code"] == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert asyncio.run(scenario(internal=True)) == b""
