"""Whole frames from and to messages, for both ends of a connection. Everything is decoded or refused here.

If an API has a fast path for messages without rare fields, that is tried first; a message that it does not take is read
or written by the schema. The server's side can do that in slices: an answer about 100,000 partitions takes 0.4 s.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from quorumlog.messages.buffer import Buffer
from quorumlog.slices import Pace, Sliced, at_once
from quorumlog.wire.convert.refusal import REFUSALS
from quorumlog.wire.fast.form import NEEDS_SCHEMA
from quorumlog.wire.format.cursor import Cursor, Malformed
from quorumlog.wire.format.frame_writer import FrameWriter
from quorumlog.wire.format.header import (
    RequestHeader,
    read_response_header,
    read_rest,
    write_request_header,
    write_response_header,
)
from quorumlog.wire.format.schema import Shape, Values
from quorumlog.wire.protocol.apis import Api

Frame = list[Buffer]


class WireRequest(NamedTuple):
    """A request with its API and header: what is needed to write, or to read, its response."""

    api: Api
    header: RequestHeader
    request: Any


def decode_request(api: Api, cursor: Cursor, fixed: RequestHeader) -> WireRequest:
    """Read a request after the fixed part of its header. Raises Malformed.

    Bytes after the request are ignored, as Kafka does: librdkafka 2.16 sends three of them when it asks for all topics.
    """
    if api.fast is not None and fixed.version >= api.fast.oldest:
        start = cursor.position
        try:
            header = read_rest(cursor, fixed, api.request_shape(fixed.version).flexible)
            return WireRequest(api, header, api.fast.read_request(cursor.data, cursor.position, fixed.version))
        except NEEDS_SCHEMA:
            cursor.position = start  # the schema decides whether anything is wrong with it
    return at_once(decode_request_sliced(api, cursor, fixed))


def decode_request_sliced(api: Api, cursor: Cursor, fixed: RequestHeader) -> Sliced[WireRequest]:
    """`decode_request` by the schema. Raises Malformed."""
    shape, pace = api.request_shape(fixed.version), Pace()
    header = read_rest(cursor, fixed, shape.flexible)
    values = yield from shape.read_sliced(cursor, pace)
    return WireRequest(api, header, (yield from api.read_sliced(values, fixed.version, pace)))


def read_whole(cursor: Cursor, shape: Shape) -> Values:
    """Read a message that must end where its frame ends. Raises Malformed."""
    values = shape.read(cursor)
    if cursor.left:
        raise Malformed(f"{cursor.left} bytes after the end of {shape.name}")
    return values


def encode_response(wire_request: WireRequest, response: Any) -> Frame:
    return at_once(encode_response_sliced(wire_request, response))


def encode_response_sliced(wire_request: WireRequest, response: Any) -> Sliced[Frame]:
    """The fast path takes one slice, whatever the answer holds."""
    api, version = wire_request.api, wire_request.header.version
    shape = api.response_shape(version)
    if api.fast is not None and version >= api.fast.oldest:
        try:
            writer = FrameWriter()
            write_response_header(writer, wire_request.header, shape.flexible)
            api.fast.write_response(writer, response, version)
            return writer.frame()
        except NEEDS_SCHEMA:
            pass
    if response.error_code and not shape.has("error_code") and type(wire_request.request) in REFUSALS:
        response = REFUSALS[type(wire_request.request)](
            wire_request.request, response.error_code, response.error_message
        )
    writer = FrameWriter()
    write_response_header(writer, wire_request.header, shape.flexible)
    yield from shape.write_sliced(writer, api.write_response(response, wire_request.request, version), Pace())
    return writer.frame()


def encode_values(header: RequestHeader, shape: Shape, values: Values) -> Frame:
    writer = FrameWriter()
    write_response_header(writer, header, shape.flexible)
    shape.write(writer, values)
    return writer.frame()


def encode_request(api: Api, header: RequestHeader, request: Any) -> Frame:
    shape = api.request_shape(header.version)
    if api.fast is not None and header.version >= api.fast.oldest:
        try:
            writer = FrameWriter()
            write_request_header(writer, header, shape.flexible)
            api.fast.write_request(writer, request, header.version)
            return writer.frame()
        except NEEDS_SCHEMA:
            pass
    return encode_request_values(header, shape, api.write_request(request, header.version))


def encode_request_values(header: RequestHeader, shape: Shape, values: Values) -> Frame:
    writer = FrameWriter()
    write_request_header(writer, header, shape.flexible)
    shape.write(writer, values)
    return writer.frame()


def decode_response(wire_request: WireRequest, frame: memoryview) -> Any:
    """Raises Malformed. The caller has checked the correlation id."""
    api, version = wire_request.api, wire_request.header.version
    if api.fast is not None and version >= api.fast.oldest:
        try:
            cursor = Cursor(frame)
            read_response_header(cursor, api.key, flexible=True)
            return api.fast.read_response(frame, cursor.position, wire_request.request, version)
        except NEEDS_SCHEMA:
            pass
    values = decode_response_values(wire_request.header, api.response_shape(version), frame)
    return api.read_response(values, wire_request.request, version)


def decode_response_values(header: RequestHeader, shape: Shape, frame: memoryview) -> Values:
    cursor = Cursor(frame)
    read_response_header(cursor, header.api_key, shape.flexible)
    return read_whole(cursor, shape)
