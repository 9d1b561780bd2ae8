"""Avro, Protobuf and JSON Schema by a registry that speaks Confluent's API (extra `schema`).

`framing`, `asking`, `options`, `subjects` and `cache` are cores without I/O; `registry` carries what `asking` says;
`formats/` make codecs of schemas; `serializers` hang all of it into the clients.
"""

from __future__ import annotations

from quorumlog.schemas.errors import (
    BadData,
    BadFrame,
    BadSchema,
    BadValue,
    IncompatibleSchema,
    RegistryForbids,
    RegistryRefused,
    RegistryUnavailable,
    SchemaError,
    SchemaNotFound,
)
from quorumlog.schemas.registry import SchemaRegistry
from quorumlog.schemas.schema import Kind, Reference, Registered, Schema
from quorumlog.schemas.serializers import (
    AvroDeserializer,
    AvroSerializer,
    JsonDeserializer,
    JsonSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    SchemaDeserializer,
)

__all__ = [
    "AvroDeserializer",
    "AvroSerializer",
    "BadData",
    "BadFrame",
    "BadSchema",
    "BadValue",
    "IncompatibleSchema",
    "JsonDeserializer",
    "JsonSerializer",
    "Kind",
    "ProtobufDeserializer",
    "ProtobufSerializer",
    "Reference",
    "Registered",
    "RegistryForbids",
    "RegistryRefused",
    "RegistryUnavailable",
    "Schema",
    "SchemaDeserializer",
    "SchemaError",
    "SchemaNotFound",
    "SchemaRegistry",
]
