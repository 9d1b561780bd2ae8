"""Every message of the schema: it survives encoding, has protoc's fields, and no bytes crash its decoder."""

from __future__ import annotations

import dataclasses
import typing

import pytest
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given, settings
from hypothesis import strategies as st
from message_strategies import Generated, generated_messages, values

from quorumlog.messages.decode_error import DecodeError
from quorumlog.messages.services import METHODS
from quorumlog.rpc.convert.services import CODECS
from quorumlog.rpc.pb import services_pb2
from tests.parts import few

MESSAGES = generated_messages()
each_message = pytest.mark.parametrize("message", MESSAGES, ids=[m.kind.__name__ for m in MESSAGES])


@each_message
@settings(max_examples=few(15), deadline=None)
@given(data=st.data())
def test_round_trip(message: Generated, data: st.DataObject) -> None:
    value = data.draw(values(message.kind, message.descriptor))
    assert message.decode(message.encode(value)) == value


@each_message
def test_fields_are_the_schemas(message: Generated) -> None:
    fields = dataclasses.fields(message.kind)
    assert [f.name for f in fields] == [f.name for f in message.descriptor.fields]
    hints = typing.get_type_hints(message.kind)
    for field in message.descriptor.fields:
        assert (typing.get_origin(hints[field.name]) is tuple) == is_repeated(field)


def is_repeated(field: FieldDescriptor) -> bool:
    return bool(field.is_repeated)


@each_message
@settings(max_examples=few(20), deadline=None)
@given(data=st.binary(max_size=60))
def test_any_bytes_are_a_message_or_a_decode_error(message: Generated, data: bytes) -> None:
    decode_or_refuse(message, data)


@each_message
@settings(max_examples=few(15), deadline=None)
@given(data=st.data())
def test_damaged_bytes_are_a_message_or_a_decode_error(message: Generated, data: st.DataObject) -> None:
    encoded = bytearray(message.encode(data.draw(values(message.kind, message.descriptor))))
    for _ in range(data.draw(st.integers(1, 3))):
        if encoded:
            encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    decode_or_refuse(message, bytes(encoded[: data.draw(st.integers(0, len(encoded)))]))


def decode_or_refuse(message: Generated, data: bytes) -> None:
    """A decoded value must also encode again, to bytes with the same meaning."""
    try:
        value = message.decode(data)
    except DecodeError:
        return
    again = message.decode(message.encode(value))
    assert again == value or "nan" in repr(value)


def test_the_table_of_methods_is_the_schemas() -> None:
    services = services_pb2.DESCRIPTOR.services_by_name.values()
    want = [(s.full_name, m.name, m.input_type.name, m.output_type.name) for s in services for m in s.methods]
    assert [(m.service, m.name, m.request.__name__, m.response.__name__) for m in METHODS] == want


def test_every_request_has_a_codec() -> None:
    assert list(CODECS) == list(dict.fromkeys(method.request for method in METHODS))
