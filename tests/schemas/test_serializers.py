"""Which schema a record gets, and what that costs; serializers alone, without a client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from http_registry import HttpRegistry, serving
from messages import CUSTOMER_TEXT, ORDER_TEXT, Order

from quorumlog.client.errors import ConfigError
from quorumlog.schemas import (
    AvroDeserializer,
    AvroSerializer,
    BadSchema,
    BadValue,
    IncompatibleSchema,
    JsonSerializer,
    Kind,
    ProtobufSerializer,
    Reference,
    Schema,
    SchemaDeserializer,
    SchemaError,
    SchemaNotFound,
    SchemaRegistry,
)


def record(*fields: str, name: str = "shop.Order") -> str:
    return json.dumps({"type": "record", "name": name, "fields": [{"name": one, "type": "long"} for one in fields]})


OLD, NEW = record("id"), record("id", "added")


@pytest.fixture
def http() -> Iterator[HttpRegistry]:
    with serving(HttpRegistry()) as made:
        yield made


@pytest.fixture
def registry(http: HttpRegistry) -> SchemaRegistry:
    return SchemaRegistry(http.url)


def test_a_thousand_records_cost_one_request(http: HttpRegistry, registry: SchemaRegistry) -> None:
    write, read = AvroSerializer(registry, OLD), AvroDeserializer(registry)
    assert not write.is_prepared("orders", [], {"id": 1})
    for number in range(1_000):
        data = write.serialize("orders", [], {"id": number})
        assert data is not None and read.deserialize("orders", [], data) == {"id": number}
    assert http.asked == ["POST /subjects/orders-value/versions", "GET /schemas/ids/1"]
    assert write.is_prepared("orders", [], {"id": 1}) and read.is_prepared("orders", [], data)


@pytest.mark.parametrize(
    ("strategy", "is_key", "want"),
    [("TopicNameStrategy", False, "orders-value"), ("TopicNameStrategy", True, "orders-key"),
     ("io.confluent.kafka.serializers.subject.RecordNameStrategy", False, "shop.Order"),
     ("TopicRecordNameStrategy", True, "orders-shop.Order"),
     (lambda *given: "/".join(given), True, "orders/key/shop.Order")],
)  # fmt: skip
def test_the_subject_is_named_by_the_strategy(
    http: HttpRegistry, registry: SchemaRegistry, strategy: Any, is_key: bool, want: str
) -> None:
    AvroSerializer(registry, OLD, is_key=is_key, subject_name_strategy=strategy).serialize("orders", [], {"id": 1})
    assert list(http.subjects) == [want]


def test_a_strategy_needs_the_name_of_a_record(registry: SchemaRegistry) -> None:
    with pytest.raises(SchemaError, match="named after the record"):
        AvroSerializer(registry, '"long"', subject_name_strategy="RecordNameStrategy").serialize("t", [], 1)
    with pytest.raises(ConfigError, match="is none of TopicNameStrategy"):
        AvroSerializer(registry, OLD, subject_name_strategy="TopicName")


def test_without_registering_an_unknown_schema_is_an_error(http: HttpRegistry, registry: SchemaRegistry) -> None:
    write = AvroSerializer(registry, OLD, auto_register_schemas=False)
    with pytest.raises(SchemaNotFound, match="40401: Subject 'orders-value' not found"):
        write.serialize("orders", [], {"id": 1})
    SchemaRegistry(http.url).register("orders-value", Schema(OLD))
    again = AvroSerializer(SchemaRegistry(http.url), OLD, auto_register_schemas=False)
    assert again.serialize("orders", [], {"id": 1}) == b"\0\0\0\0\1\2"
    assert not any(one.endswith("versions") for one in http.asked[:1])


def test_the_latest_version_is_used_whatever_the_application_has(http: HttpRegistry, registry: SchemaRegistry) -> None:
    registry.register("orders-value", Schema(OLD))
    registry.register("orders-value", Schema(NEW))
    write = AvroSerializer(registry, use_latest_version=True)
    assert write.serialize("orders", [], {"id": 1, "added": 2}) == b"\0\0\0\0\2\2\4"
    assert write.is_prepared("orders", [], {}) and not write.is_prepared("others", [], {})


def test_an_id_names_the_schema(http: HttpRegistry, registry: SchemaRegistry) -> None:
    registry.register("elsewhere", Schema(OLD))
    write = AvroSerializer(registry, use_schema_id=1)
    assert write.serialize("orders", [], {"id": 1}) == b"\0\0\0\0\1\2" and list(http.subjects) == ["elsewhere"]
    with pytest.raises(BadSchema, match="a schema of AVRO, and the serializer is for JSON"):
        JsonSerializer(registry, use_schema_id=1).serialize("orders", [], {})


def test_a_schema_that_does_not_fit_the_last_one_says_so(http: HttpRegistry, registry: SchemaRegistry) -> None:
    http.compatible = lambda old, new: False
    AvroSerializer(registry, OLD).serialize("orders", [], {"id": 1})
    with pytest.raises(IncompatibleSchema, match="READER_FIELD_MISSING_DEFAULT_VALUE: field 'added'"):
        AvroSerializer(registry, NEW).serialize("orders", [], {"id": 1, "added": 1})


@pytest.mark.parametrize("how", [{}, {"use_latest_version": True, "use_schema_id": 1}])
def test_what_names_no_schema_or_two(registry: SchemaRegistry, how: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="schema"):
        AvroSerializer(registry, **how)


def test_null_stays_null_and_a_function_converts(registry: SchemaRegistry) -> None:
    write = AvroSerializer(registry, OLD, convert=lambda number: {"id": number})
    assert write.serialize("orders", [], None) is None
    data = write.serialize("orders", [], 5)
    assert data is not None
    assert AvroDeserializer(registry, convert=lambda found: found["id"]).deserialize("orders", [], data) == 5
    with pytest.raises(BadValue, match="cannot be converted: TypeError"):
        AvroSerializer(registry, OLD, convert=lambda number: number + 1).serialize("orders", [], "a")


def test_references_of_avro_json_and_protobuf(http: HttpRegistry, registry: SchemaRegistry) -> None:
    registry.register("customer", Schema(record("n", name="shop.Customer")))
    whole = json.dumps({"type": "record", "name": "O", "fields": [{"name": "c", "type": "shop.Customer"}]})
    write = AvroSerializer(registry, whole, references=[Reference("shop.Customer", "customer", 1)])
    data = write.serialize("orders", [], {"c": {"n": 1}})
    assert data is not None and SchemaDeserializer(registry).deserialize("orders", [], data) == {"c": {"n": 1}}
    registry.register("c.json", Schema('{"type": "string"}', Kind.JSON))
    as_json = JsonSerializer(
        registry, '{"properties": {"c": {"$ref": "c.json"}}}', references=[Reference("c.json", "c.json", 1)]
    )
    as_json.serialize("j", [], {"c": "x"})
    with pytest.raises(BadValue, match=r"\$.c does not fit"):
        as_json.serialize("j", [], {"c": 1})
    registry.register("p", Schema(CUSTOMER_TEXT, Kind.PROTOBUF))
    of_text = ProtobufSerializer(
        registry, schema=ORDER_TEXT, references=[Reference("shop/customer.proto", "p", 1)], message_name="shop.Order"
    )
    line = of_text.encode_text("orders-p", '{"id": 5, "customer": {"name": "ada"}}')
    assert SchemaDeserializer(SchemaRegistry(http.url)).deserialize("", [], line).customer.name == "ada"


def test_a_class_registers_what_its_file_imports_once(http: HttpRegistry, registry: SchemaRegistry) -> None:
    write = ProtobufSerializer(registry, Order)
    assert not write.is_prepared("orders", [], Order())
    for _ in range(3):
        write.serialize("orders", [], Order(id=1))
    assert write.is_prepared("orders", [], Order()) and len(http.asked) == 4
    assert http.schemas[1]["references"] == [
        {"name": "shop/customer.proto", "subject": "shop/customer.proto", "version": 1}
    ]


def test_bytes_that_no_serializer_wrote_ask_nobody(http: HttpRegistry, registry: SchemaRegistry) -> None:
    read = SchemaDeserializer(registry)
    assert read.is_prepared("t", [], b"text")
    with pytest.raises(SchemaError, match="first byte is 116"):
        read.deserialize("t", [], b"text")
    assert http.asked == []


def test_each_subject_gets_the_schema(http: HttpRegistry, registry: SchemaRegistry) -> None:
    write = AvroSerializer(registry, OLD)
    for topic in ("a", "b", "a"):
        assert write.serialize(topic, [], {"id": 1}) == b"\0\0\0\0\1\2" and write.schema_id(topic) == 1
    assert http.asked == ["POST /subjects/a-value/versions", "POST /subjects/b-value/versions"]
