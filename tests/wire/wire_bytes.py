"""Requests and responses as bytes, made by two foreign encoders: kio's writer, and aiokafka's structs."""

from __future__ import annotations

import io
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

from hypothesis import strategies as st
from kio.serial import entity_reader, entity_writer

from quorumlog.wire.format.schema import _element, _is_array

RANGES = {"int8": 7, "int16": 15, "int32": 31, "int64": 63, "timedelta_i32": 31, "timedelta_i64": 40}
KNOWN_CODES = (0, -1, 3, 6, 42, 100)


def entity_of(schema: str, version: int, side: str) -> Any:
    name = "".join(word.capitalize() for word in schema.split("_")) + side.capitalize()
    return getattr(import_module(f"kio.schema.{schema}.v{version}.{side}"), name)


def kio_bytes(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def through_kio(kind: Any, data: bytes) -> bytes:
    """What kio writes after it has read `data`, which it must read to the end."""
    entity, size = entity_reader(kind)(data, 0)
    assert size == len(data)
    return kio_bytes(entity)


def values_of(kind: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Dicts of any message of this schema, in the form of quorumlog.wire.format.schema."""
    return st.fixed_dictionaries({field.name: _field(field) for field in fields(kind)})


def _field(field: Any) -> st.SearchStrategy[Any]:
    element, nullable = _element(field)
    tagged = "tag" in field.metadata
    one = values_of(element) if is_dataclass(element) else _primitive(field.metadata["kafka_type"])
    if field.metadata.get("kafka_type") == "datetime_i64" and not nullable:
        one = st.integers(0, 2**41)  # kio reads no -1 there
    whole = st.lists(one, max_size=3) if _is_array(field) else one
    if nullable and not tagged and field.metadata.get("kafka_type") not in ("uuid", "datetime_i64"):
        return st.none() | whole
    return whole


def _primitive(kind: str) -> st.SearchStrategy[Any]:
    if kind in RANGES:
        edge: int = 2 ** RANGES[kind]
        low = 0 if kind.startswith("timedelta") else -edge
        return st.integers(low, edge - 1)
    simple: dict[str, st.SearchStrategy[Any]] = {
        "bool": st.booleans(),
        "uint16": st.integers(0, 2**16 - 1),
        "error_code": st.sampled_from(KNOWN_CODES),
        "datetime_i64": st.just(-1) | st.integers(0, 2**41),
        "float64": st.floats(allow_nan=False),
        "uuid": st.binary(min_size=16, max_size=16),
        "string": st.text(max_size=8),
        "bytes": st.binary(max_size=8),
        "records": st.binary(max_size=80).map(memoryview),
    }
    return simple[kind]
