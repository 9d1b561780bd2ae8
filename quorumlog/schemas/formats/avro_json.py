"""Values in Avro's JSON encoding, there and back, with the branch of each union as it was named. Pure.

fastavro's own reader of this encoding forgets the names, and its writer then takes the first branch that fits; its
writer of this encoding fails on a record without fields and on a map of nulls (1.13).
Avro's specification describes the encoding under "JSON Encoding".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAMED = ("record", "error", "fixed", "enum")
BITS = {"int": 32, "long": 64}


def from_json(node: Any, schema: Any, named: Mapping[str, Any]) -> Any:
    """What fastavro's writer takes: a value of a union is the pair of its type's name and the value.

    node: as `json` reads it. schema: as `fastavro.parse_schema` gives it; named: its types, by full name.
    Raises ValueError.
    """
    if isinstance(schema, list):
        return _of_union(node, schema, named)
    if isinstance(schema, str):
        return from_json(node, named[schema], named) if schema in named else _primitive(node, schema)
    kind = schema["type"]
    if kind in ("record", "error"):
        return _record(node, schema, named)
    if kind == "fixed":
        data = _primitive(node, "bytes")
        if len(data) != schema["size"]:
            raise ValueError(f"{len(data)} bytes, and {schema['name']} has {schema['size']}")
        return data
    if kind == "enum":
        if node not in schema["symbols"]:
            raise ValueError(f"{str(node)[:80]!r} is no symbol of {schema['name']}: {', '.join(schema['symbols'])}")
        return node
    if kind == "array":
        return [from_json(one, schema["items"], named) for one in _as(node, list, "array")]
    if kind == "map":
        return {name: from_json(one, schema["values"], named) for name, one in _as(node, dict, "map").items()}
    return from_json(node, kind, named)


def to_json(value: Any, schema: Any, named: Mapping[str, Any]) -> Any:
    """What `json` writes. value: as fastavro's reader gives it with `return_named_type`. Raises ValueError."""
    if isinstance(schema, list):
        return _branch(value, schema, named)
    if isinstance(schema, str):
        if schema in named:
            return to_json(value, named[schema], named)
        return value.decode("iso-8859-1") if schema == "bytes" else value
    kind = schema["type"]
    if kind in ("record", "error"):
        return {one["name"]: to_json(value[one["name"]], one["type"], named) for one in schema["fields"]}
    if kind == "fixed":
        return value.decode("iso-8859-1")
    if kind == "array":
        return [to_json(one, schema["items"], named) for one in value]
    if kind == "map":
        return {name: to_json(one, schema["values"], named) for name, one in value.items()}
    return value if kind == "enum" else to_json(value, kind, named)


def _branch(value: Any, branches: list[Any], named: Mapping[str, Any]) -> Any:
    """Of int and long, as of float and double, the first one that holds the value: the bytes do not say more."""
    if value is None:
        return None
    wanted: tuple[str, ...] = ()
    match value:
        case (str(name), inner):
            wanted, value = (name,), inner
        case bool():
            wanted = ("boolean",)
        case int():
            wanted = ("int", "long") if -(2**31) <= value < 2**31 else ("long",)
        case float():
            wanted = ("float", "double")
        case str():
            wanted = ("string",)
        case bytes():
            wanted = ("bytes",)
        case list():
            wanted = ("array",)
        case dict():
            wanted = ("map",)
    for one in branches:
        if (name := name_of(one, named)) in wanted:
            return {name: to_json(value, one, named)}
    raise ValueError(f"no branch of the union is {' or '.join(wanted)}")


def name_of(schema: Any, named: Mapping[str, Any]) -> str:
    """As the JSON encoding names the branch of a union."""
    if isinstance(schema, str):
        return schema
    kind = schema["type"]
    return str(schema["name"]) if kind in NAMED else name_of(kind, named)


def _of_union(node: Any, branches: list[Any], named: Mapping[str, Any]) -> Any:
    names = [name_of(one, named) for one in branches]
    if node is None:
        if "null" not in names:
            raise ValueError(f"null, and the union is of {', '.join(names)}")
        return None
    if not isinstance(node, dict) or len(node) != 1:
        raise ValueError(f'a value of a union is written {{"TYPE": VALUE}}, with one of {", ".join(names)}')
    [(name, value)] = node.items()
    if name not in names:
        raise ValueError(f"{name!r} is none of the union's types {', '.join(names)}")
    return name, from_json(value, branches[names.index(name)], named)


def _record(node: Any, schema: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    given = _as(node, dict, f"record {schema['name']}")
    fields = {one["name"]: one for one in schema["fields"]}
    for name in given:
        if name not in fields:
            raise ValueError(f"record {schema['name']} has no field {name!r}")
    found = {}
    for name, field in fields.items():
        if name in given:
            found[name] = from_json(given[name], field["type"], named)
        elif "default" not in field:
            raise ValueError(f"field {name!r} of record {schema['name']} is missing, and has no default")
    return found


def _primitive(node: Any, kind: str) -> Any:
    match kind:
        case "null" if node is None:
            return None
        case "boolean" if isinstance(node, bool):
            return node
        case "string" if isinstance(node, str):
            return node
        case "bytes" if isinstance(node, str):
            return node.encode("iso-8859-1")  # UnicodeEncodeError is a ValueError
        case "int" | "long" if isinstance(node, int) and not isinstance(node, bool):
            if not -(2 ** (BITS[kind] - 1)) <= node < 2 ** (BITS[kind] - 1):
                raise ValueError(f"{str(node)[:80]} has more than the {BITS[kind]} bits of {kind}")
            return node
        case "float" | "double" if isinstance(node, int | float) and not isinstance(node, bool):
            return float(node)
    raise ValueError(f"{type(node).__name__} {str(node)[:80]!r}, and the schema says {kind}")


def _as(node: Any, kind: type, word: str) -> Any:
    if not isinstance(node, kind):
        raise ValueError(f"{type(node).__name__} {str(node)[:80]!r}, and the schema says {word}")
    return node
