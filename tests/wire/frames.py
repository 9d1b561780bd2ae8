"""Frames for the lane's fuzz test: of every API and version, intact or damaged in one named way."""

from __future__ import annotations

import dataclasses
import random
import struct
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple, get_args, get_origin

from quorumlog.records.format.record import Record
from quorumlog.records.rowwise.plain import encode_batch
from quorumlog.wire.format.frame_writer import LENGTH_BYTES, FrameWriter
from quorumlog.wire.format.header import API_VERSIONS_KEY, RequestHeader, write_request_header
from quorumlog.wire.format.kio_schemas import request_shape
from quorumlog.wire.format.schema import Values
from quorumlog.wire.protocol import sasl
from quorumlog.wire.protocol.apis import APIS
from tests.wire.damage import OF_BODIES, change_bytes
from tests.wire.places import Body

LOCAL = [  # APIs that a connection answers itself
    (API_VERSIONS_KEY, "api_versions", 0, 4),
    (sasl.HANDSHAKE_KEY, "sasl_handshake", *sasl.SASL_VERSIONS[sasl.HANDSHAKE_KEY]),
    (sasl.AUTHENTICATE_KEY, "sasl_authenticate", *sasl.SASL_VERSIONS[sasl.AUTHENTICATE_KEY]),
]
SCHEMAS = [(api.key, api.schema, api.oldest, api.newest) for api in APIS] + LOCAL
SPOKEN = [(key, schema, version) for key, schema, low, high in SCHEMAS for version in range(low, high + 1)]

Bodies = dict[tuple[int, int], list[Body]]  # by API and version

RIGHT = "right"
UNKNOWN_API, UNKNOWN_VERSION, HEADER = "unknown API", "unknown version", "damaged header"
WRONG_SIZE, STOPS = "wrong size of the frame", "stops in a frame"
KINDS = (RIGHT, UNKNOWN_API, UNKNOWN_VERSION, HEADER, WRONG_SIZE, STOPS, *OF_BODIES)
UNSERVED = (-1, 4, 7, 52, 76, 1000, 32767, -32768)  # API keys
CHOICES = (
    *OF_BODIES,
    *["number at an edge"] * 5,
    *["sealed records"] * 5,
)  # those that get furthest more often
RIGHT_PART, FRAME_PART = 0.25, 0.12  # parts of all frames; the rest is damaged after the header
NO_NAME = "x"  # of no topic that exists
RECORDS = [Record(number, 1_700_000_000_000, None, b"value", ()) for number in range(3)]
BATCH = encode_batch(RECORDS)


class Made(NamedTuple):
    """kind: one of KINDS. data: with its length before it."""

    kind: str
    data: bytes


def a_frame(rng: random.Random, bodies: Bodies, number: int) -> Made:
    """number: its correlation id, by which the handler recognises it."""
    key, schema, version = rng.choice(SPOKEN)
    body = rng.choice(bodies[key, version])
    flexible = request_shape(schema, version).flexible
    share = rng.random()
    if share < RIGHT_PART:
        return Made(RIGHT, _framed(key, version, number, flexible, body.data))
    if share < RIGHT_PART + FRAME_PART:
        return _bad_frame(rng, key, version, number, flexible, body.data)
    while True:
        kind = rng.choice(CHOICES)
        data = OF_BODIES[kind](rng, body)
        if data is not None:
            return Made(kind, _framed(key, version, number, flexible, data))


def _bad_frame(rng: random.Random, key: int, version: int, number: int, flexible: bool, body: bytes) -> Made:
    kind = rng.choice((UNKNOWN_API, UNKNOWN_VERSION, HEADER, WRONG_SIZE, STOPS))
    if kind == UNKNOWN_API:
        key = rng.choice(UNSERVED)
    elif kind == UNKNOWN_VERSION:
        version = rng.choice((-1, -32768, 32767, version + 20, 1000))
    data = _framed(key, version, number, flexible, body)
    if kind == WRONG_SIZE:
        size = len(data) - LENGTH_BYTES
        announced = rng.choice(
            (-(2**31), -1, 0, size - 1, size + 1, 2**31 - 1, 0x16030100)
        )  # the last is how TLS begins
        return Made(kind, struct.pack(">i", announced) + data[LENGTH_BYTES:])
    if kind == STOPS:
        return Made(kind, data[: rng.randrange(len(data))])
    if kind == HEADER:
        header = bytearray(data[LENGTH_BYTES : LENGTH_BYTES + 14])
        change_bytes(header, rng)
        rest = bytes(header) + data[LENGTH_BYTES + 14 :]
        return Made(kind, struct.pack(">i", len(rest)) + rest)
    return Made(kind, data)


def _framed(key: int, version: int, number: int, flexible: bool, body: bytes) -> bytes:
    writer = FrameWriter()
    write_request_header(writer, RequestHeader(key, version, number, "me"), flexible)
    writer.tail += body
    return b"".join(writer.frame())


def seeds() -> Bodies:
    """Intact bodies: one with each field at its default, one with two elements in every list and with all tags."""
    found: Bodies = {}
    for key, schema, version in SPOKEN:
        full = filled(_entity(schema, version))
        found[key, version] = [body_of(schema, version, {}), body_of(schema, version, full)]
    return found


def body_of(schema: str, version: int, values: Values) -> Body:
    shape, writer = request_shape(schema, version), FrameWriter()
    shape.write(writer, values)
    return Body(b"".join(writer.frame())[LENGTH_BYTES:], shape)


def filled(entity: Any) -> Values:
    """A value for every field of one of kio's classes."""
    return {field.name: _filled(field) for field in dataclasses.fields(entity)}


def _filled(field: dataclasses.Field[Any]) -> Any:
    kinds = list(_parts(field.type))
    (*_, inner) = [None, *(kind for kind in kinds if dataclasses.is_dataclass(kind))]
    one = _plain(field.metadata.get("kafka_type", "")) if inner is None else filled(inner)
    return [one, one] if any(get_origin(kind) is tuple for kind in kinds) else one


def _plain(kafka_type: str) -> Any:
    return {"string": NO_NAME, "bytes": b"\1\2", "records": BATCH, "uuid": bytes(range(16))}.get(kafka_type, 0)


def _parts(kind: Any) -> Iterator[Any]:
    yield kind
    for part in get_args(kind):
        yield from _parts(part)


def _entity(schema: str, version: int) -> Any:
    name = "".join(word.capitalize() for word in schema.split("_")) + "Request"
    return getattr(import_module(f"kio.schema.{schema}.v{version}.request"), name)
