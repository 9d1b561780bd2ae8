"""Bytes of Confluent's own serializers are read here, and ours there; both register alike, at one registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry import avro as their_avro
from confluent_kafka.schema_registry import json_schema as their_json
from confluent_kafka.schema_registry import protobuf as their_protobuf
from confluent_kafka.serialization import MessageField, SerializationContext
from http_registry import HttpRegistry, serving
from messages import Line, Order

from quorumlog.schemas import (
    AvroDeserializer,
    AvroSerializer,
    BadSchema,
    JsonDeserializer,
    JsonSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    SchemaDeserializer,
    SchemaRegistry,
)

FIELDS = [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}]
AVRO = json.dumps({"type": "record", "name": "shop.Order", "fields": FIELDS})
JSON = json.dumps({"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]})
VALUE = {"id": 7, "note": "ü"}
ORDER = Order(id=7, lines=[Line(article="bolt", parts=[Line(article="nut")])], customer={"name": "ada"})
CONTEXT = SerializationContext("orders", MessageField.VALUE)


@pytest.fixture
def http() -> Iterator[HttpRegistry]:
    with serving(HttpRegistry()) as made:
        yield made


@pytest.fixture
def registry(http: HttpRegistry) -> SchemaRegistry:
    return SchemaRegistry(http.url)


@pytest.fixture
def theirs(http: HttpRegistry) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": http.url})


def test_avro(registry: SchemaRegistry, theirs: SchemaRegistryClient, http: HttpRegistry) -> None:
    data = AvroSerializer(registry, AVRO).serialize("orders", [], VALUE)
    assert data is not None and their_avro.AvroDeserializer(theirs)(data, CONTEXT) == VALUE
    made = their_avro.AvroSerializer(theirs, AVRO)(VALUE, CONTEXT)
    assert made == data and len(http.schemas) == 1
    assert AvroDeserializer(registry).deserialize("orders", [], made) == VALUE


def test_json(registry: SchemaRegistry, theirs: SchemaRegistryClient, http: HttpRegistry) -> None:
    data = JsonSerializer(registry, JSON).serialize("orders", [], VALUE)
    assert data is not None and their_json.JSONDeserializer(None, schema_registry_client=theirs)(data, CONTEXT) == VALUE
    made = their_json.JSONSerializer(JSON, theirs)(VALUE, CONTEXT)
    assert made[:5] == data[:5] and len(http.schemas) == 1
    assert JsonDeserializer(registry).deserialize("orders", [], made) == VALUE


@pytest.mark.parametrize("message", [ORDER, Line(article="bolt")], ids=["second", "nested"])
def test_protobuf(registry: SchemaRegistry, theirs: SchemaRegistryClient, http: HttpRegistry, message: Any) -> None:
    data = ProtobufSerializer(registry, type(message)).serialize("orders", [], message)
    there = their_protobuf.ProtobufDeserializer(type(message), {"use.deprecated.format": False}, theirs)
    assert data is not None and there(data, CONTEXT) == message
    made = their_protobuf.ProtobufSerializer(type(message), theirs, {"use.deprecated.format": False})(message, CONTEXT)
    assert made == data and set(http.subjects) == {"orders-value", "shop/customer.proto"} and len(http.schemas) == 2
    assert ProtobufDeserializer(registry, message=type(message)).deserialize("orders", [], made) == message
    by_schema = SchemaDeserializer(registry).deserialize("orders", [], made)  # a class made of the schema
    assert by_schema.SerializeToString() == message.SerializeToString()


def test_a_schema_in_a_header(registry: SchemaRegistry, theirs: SchemaRegistryClient) -> None:
    headers: list[tuple[str, bytes | None]] = []
    context = SerializationContext("orders", MessageField.VALUE, headers)
    write = their_avro.AvroSerializer(theirs, AVRO, conf={"schema.id.serializer": header_schema_id_serializer})
    data = write(VALUE, context)
    assert headers[0][0] == "__value_schema_id" and data[0] != 0
    assert AvroDeserializer(registry).deserialize("orders", headers, data) == VALUE


def test_a_deserializer_of_one_kind_refuses_another(registry: SchemaRegistry) -> None:
    data = JsonSerializer(registry, JSON).serialize("orders", [], VALUE)
    assert data is not None
    with pytest.raises(BadSchema, match="schema 1: the bytes have a schema of JSON, and the deserializer is for AVRO"):
        AvroDeserializer(registry).deserialize("orders", [], data)
