"""Values of the three formats: there and back, as bytes and as JSON; damaged bytes; schemas that would do harm."""

from __future__ import annotations

import json
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from messages import CUSTOMER_TEXT, ORDER_TEXT, Line, Order

from quorumlog.schemas.errors import BadData, BadSchema, BadValue
from quorumlog.schemas.formats.avro import AvroCodec
from quorumlog.schemas.formats.codec import Codec
from quorumlog.schemas.formats.json_schema import JsonCodec
from quorumlog.schemas.formats.protobuf import ProtobufCodec, schema_text
from quorumlog.schemas.schema import Kind, Schema

REFERENCED = {"shop/customer.proto": Schema(CUSTOMER_TEXT, Kind.PROTOBUF)}

# --- Avro ---

TYPES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("null", st.none()),
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1)),
    ("double", st.floats(allow_nan=False, allow_infinity=False)),
    ("float", st.floats(width=32, allow_nan=False, allow_infinity=False)),
    ("string", st.text(max_size=8)),
    ("bytes", st.binary(max_size=8)),
    ({"type": "fixed", "name": "a.F", "size": 3}, st.binary(min_size=3, max_size=3)),
    ({"type": "enum", "name": "a.E", "symbols": ["A", "B"]}, st.sampled_from(["A", "B"])),
    ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
     st.decimals(-9_999_999, 9_999_999, places=2)),
    ({"type": "string", "logicalType": "uuid"}, st.uuids()),
    ({"type": "int", "logicalType": "date"}, st.dates()),
    ({"type": "long", "logicalType": "timestamp-micros"},
     st.integers(0, 2**54).map(lambda us: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us))),
]  # fmt: skip


@st.composite
def avro(draw: st.DrawFn) -> tuple[Any, Any]:
    """A record with fields of drawn types, and a value of it. Unions name their branch."""
    fields, value = [], {}
    for number, place in enumerate(draw(st.lists(st.integers(0, len(TYPES) - 1), unique=True, max_size=6))):
        kind, values = TYPES[place]
        match draw(st.sampled_from(["plain", "array", "map", "optional"])):
            case "array":
                values = st.lists(values, max_size=3)
                kind = {"type": "array", "items": kind} if kind != "null" else {"type": "array", "items": "int"}
                values = values if kind["items"] != "int" else st.lists(st.integers(0, 9), max_size=3)
            case "map":
                kind, values = {"type": "map", "values": kind}, st.dictionaries(st.text(max_size=4), values, max_size=3)
            case "optional" if kind != "null":
                kind, values = ["null", kind], st.none() | values
        fields.append({"name": f"f{number}", "type": kind})
        value[f"f{number}"] = draw(values)
    return {"type": "record", "name": "a.R", "fields": fields}, value


@given(avro())
def test_avro_there_and_back(drawn: tuple[Any, Any]) -> None:
    schema, value = drawn
    codec = AvroCodec(Schema(json.dumps(schema)))
    data = codec.encode(value)
    assert codec.decode(data) == value
    text = codec.text(data)
    assert "\n" not in text and codec.from_text(text) == data


@given(avro(), st.data())
def test_damaged_avro_is_a_value_or_an_error(drawn: tuple[Any, Any], data: st.DataObject) -> None:
    schema, value = drawn
    codec = AvroCodec(Schema(json.dumps(schema)))
    whole = bytearray(codec.encode(value))
    for place in data.draw(st.lists(st.integers(0, max(0, len(whole) - 1)), max_size=3)) if whole else ():
        whole[place] = data.draw(st.integers(0, 255))
    damaged = bytes(whole[: data.draw(st.integers(0, len(whole)))]) + data.draw(st.binary(max_size=3))
    for read in (codec.decode, codec.text):
        try:
            read(damaged)
        except BadData:
            pass


UNION = {
    "type": "record", "name": "a.U", "fields": [{"name": "u", "type": [
        "null", "string", "int", "long",
        {"type": "record", "name": "X", "fields": [{"name": "n", "type": "int"}]},
        {"type": "record", "name": "Y", "fields": [{"name": "n", "type": "int"}]},
        {"type": "enum", "name": "E", "symbols": ["A"]}, {"type": "map", "values": "int"},
    ]}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"),
    [('{"u": null}', None), ('{"u": {"string": "A"}}', "A"), ('{"u": {"a.Y": {"n": 1}}}', {"n": 1}),
     ('{"u": {"a.E": "A"}}', "A"), ('{"u": {"map": {"n": 1}}}', {"n": 1})],
)  # fmt: skip
def test_the_branch_of_a_union_survives_its_json(text: str, value: Any) -> None:
    codec = AvroCodec(Schema(json.dumps(UNION)))
    data = codec.from_text(text)
    assert codec.decode(data) == {"u": value} and codec.text(data) == text


def test_a_text_names_the_long_of_a_union() -> None:
    codec = AvroCodec(Schema(json.dumps(UNION)))
    assert codec.from_text('{"u": {"long": 1}}') == b"\x06\x02" and codec.from_text('{"u": {"int": 1}}') == b"\x04\x02"


@pytest.mark.parametrize(
    ("text", "why"),
    [('{"u": 1}', "a value of a union is written"), ('{"u": {"b": 1}}', "none of the union's types"), ("{}", "missing"),
     ('{"u": null, "v": 1}', "no field 'v'"), ('{"u": {"int": 1e3}}', "the schema says int"), ("[", "JSONDecodeError"),
     ('{"u": {"int": 4294967296}}', "32 bits"), ('{"u": {"int": NaN}}', "not JSON"), ("[" * 100_000, "Recursion")],
)  # fmt: skip
def test_a_text_that_does_not_fit_says_why(text: str, why: str) -> None:
    with pytest.raises(BadValue, match=why):
        AvroCodec(Schema(json.dumps(UNION))).from_text(text)


def test_a_reader_schema_takes_what_an_older_one_wrote() -> None:
    old = Schema('{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}')
    new = Schema(
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"},'
        ' {"name": "b", "type": "string", "default": "none"}]}'
    )
    other = Schema('{"type": "record", "name": "R", "fields": [{"name": "c", "type": "int"}]}')
    data = AvroCodec(old).encode({"a": 5})
    assert AvroCodec(old, {}, AvroCodec(new)).decode(data) == {"a": 5, "b": "none"}
    with pytest.raises(BadData, match="SchemaResolutionError"):
        AvroCodec(old, {}, AvroCodec(other)).decode(data)


LIST = Schema('{"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}')


def test_bytes_that_nest_without_end_are_an_error_and_not_the_end_of_the_process() -> None:
    """fastavro's compiled reader ends the process with SIGSEGV at 100,000 levels."""
    for codec in (AvroCodec(LIST), AvroCodec(Schema('["null", "L"]'), {"L": LIST})):
        for read in (codec.decode, codec.text):
            with pytest.raises(BadData, match="recursion"):
                read(b"\2" * 1_000_000)
    assert AvroCodec(LIST).decode(b"\2\2\0") == {"next": {"next": {"next": None}}}


@pytest.mark.parametrize(
    "items", ['"null"', '{"type": "record", "name": "N", "fields": []}', '{"type": "fixed", "name": "Z", "size": 0}']
)
def test_an_array_of_items_without_bytes_is_refused(items: str) -> None:
    with pytest.raises(BadSchema, match="items take no bytes"):
        AvroCodec(Schema(f'{{"type": "map", "values": {{"type": "array", "items": {items}}}}}'))


@pytest.mark.parametrize("text", ["", "{", '{"type": "record"}', '"unknown"', "[" * 100_000, '{"type": "array"}'])
def test_what_is_no_avro_schema(text: str) -> None:
    with pytest.raises(BadSchema, match="no Avro schema"):
        AvroCodec(Schema(text))


@pytest.mark.parametrize(
    ("schema", "value"),
    [('"int"', 2**31), ('"int"', "1"), ('{"type": "fixed", "name": "F", "size": 2}', b"abc"),
     ('{"type": "record", "name": "R", "fields": []}', {"more": 1}),
     ('{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}', {})],
)  # fmt: skip
def test_an_avro_value_that_does_not_fit(schema: str, value: Any) -> None:
    with pytest.raises(BadValue, match="does not fit the schema"):
        AvroCodec(Schema(schema)).encode(value)


def test_logical_types_are_values_of_python_and_their_json_is_what_is_stored() -> None:
    fields = [{"name": f"f{n}", "type": kind} for n, (kind, _) in enumerate(TYPES) if isinstance(kind, dict)]
    codec = AvroCodec(Schema(json.dumps({"type": "record", "name": "R", "fields": fields[2:]})))
    values = (Decimal("1.50"), UUID(int=1), date(1970, 1, 3), datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    value = dict(zip((one["name"] for one in fields[2:]), values, strict=True))
    data = codec.encode(value)
    assert codec.decode(data) == value
    assert list(json.loads(codec.text(data)).values()) == ["\0\x96", str(UUID(int=1)), 2, 1_000_000]


# --- Protobuf ---

LINES: st.SearchStrategy[Any] = st.recursive(
    st.builds(dict, article=st.text(max_size=5), price=st.floats(allow_nan=False)),
    lambda inner: st.builds(dict, article=st.text(max_size=5), parts=st.lists(inner, max_size=2)),
    max_leaves=5,
)
ORDERS = st.builds(
    Order, id=st.integers(-(2**63), 2**63 - 1), lines=st.lists(LINES, max_size=3),
    customer=st.none() | st.builds(dict, name=st.text(max_size=5)),
)  # fmt: skip
BY_TEXT = ProtobufCodec(Schema(ORDER_TEXT, Kind.PROTOBUF), REFERENCED)
OF_CLASS = ProtobufCodec(
    Schema(schema_text(Order.DESCRIPTOR.file), Kind.PROTOBUF),
    {"shop/customer.proto": Schema(schema_text(Order.DESCRIPTOR.file.dependencies[0]), Kind.PROTOBUF)},
    Order,
)


@given(ORDERS)
def test_protobuf_there_and_back(order: Any) -> None:
    data = OF_CLASS.encode(order)
    assert data.startswith(b"\2\2") and OF_CLASS.decode(data) == order
    by_text = BY_TEXT.decode(data)  # of a class that was made of the schema
    assert by_text.SerializeToString() == order.SerializeToString()
    assert OF_CLASS.decode(OF_CLASS.from_text(BY_TEXT.text(data))) == order


@given(st.binary(max_size=40))
def test_any_bytes_are_a_message_or_an_error(data: bytes) -> None:
    for codec in (BY_TEXT, OF_CLASS):
        for read in (codec.decode, codec.text):
            try:
                read(data)
            except BadData:
                pass


def test_the_message_is_found_by_its_place() -> None:
    line = Line(article="bolt", price=0.5)
    assert OF_CLASS.encode(Order(id=1)) == b"\2\2" + Order(id=1).SerializeToString()
    data = OF_CLASS.encode(line)
    assert data.startswith(b"\4\2\0") and BY_TEXT.text(data) == '{"article": "bolt", "price": 0.5}'
    with pytest.raises(BadData, match=r"it is a shop.Order.Line, and shop.Order is wanted"):
        OF_CLASS.decode(data)
    named = ProtobufCodec(Schema(ORDER_TEXT, Kind.PROTOBUF), REFERENCED, name="shop.Order")
    assert named.from_text('{"id": "5"}') == b"\2\2\x08\5" and named.name == "shop.Order"
    assert BY_TEXT.name == "shop.Other"


def test_protobuf_that_nests_without_end_is_an_error() -> None:
    data = b""
    for _ in range(200):
        data = b"\x1a" + _length(len(data)) + data
    with pytest.raises(BadData, match=r"no shop.Order.Line"):
        BY_TEXT.decode(b"\4\2\0" + data)


def _length(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


@pytest.mark.parametrize(
    ("text", "why"),
    [("message", "no Protobuf schema"), ('syntax = "proto3";', "no message"),
     ('syntax = "proto3"; import "../../etc/passwd"; message A {}', "etc/passwd"),
     ('syntax = "proto3"; import "/etc/passwd"; message A {}', "etc/passwd"),
     ('syntax = "proto3"; message A { B b = 1; }', "not defined")],
)  # fmt: skip
def test_what_is_no_protobuf_schema(text: str, why: str) -> None:
    with pytest.raises(BadSchema, match=why) as raised:
        ProtobufCodec(Schema(text, Kind.PROTOBUF))
    assert "/tmp" not in str(raised.value)


@pytest.mark.parametrize("name", ["../x.proto", "/x.proto", "a/../../x.proto", "-I.proto", ".", "a//b", ".set/../a"])
def test_a_reference_writes_no_file_elsewhere(name: str) -> None:
    with pytest.raises(BadSchema, match=r"no name of a .proto file"):
        ProtobufCodec(Schema(ORDER_TEXT, Kind.PROTOBUF), {name: Schema(CUSTOMER_TEXT, Kind.PROTOBUF)})


def test_a_reference_is_never_run_as_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mark = tmp_path / "ran"
    text = f"open({str(mark)!r}, 'w')"
    (tmp_path / "grpc_tools.py").write_text(text)
    ProtobufCodec(Schema(ORDER_TEXT, Kind.PROTOBUF), {**REFERENCED, "grpc_tools.py": Schema(text, Kind.PROTOBUF)})
    assert not mark.exists()


# --- JSON ---

SCHEMA = Schema(
    '{"title": "Order", "type": "object", "required": ["id"],'
    ' "properties": {"id": {"type": "integer"}, "customer": {"$ref": "customer.json"}}}',
    Kind.JSON,
)
CUSTOMERS = {"customer.json": Schema('{"type": "object", "required": ["name"]}', Kind.JSON)}
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.integers(), JSON_VALUES)
def test_json_there_and_back(number: int, more: Any) -> None:
    codec = JsonCodec(SCHEMA, CUSTOMERS)
    value = {"id": number, "more": more}
    data = _encoded(codec, value)
    if data is None:
        return
    assert codec.decode(data) == value
    assert codec.from_text(codec.text(data)) == data


def _encoded(codec: Codec, value: Any) -> bytes | None:
    """None: for a lone surrogate, which no UTF-8 has."""
    try:
        return codec.encode(value)
    except BadValue:
        assert any(0xD800 <= ord(sign) < 0xE000 for sign in json.dumps(value, ensure_ascii=False))
        return None


@given(st.binary(max_size=30))
def test_any_bytes_are_json_or_an_error(data: bytes) -> None:
    try:
        JsonCodec(Schema("true", Kind.JSON)).decode(data)
    except BadData:
        return
    json.loads(data)


def test_text_keeps_each_digit() -> None:
    data = b'{"id": 1,\n "price": 1.10000000000000000001e400}'
    assert JsonCodec(SCHEMA, CUSTOMERS).text(data) == '{"id": 1,  "price": 1.10000000000000000001e400}'


@pytest.mark.parametrize(
    ("value", "why"),
    [({}, r"\$ does not fit the schema: .*'id' is a required property"), ({"id": float("nan")}, "written as JSON"),
     ({"id": 1, "customer": {}}, r"\$.customer does not fit"), ({"id": {1}}, "written as JSON")],
)  # fmt: skip
def test_a_json_value_that_does_not_fit(value: Any, why: str) -> None:
    with pytest.raises(BadValue, match=why):
        JsonCodec(SCHEMA, CUSTOMERS).encode(value)


def test_no_schema_makes_a_client_ask_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    sys.addaudithook(lambda event, given: asked.append(given) if event == "socket.connect" else None)
    for schema in ("http://127.0.0.1:9/x", "file:///etc/passwd", "https://json-schema.org/draft-07/other"):
        with pytest.raises(BadSchema, match="cannot be applied"):
            JsonCodec(Schema(json.dumps({"$ref": schema}), Kind.JSON)).encode(1)
    assert asked == []


@pytest.mark.parametrize("text", ["", "7", '{"type": 7}', '{"$ref": "#"}', "[" * 100_000, '{"pattern": "("}'])
def test_what_is_no_json_schema(text: str) -> None:
    with pytest.raises(BadSchema):
        JsonCodec(Schema(text, Kind.JSON)).encode("x")
