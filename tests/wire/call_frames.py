"""One call in one version: its bytes without the frame's header, and Kafka's own bytes of the examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from quorumlog.wire.format.cursor import Cursor
from quorumlog.wire.format.frame_writer import LENGTH_BYTES
from quorumlog.wire.format.header import RequestHeader, read_fixed
from quorumlog.wire.protocol.apis import BY_KEY, Api
from quorumlog.wire.protocol.codec import WireRequest, decode_request, decode_response, encode_request, encode_response
from tests.wire.example import Example

GOLDEN = Path(__file__).parent / "golden"
REQUEST_HEADER = {False: 4 + 2 + 2 + 4 + 2 + 2, True: 4 + 2 + 2 + 4 + 2 + 2 + 1}  # with the client id "me"


class Frames(NamedTuple):
    api: Api
    version: int

    def read_request(self, body: bytes) -> WireRequest:
        flexible = self.api.request_shape(self.version).flexible
        header = self.api.key.to_bytes(2, "big") + self.version.to_bytes(2, "big") + b"\0\0\0\7\0\2me"
        cursor, by_schema = (Cursor(memoryview(header + b"\0" * flexible + body)) for _ in range(2))
        asked = decode_request(self.api, cursor, read_fixed(cursor))
        walked = decode_request(replace(self.api, fast=None), by_schema, read_fixed(by_schema))
        assert by_schema.left == 0  # a fast path leaves the cursor where it is
        assert asked.request == walked.request
        return asked

    def write_request(self, request: Any) -> bytes:
        frame = b"".join(encode_request(self.api, RequestHeader(self.api.key, self.version, 7, "me"), request))
        return frame[REQUEST_HEADER[self.api.request_shape(self.version).flexible] :]

    def write_response(self, request: Any, response: Any) -> bytes:
        frame = b"".join(encode_response(self._asked(request), response))
        return frame[LENGTH_BYTES + 4 + self.api.response_shape(self.version).flexible :]

    def read_response(self, request: Any, body: bytes) -> Any:
        header = b"\0\0\0\7" + b"\0" * self.api.response_shape(self.version).flexible
        return decode_response(self._asked(request), memoryview(header + body))

    def _asked(self, request: Any) -> WireRequest:
        return WireRequest(self.api, RequestHeader(self.api.key, self.version, 7, "me"), request)


def frames(example: Example, version: int) -> Frames:
    return Frames(BY_KEY[example.key], version)


def golden_bytes(file: str) -> dict[tuple[str, int], bytes]:
    """By Kafka's name of the message and its version; written by golden/GroupMessages.java."""
    rows = [line.split(" ") for line in (GOLDEN / file).read_text().splitlines()]
    return {(name, int(version)): bytes.fromhex(data) for name, version, data in rows}


def in_each_version(examples: Sequence[Example]) -> list[tuple[Example, int]]:
    return [(example, version) for example in examples for version in range(example.oldest, example.newest + 1)]


# --- what holds for each example in each version ---


def check_request(golden: Mapping[tuple[str, int], bytes], example: Example, version: int) -> None:
    """It reads as ours from Kafka's bytes, and ours are those."""
    body, wire = golden[f"{example.name}Request", version], frames(example, version)
    request = wire.read_request(body).request
    assert request == example.our_request(version)
    assert wire.write_request(request) == body


def check_response(golden: Mapping[tuple[str, int], bytes], example: Example, version: int) -> None:
    """As `check_request`; an old version may say less than ours, and then says it again."""
    body, wire = golden[f"{example.name}Response", version], frames(example, version)
    request, response = example.our_request(version), example.our_response(version)
    assert wire.write_response(request, response) == body
    found = wire.read_response(request, body)
    assert type(found) is type(response)
    assert wire.write_response(request, found) == body


def check_foreign_reader(kind: Any, example: Example, version: int) -> None:
    """kind: kafka-python's class of the response. It reads ours, and writes the same bytes again."""
    wire = frames(example, version)
    body = wire.write_response(example.our_request(version), example.our_response(version))
    header = b"\0\0\0\7" + b"\0" * wire.api.response_shape(version).flexible
    found = kind.decode(header + body, version=version, header=True)
    fields = {name: getattr(found, name) for name in found.to_dict(json=False)}
    assert kind(version=version, **fields).encode(version=version) == body
