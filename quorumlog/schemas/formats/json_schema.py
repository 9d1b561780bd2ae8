"""JSON Schema by jsonschema. What a schema refers to is found among its references, and nowhere else.

jsonschema asks the network for a reference that it does not know unless it is given a registry of its own: a schema
could make a client ask any address.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from quorumlog.schemas.errors import BadData, BadSchema, BadValue, MissingPackage
from quorumlog.schemas.formats.codec import said
from quorumlog.schemas.schema import Schema

try:
    from jsonschema import validators
    from jsonschema.exceptions import best_match
    from referencing import Registry
    from referencing.jsonschema import DRAFT7, specification_with
except ImportError as error:
    raise MissingPackage("jsonschema") from error


class JsonCodec:
    """validate: whether values are held against the schema when they are encoded, and when they are decoded."""

    def __init__(
        self,
        schema: Schema,
        referenced: Mapping[str, Schema] = {},
        *,
        validate: bool = True,
    ) -> None:
        document = _document(schema)
        others: Any = Registry()
        for name, one in referenced.items():
            content = _document(one)
            is_dict = isinstance(content, dict)
            draft = (
                specification_with(content["$schema"], default=DRAFT7) if is_dict and "$schema" in content else DRAFT7
            )
            others = others.with_resource(name, draft.create_resource(content))
        try:
            kind = validators.validator_for(document, default=validators.Draft7Validator)
            kind.check_schema(document)
        except Exception as error:  # whatever the library raises, also for what is no schema at all
            raise BadSchema(f"it is no JSON Schema: {said(error)}") from error
        self._validator = kind(document, registry=others) if validate else None
        self._title = str(document.get("title", "")) if isinstance(document, dict) else ""

    @property
    def name(self) -> str:
        return self._title

    def encode(self, value: Any) -> bytes:
        try:
            data = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise BadValue(f"it cannot be written as JSON: {said(error)}") from error
        self._check(json.loads(data), BadValue)
        return data

    def decode(self, data: bytes) -> Any:
        value = _value(data, BadData)
        self._check(value, BadData)
        return value

    def text(self, data: bytes) -> str:
        """As it was written: no number loses a digit."""
        self.decode(data)
        return data.decode().replace("\r", " ").replace("\n", " ")  # between tokens: no string holds one

    def from_text(self, text: str) -> bytes:
        data = text.encode("utf-8", "surrogatepass")
        self._check(_value(data, BadValue), BadValue)
        return data

    def _check(self, value: Any, kind: type[BadData] | type[BadValue]) -> None:
        if self._validator is None:
            return
        try:
            found = best_match(self._validator.iter_errors(value))
        except Exception as error:  # a reference that is not there, a bad pattern, a circle
            raise BadSchema(f"the schema cannot be applied: {said(error)}") from error
        if found is not None:
            raise kind(f"{found.json_path} does not fit the schema: {said(found)}")


def _document(schema: Schema) -> Any:
    try:
        return json.loads(schema.text)
    except (ValueError, RecursionError) as error:
        raise BadSchema(f"it is no JSON Schema: {said(error)}") from error


def _value(data: bytes, kind: type[BadData] | type[BadValue]) -> Any:
    try:
        return json.loads(data.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise kind(f"it is no JSON: {said(error)}") from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
