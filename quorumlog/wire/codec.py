"""Whole frames from and to messages, for both ends of a connection. Everything is decoded or refused here.

Where an API has a short cut for plain messages, that is tried first; whatever it does not take goes the schema's way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from quorumlog.messages.buffer import Buffer
from quorumlog.wire.apis import Api
from quorumlog.wire.convert.refusal import REFUSALS
from quorumlog.wire.cursor import Cursor
from quorumlog.wire.header import (
    RequestHeader,
    read_response_header,
    read_rest,
    write_request_header,
    write_response_header,
)
from quorumlog.wire.malformed import Malformed
from quorumlog.wire.parts import Parts
from quorumlog.wire.plain.form import NOT_PLAIN
from quorumlog.wire.schema import Shape, Values

Frame = list[Buffer]


class Asked(NamedTuple):
    """A request as it came: what is needed to answer it."""

    api: Api
    header: RequestHeader
    request: Any


def decode_request(api: Api, cursor: Cursor, fixed: RequestHeader) -> Asked:
    """The rest of a request behind the fixed part of its header. Raises Malformed.

    Bytes behind it are passed over, as Kafka does: librdkafka 2.16 leaves three of them when it asks for all topics.
    """
    shape = api.request_shape(fixed.version)
    header = read_rest(cursor, fixed, shape.flexible)
    if api.plain is not None and fixed.version >= api.plain.oldest:
        try:
            return Asked(api, header, api.plain.read_request(cursor.data, cursor.position, fixed.version))
        except NOT_PLAIN:
            pass  # and only the request's way by the schema says what is wrong with it, if anything is
    values = shape.read(cursor)
    return Asked(api, header, api.read_request(values, fixed.version))


def read_whole(cursor: Cursor, shape: Shape) -> Values:
    """A message that has to end where its frame ends."""
    values = shape.read(cursor)
    if cursor.left:
        raise Malformed(f"{cursor.left} bytes behind {shape.name}")
    return values


def encode_response(asked: Asked, response: Any) -> Frame:
    api, version = asked.api, asked.header.version
    shape = api.response_shape(version)
    if api.plain is not None and version >= api.plain.oldest:
        try:
            parts = Parts()
            write_response_header(parts, asked.header, shape.flexible)
            api.plain.write_response(parts, response, version)
            return parts.frame()
        except NOT_PLAIN:
            pass
    if response.error_code and not shape.has("error_code") and type(asked.request) in REFUSALS:
        response = REFUSALS[type(asked.request)](asked.request, response.error_code, response.error_message)
    return encode_values(asked.header, shape, api.write_response(response, asked.request, version))


def encode_values(header: RequestHeader, shape: Shape, values: Values) -> Frame:
    parts = Parts()
    write_response_header(parts, header, shape.flexible)
    shape.write(parts, values)
    return parts.frame()


def encode_request(api: Api, header: RequestHeader, request: Any) -> Frame:
    shape = api.request_shape(header.version)
    if api.plain is not None and header.version >= api.plain.oldest:
        try:
            parts = Parts()
            write_request_header(parts, header, shape.flexible)
            api.plain.write_request(parts, request, header.version)
            return parts.frame()
        except NOT_PLAIN:
            pass
    return encode_request_values(header, shape, api.write_request(request, header.version))


def encode_request_values(header: RequestHeader, shape: Shape, values: Values) -> Frame:
    parts = Parts()
    write_request_header(parts, header, shape.flexible)
    shape.write(parts, values)
    return parts.frame()


def decode_response(asked: Asked, frame: memoryview) -> Any:
    """Raises Malformed; the correlation id has been looked at before."""
    api, version = asked.api, asked.header.version
    if api.plain is not None and version >= api.plain.oldest:
        try:
            cursor = Cursor(frame)
            read_response_header(cursor, api.key, flexible=True)
            return api.plain.read_response(frame, cursor.position, asked.request, version)
        except NOT_PLAIN:
            pass
    values = decode_response_values(asked.header, api.response_shape(version), frame)
    return api.read_response(values, asked.request, version)


def decode_response_values(header: RequestHeader, shape: Shape, frame: memoryview) -> Values:
    cursor = Cursor(frame)
    read_response_header(cursor, header.api_key, shape.flexible)
    return read_whole(cursor, shape)
