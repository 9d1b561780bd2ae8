"""A schema as a registry knows it. An id stands for one schema for ever; a version counts the schemas of a subject."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    AVRO = "AVRO"
    PROTOBUF = "PROTOBUF"
    JSON = "JSON"


@dataclass(frozen=True, slots=True)
class Reference:
    """name: how the schema names it: a type's full name (Avro), a file (Protobuf), or a URL (JSON)."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """text: JSON; of Protobuf a .proto file, or its descriptor in base64."""

    text: str
    kind: Kind = Kind.AVRO
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """version: of the subject."""

    id: int
    subject: str
    version: int
    schema: Schema
