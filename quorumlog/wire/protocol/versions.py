"""ApiVersions: which APIs and versions a listener serves; the first request of every client.

An unknown version of ApiVersions itself is answered in version 0 with UNSUPPORTED_VERSION and the list, so that the
client can go on (KIP-511). To quorumlog's own clients the answer also names the node's gRPC address, in a tag that
others skip (`format/kio_schemas.py`): there they find the APIs that the lane does not carry.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping

from quorumlog.errors import ErrorCode
from quorumlog.rpc.transport import Address
from quorumlog.wire.format.cursor import Cursor, Malformed
from quorumlog.wire.format.frame_writer import LENGTH_BYTES
from quorumlog.wire.format.header import API_VERSIONS_KEY, RequestHeader, read_rest
from quorumlog.wire.format.kio_schemas import request_shape, response_shape
from quorumlog.wire.format.schema import Shape
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

_CORRELATION = struct.Struct(">i")  # right behind the length, in every version
_AFTER_CORRELATION = LENGTH_BYTES + _CORRELATION.size

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


Heard = Callable[[str | None, str | None], None]


def nobody_hears(_name: str | None, _version: str | None) -> None:
    """Where nothing is counted."""


class Answers:
    """A listener's answers to ApiVersions, the first request of each connection: encoded once, until something else is
    announced. versions: what it serves."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._announced: tuple[Address | None, Features] = (None, NO_FEATURES)
        self._encoded: dict[tuple[int, bool, ErrorCode], bytes] = {}

    def answer(
        self,
        cursor: Cursor,
        fixed: RequestHeader,
        grpc: Address | None,
        features: Features = NO_FEATURES,
        heard: Heard = nobody_hears,
    ) -> Frame:
        """To a request of any version. grpc: named to our own clients. heard: the name and version of the client's
        software, where it says them. Raises Malformed."""
        if (grpc, features) != self._announced:
            self._announced = grpc, features
            self._encoded.clear()
        if OLDEST <= fixed.version <= NEWEST:
            shape = request_shape("api_versions", fixed.version)
            read_rest(cursor, fixed, shape.flexible)
            says = read_whole(cursor, shape)
            if (name := says.get("client_software_name")) is not None:
                heard(name, says.get("client_software_version"))
            ours = name == SOFTWARE_NAME
            which = (fixed.version, ours, ErrorCode.NONE)
        else:
            which = (OLDEST, False, ErrorCode.UNSUPPORTED_VERSION)
        if which not in self._encoded:
            self._encoded[which] = self._encode(*which)
        encoded = self._encoded[which]
        return [encoded[:LENGTH_BYTES] + _CORRELATION.pack(fixed.correlation_id) + encoded[_AFTER_CORRELATION:]]

    def _encode(self, version: int, ours: bool, code: ErrorCode) -> bytes:
        grpc, features = self._announced
        values = {
            "error_code": code,
            "api_keys": [
                {"api_key": key, "min_version": low, "max_version": high} for key, (low, high) in self._versions.items()
            ],
        }
        if code is ErrorCode.NONE:
            values.update(announced(features, version))
        if ours and grpc is not None:
            values["grpc_address"] = str(grpc)
        return b"".join(encode_values(RequestHeader(API_VERSIONS_KEY, version, 0), _shape(version), values))


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


def _shape(version: int) -> Shape:
    return response_shape("api_versions", version)


def _address(named: str | None) -> Address | None:
    if named is None:
        return None
    host, _, port = named.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) <= 5):
        raise Malformed(f"the peer names {named!r} as its gRPC address; host:port was expected")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))
