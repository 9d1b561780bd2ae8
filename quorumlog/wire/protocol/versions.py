"""ApiVersions: which APIs and versions a listener serves; the first request of every client.

An unknown version of ApiVersions itself is answered in version 0 with UNSUPPORTED_VERSION and the list, so that the
client can go on (KIP-511). To quorumlog's own clients the answer also names the node's gRPC address, in a tag that
others skip (`format/kio_schemas.py`): there they find the APIs that the lane does not carry.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from quorumlog.errors import ErrorCode
from quorumlog.rpc.transport import Address
from quorumlog.wire.format.cursor import Cursor, Malformed
from quorumlog.wire.format.header import API_VERSIONS_KEY, RequestHeader, read_rest
from quorumlog.wire.format.kio_schemas import request_shape, response_shape
from quorumlog.wire.format.schema import Shape, Values
from quorumlog.wire.protocol.apis import APIS, BY_KEY
from quorumlog.wire.protocol.codec import (
    Frame,
    decode_response_values,
    encode_request_values,
    encode_values,
    read_whole,
)
from quorumlog.wire.protocol.delegation_tokens import TOKEN_VERSIONS
from quorumlog.wire.protocol.features import SOFTWARE_NAME, SOFTWARE_VERSION, Features, announced
from quorumlog.wire.protocol.sasl import HANDSHAKE_KEY, SASL_VERSIONS

OLDEST, NEWEST = 0, 4
OUR_VERSION = 3  # of our own requests: the first with tags

NO_FEATURES = Features()
Versions = Mapping[int, tuple[int, int]]  # API key -> oldest and newest version, both inclusive


def served_versions(serves: Collection[type] | None, authenticates: bool, internal: bool = False) -> Versions:
    """What a listener announces. serves: types of requests; None: all. authenticates: nodes, or clients by SASL."""
    announced = {api.key: api.announced for api in APIS if serves is None or api.method.request in serves}
    announced[API_VERSIONS_KEY] = (OLDEST, NEWEST)
    if authenticates:
        announced.update(SASL_VERSIONS)
    if not internal:
        announced.update(TOKEN_VERSIONS)
    return dict(sorted(announced.items()))


def answer(
    cursor: Cursor, fixed: RequestHeader, versions: Versions, grpc: Address | None, features: Features = NO_FEATURES
) -> Frame:
    """The answer to an ApiVersions request of any version. grpc: named to our own clients. Raises Malformed."""
    if not OLDEST <= fixed.version <= NEWEST:
        header = RequestHeader(API_VERSIONS_KEY, OLDEST, fixed.correlation_id)
        return encode_values(header, _shape(OLDEST), _response_values(versions, ErrorCode.UNSUPPORTED_VERSION))
    shape = request_shape("api_versions", fixed.version)
    header = read_rest(cursor, fixed, shape.flexible)
    values = read_whole(cursor, shape)
    response = {**_response_values(versions, ErrorCode.NONE), **announced(features, fixed.version)}
    if grpc is not None and values.get("client_software_name") == SOFTWARE_NAME:
        response["grpc_address"] = str(grpc)
    return encode_values(header, _shape(fixed.version), response)


def refusal(fixed: RequestHeader, code: ErrorCode) -> Frame | None:
    """The answer to a request that was not read, by its header alone: its code, and nothing else. None: this API says
    no code for the whole, or has no such version."""
    api = BY_KEY.get(fixed.api_key)
    if fixed.api_key == API_VERSIONS_KEY and OLDEST <= fixed.version <= NEWEST:
        shape = _shape(fixed.version)
    elif fixed.api_key == HANDSHAKE_KEY and fixed.version in range(SASL_VERSIONS[HANDSHAKE_KEY][1] + 1):
        shape = response_shape("sasl_handshake", fixed.version)
    elif api is not None and api.oldest <= fixed.version <= api.newest:
        shape = api.response_shape(fixed.version)
    else:
        return None
    return encode_values(fixed, shape, {"error_code": code}) if shape.has("error_code") else None


def ask(correlation_id: int, client_id: str) -> Frame:
    header = RequestHeader(API_VERSIONS_KEY, OUR_VERSION, correlation_id, client_id)
    values = {"client_software_name": SOFTWARE_NAME, "client_software_version": SOFTWARE_VERSION}
    return encode_request_values(header, request_shape("api_versions", OUR_VERSION), values)


def read_answer(frame: memoryview) -> tuple[Versions, Address | None]:
    """The versions that the peer serves, and its gRPC address if it named one. Raises Malformed."""
    header = RequestHeader(API_VERSIONS_KEY, OUR_VERSION, 0)
    values = decode_response_values(header, _shape(OUR_VERSION), frame)
    if values["error_code"] != ErrorCode.NONE:
        raise Malformed(f"the peer refuses ApiVersions {OUR_VERSION} with error {values['error_code']}")
    versions = {api["api_key"]: (api["min_version"], api["max_version"]) for api in values["api_keys"]}
    return versions, _address(values.get("grpc_address"))


def serves(versions: Versions, fixed: RequestHeader) -> bool:
    """A request of this API and version is served, whether or not the API is announced."""
    api = BY_KEY.get(fixed.api_key)
    if api is None or not api.oldest <= fixed.version <= api.newest:
        return False
    return fixed.api_key in versions


def _response_values(versions: Versions, code: ErrorCode) -> Values:
    keys = [{"api_key": key, "min_version": low, "max_version": high} for key, (low, high) in versions.items()]
    return {"error_code": code, "api_keys": keys}


def _shape(version: int) -> Shape:
    return response_shape("api_versions", version)


def _address(named: str | None) -> Address | None:
    if named is None:
        return None
    host, _, port = named.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) <= 5):
        raise Malformed(f"the peer names {named!r} as its gRPC address; host:port was expected")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))
