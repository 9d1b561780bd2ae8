"""ApiVersions: which versions a listener speaks, the first thing that a client asks.

A version that nobody knows is answered in version 0 with UNSUPPORTED_VERSION and the list, so that the client can go
on (KIP-511). Between ourselves the answer also names the node's gRPC address, as a tag that others skip: the way by
which a client of ours that came to the lane finds what the lane does not carry.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache

from quorumlog.errors import ErrorCode
from quorumlog.rpc.transport import Address
from quorumlog.wire.apis import APIS, BY_KEY
from quorumlog.wire.codec import Frame, decode_response_values, encode_request_values, encode_values, read_whole
from quorumlog.wire.cursor import Cursor
from quorumlog.wire.entities import request_shape, response_shape
from quorumlog.wire.header import API_VERSIONS_KEY, RequestHeader, read_rest
from quorumlog.wire.malformed import Malformed
from quorumlog.wire.primitives import COMPACT, text
from quorumlog.wire.refused import REFUSED_VERSIONS
from quorumlog.wire.sasl import SASL_VERSIONS
from quorumlog.wire.schema import Shape, Step, Values

OLDEST, NEWEST = 0, 4
SOFTWARE_NAME = "quorumlog"
SOFTWARE_VERSION = "0.1.0"
GRPC_ADDRESS_TAG = 0x716C
ASKED_VERSION = 3  # by ourselves: the first with tags

Versions = Mapping[int, tuple[int, int]]  # by API key, both inclusive


def served_versions(serves: Collection[type] | None, internal: bool) -> Versions:
    """What a listener announces. serves: types of requests; None: all. An internal one also authenticates."""
    told = {
        api.key: (api.announced_from, api.newest)
        for api in APIS
        if api.announced_from is not None and (serves is None or api.method.request in serves)
    }
    told[API_VERSIONS_KEY] = (OLDEST, NEWEST)
    told.update(SASL_VERSIONS if internal else REFUSED_VERSIONS)
    return dict(sorted(told.items()))


def answer(cursor: Cursor, fixed: RequestHeader, versions: Versions, grpc: Address | None) -> Frame:
    """The answer to one ApiVersions request of any version. Raises Malformed."""
    if not OLDEST <= fixed.version <= NEWEST:
        header = RequestHeader(API_VERSIONS_KEY, OLDEST, fixed.correlation_id)
        return encode_values(header, _shape(OLDEST), _told(versions, ErrorCode.UNSUPPORTED_VERSION))
    shape = request_shape("api_versions", fixed.version)
    header = read_rest(cursor, fixed, shape.flexible)
    values = read_whole(cursor, shape)
    told = _told(versions, ErrorCode.NONE)
    if grpc is not None and values.get("client_software_name") == SOFTWARE_NAME:
        told["grpc_address"] = str(grpc)
    return encode_values(header, _shape(fixed.version), told)


def ask(correlation_id: int, client_id: str) -> Frame:
    header = RequestHeader(API_VERSIONS_KEY, ASKED_VERSION, correlation_id, client_id)
    values = {"client_software_name": SOFTWARE_NAME, "client_software_version": SOFTWARE_VERSION}
    return encode_request_values(header, request_shape("api_versions", ASKED_VERSION), values)


def read_answer(frame: memoryview) -> tuple[Versions, Address | None]:
    """What the peer speaks, and its gRPC address if it told one. Raises Malformed."""
    header = RequestHeader(API_VERSIONS_KEY, ASKED_VERSION, 0)
    values = decode_response_values(header, _shape(ASKED_VERSION), frame)
    if values["error_code"] != ErrorCode.NONE:
        raise Malformed(f"the peer refuses ApiVersions {ASKED_VERSION} with error {values['error_code']}")
    versions = {told["api_key"]: (told["min_version"], told["max_version"]) for told in values["api_keys"]}
    return versions, _address(values.get("grpc_address"))


def serves(versions: Versions, fixed: RequestHeader) -> bool:
    """Is a request of this API and version served, announced or not?"""
    api = BY_KEY.get(fixed.api_key)
    if api is None or not api.oldest <= fixed.version <= api.newest:
        return False
    return api.announced_from is None or fixed.api_key in versions


def _told(versions: Versions, code: ErrorCode) -> Values:
    keys = [{"api_key": key, "min_version": low, "max_version": high} for key, (low, high) in versions.items()]
    return {"error_code": code, "api_keys": keys}


@cache
def _shape(version: int) -> Shape:
    """Kafka's, with our tag."""
    shape = response_shape("api_versions", version)
    if shape.flexible:
        read, write = text(COMPACT, nullable=False)
        shape.tags[GRPC_ADDRESS_TAG] = Step("grpc_address", read, write, None, 1)
    return shape


def _address(told: str | None) -> Address | None:
    if told is None:
        return None
    host, _, port = told.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) <= 5):
        raise Malformed(f"the peer's gRPC address is {told!r}")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))
