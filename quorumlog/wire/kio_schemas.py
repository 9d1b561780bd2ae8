"""Kafka's schemas from kio with our tags, each loaded when its version is first used, since most versions never are."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from quorumlog.wire.own_tags import OWN_FIELDS, OWN_TAG
from quorumlog.wire.schema import Shape, shape_of


@cache
def request_shape(schema: str, version: int) -> Shape:
    """schema: kio's name of the API, e.g. `list_offsets`."""
    return _load(schema, version, "request")


@cache
def response_shape(schema: str, version: int) -> Shape:
    return _load(schema, version, "response")


def _load(schema: str, version: int, side: str) -> Shape:
    name = "".join(word.capitalize() for word in schema.split("_")) + side.capitalize()
    module = import_module(f"kio.schema.{schema}.v{version}.{side}")
    for entity, step in OWN_FIELDS.items():
        if hasattr(module, entity) and (shape := shape_of(getattr(module, entity))).flexible:
            shape.tags[OWN_TAG] = step
    return shape_of(getattr(module, name))
