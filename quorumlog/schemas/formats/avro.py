"""Avro by fastavro, with what keeps hostile bytes from ending the process.

fastavro's compiled reader calls itself for each level of a value, so bytes of a recursive schema could use up the stack
and end the process with a signal: such schemas are read by its Python code, which raises. Items of an array that take
no bytes make any number of items out of a few bytes: a schema with such an array is refused.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

from quorumlog.schemas.errors import BadData, BadSchema, BadValue, MissingPackage
from quorumlog.schemas.formats.avro_json import from_json, to_json
from quorumlog.schemas.formats.codec import said
from quorumlog.schemas.schema import Schema

try:
    import fastavro
    from fastavro import _read_py as slow  # the same functions, in Python
except ImportError as error:
    raise MissingPackage("fastavro") from error

Parsed = Any
_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_RECORDS = ("record", "error")
_KINDS = (*_RECORDS, "fixed", "enum", "array", "map")


class AvroCodec:
    """reader: the schema that the application knows; what was written is resolved to it, as Avro's rules have it."""

    def __init__(self, schema: Schema, referenced: Mapping[str, Schema] = {}, reader: AvroCodec | None = None) -> None:
        self._schema, named = _parsed(schema, referenced)
        shape = Shape(named)
        shape.look(self._schema)
        if shape.has_endless_array:
            raise BadSchema("an array whose items take no bytes: a few bytes would stand for any number of items")
        self._is_recursive: bool = shape.is_recursive or (reader is not None and reader._is_recursive)
        self._reader = None if reader is None else reader._schema
        self._bare: tuple[Parsed, Mapping[str, Any]] | None = None
        self._text = (schema, referenced)

    @property
    def name(self) -> str:
        is_named = isinstance(self._schema, dict) and "name" in self._schema
        return str(self._schema["name"]) if is_named else ""

    def encode(self, value: Any) -> bytes:
        try:
            fastavro.validate(value, self._schema, strict=False)  # the writer itself takes numbers that are too large
        except Exception as error:  # whatever the library raises
            raise BadValue(f"it does not fit the schema: {said(error)}") from error
        return _encoded(value, self._schema)

    def decode(self, data: bytes) -> Any:
        return _decoded(data, self._schema, self._reader, is_recursive=self._is_recursive)

    def text(self, data: bytes) -> str:
        plain, named = self._plain_and_named()
        value = _decoded(data, plain, None, is_recursive=self._is_recursive, named=True)
        try:
            return json.dumps(to_json(value, plain, named), ensure_ascii=False, allow_nan=False)
        except (ValueError, RecursionError) as error:  # NaN, which JSON does not have
            raise BadData(f"it cannot be shown as JSON: {said(error)}") from error

    def from_text(self, text: str) -> bytes:
        plain, named = self._plain_and_named()
        try:
            value = from_json(json.loads(text, parse_constant=_no_constant), plain, named)
        except (ValueError, RecursionError) as error:
            raise BadValue(f"it is not in Avro's JSON encoding of the schema: {said(error)}") from error
        return _encoded(value, plain)

    def _plain_and_named(self) -> tuple[Parsed, Mapping[str, Any]]:
        """Without logical types: what is stored is shown, exactly. Made when it is first asked for."""
        if self._bare is None:
            schema, referenced = self._text
            self._bare = _parsed(schema, referenced, plain=True)
        return self._bare


def _parsed(
    schema: Schema, referenced: Mapping[str, Schema], *, plain: bool = False
) -> tuple[Parsed, dict[str, dict[str, Any]]]:
    """And the types that have names."""
    named: dict[str, dict[str, Any]] = {}
    try:
        for one in referenced.values():
            fastavro.parse_schema(_document(one, plain), named)
        found = fastavro.parse_schema(_document(schema, plain), named)
        whole: dict[str, dict[str, Any]] = {}
        return fastavro.parse_schema(_whole(found, named, set()), whole), whole
    except Exception as error:  # whatever the library raises
        raise BadSchema(f"it is no Avro schema: {said(error)}") from error


def _whole(node: Parsed, named: Mapping[str, Any], defined: set[str]) -> Parsed:
    """With each type that has a name where it is first used, as the reader and the writer need it. named: all of them,
    those of other schemas, too."""
    if isinstance(node, list):
        return [_whole(one, named, defined) for one in node]
    if isinstance(node, str):
        return node if node in _PRIMITIVES or node in defined else _whole(named[node], named, defined)
    if "name" in node:
        defined.add(node["name"])
    found = {name: value for name, value in node.items() if not name.startswith("__")}
    for name in ("type", "items", "values"):
        if name in found and found[name] not in _KINDS:
            found[name] = _whole(found[name], named, defined)
    if "fields" in found:
        found["fields"] = [_whole_field(one, named, defined) for one in found["fields"]]
    return found


def _whole_field(field: Parsed, named: Mapping[str, Any], defined: set[str]) -> Parsed:
    return {**field, "type": _whole(field["type"], named, defined)}


def _document(schema: Schema, plain: bool) -> Any:
    text = schema.text.strip()
    document = text if text in _PRIMITIVES else json.loads(text)  # some registries tell a primitive without quotes
    return _without_logic(document) if plain else document


def _without_logic(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_logic(one) for one in node]
    if not isinstance(node, dict):
        return node
    found = {name: value for name, value in node.items() if name != "logicalType"}
    for name in ("type", "items", "values"):
        if name in found:
            found[name] = _without_logic(found[name])
    if isinstance(found.get("fields"), list):
        found["fields"] = [_without_logic(one) for one in found["fields"]]
    return found


class Shape:
    """What makes a schema dangerous to read. named: the types with names, by full name."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._inside: set[str] = set()
        self._widths: dict[str, int] = {}
        self.is_recursive = False
        self.has_endless_array = False

    def look(self, node: Parsed) -> int:
        """The least number of bytes of a value, up to 1."""
        if isinstance(node, list):
            for one in node:
                self.look(one)
            return 1
        if isinstance(node, str):
            return (0 if node == "null" else 1) if node in _PRIMITIVES else self._of_name(node)
        kind = node["type"]
        if kind in _RECORDS or kind in ("fixed", "enum"):
            self._named_here(node)
            return self._of_name(node["name"])
        if kind == "array":
            if self.look(node["items"]) == 0:
                self.has_endless_array = True
            return 1
        if kind == "map":
            self.look(node["values"])
            return 1
        return self.look(kind)

    def _named_here(self, node: Parsed) -> None:
        if node["name"] not in self._named:
            self._named = {**self._named, node["name"]: node}

    def _of_name(self, name: str) -> int:
        if name in self._inside:
            self.is_recursive = True
            return 1
        if name not in self._widths:
            self._inside.add(name)
            self._widths[name] = self._of_type(self._named[name])
            self._inside.remove(name)
        return self._widths[name]

    def _of_type(self, node: Parsed) -> int:
        if node["type"] == "fixed":
            return 1 if node["size"] else 0
        if node["type"] == "enum":
            return 1
        return max([self.look(one["type"]) for one in node["fields"]], default=0)


def _encoded(value: Any, schema: Parsed) -> bytes:
    out = io.BytesIO()
    try:
        fastavro.schemaless_writer(out, schema, value, strict_allow_default=True)
    except Exception as error:  # whatever the library raises
        raise BadValue(f"it does not fit the schema: {said(error)}") from error
    return out.getvalue()


def _decoded(data: bytes, schema: Parsed, reader: Parsed, *, is_recursive: bool, named: bool = False) -> Any:
    """named: what has a name, within unions, as pairs of that name and the value, so that it is not mistaken."""
    source = io.BytesIO(data)
    read: Any = slow.schemaless_reader if is_recursive else fastavro.schemaless_reader
    try:
        value = read(source, schema, reader, return_named_type=named)
    except Exception as error:  # whatever the library raises
        raise BadData(f"the bytes are not of the schema: {said(error)}") from error
    if source.tell() != len(data):
        raise BadData(f"{len(data) - source.tell()} bytes are left over behind the value")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
