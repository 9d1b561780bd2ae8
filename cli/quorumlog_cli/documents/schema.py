"""JSON Schema (2020-12) of a typed dictionary, so that a document's fields are written down once.

`Annotated[int, "bytes"]` describes a field. What has no form of ours says so with a reason: `Opaque` for a value,
`has_more` for a dictionary with fields beside those that are named. There is no other way to leave a form out.
"""

from __future__ import annotations

from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"
PLAIN = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}
_MORE: dict[Any, str] = {}  # typed dictionaries with fields that are not named, and why

T = TypeVar("T")


class Opaque(str):
    """Marks a value whose form another one decides; the text says which."""


class NoForm(TypeError):
    """A type in a typed dictionary that says nothing about the document."""


def has_more(why: str) -> Any:
    """Of a typed dictionary whose further fields are not named here."""

    def mark(kind: T) -> T:
        _MORE[kind] = why
        return kind

    return mark


def schema_of(kind: Any, *, closed: bool = False) -> dict[str, Any]:
    """closed: refuse fields that are not named, as our tests do; users get schemas to which fields may be added.

    Raises NoForm.
    """
    kinds: dict[str, Any] = {}
    found = _of(kind, kinds, closed)
    return {"$schema": DIALECT, **found, **({"$defs": dict(sorted(kinds.items()))} if kinds else {})}


def _of(kind: Any, kinds: dict[str, Any], closed: bool) -> dict[str, Any]:
    if kind in PLAIN:
        return {"type": PLAIN[kind]}
    if is_typeddict(kind):
        return _reference(kind, kinds, closed)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _described(parts[0], parts[1:], kinds, closed)
    if origin in (Union, UnionType):
        return _one_of(parts, kinds, closed)
    if origin is Literal:
        return {"enum": list(parts)}
    if origin is list:
        return {"type": "array", "items": _of(parts[0], kinds, closed)}
    if origin is tuple:
        return _row(parts, kinds, closed)
    if origin is dict and parts[0] is str:
        return {"type": "object", "additionalProperties": _of(parts[1], kinds, closed)}
    raise NoForm(f"{kind!r} has no JSON Schema here; Opaque says why a value has none")


def _described(kind: Any, notes: tuple[Any, ...], kinds: dict[str, Any], closed: bool) -> dict[str, Any]:
    (note,) = notes
    return {"description": str(note)} if isinstance(note, Opaque) else {**_of(kind, kinds, closed), "description": note}


def _one_of(parts: tuple[Any, ...], kinds: dict[str, Any], closed: bool) -> dict[str, Any]:
    """Of plain types the short form, such as ["integer", "null"]."""
    if all(part in PLAIN for part in parts):
        return {"type": [PLAIN[part] for part in parts]}
    return {"anyOf": [_of(part, kinds, closed) for part in parts]}


def _row(parts: tuple[Any, ...], kinds: dict[str, Any], closed: bool) -> dict[str, Any]:
    """A list of a fixed length, each place with its own type."""
    count = len(parts)
    return {"type": "array", "prefixItems": [_of(part, kinds, closed) for part in parts], "minItems": count,
            "maxItems": count}  # fmt: skip


def _reference(kind: Any, kinds: dict[str, Any], closed: bool) -> dict[str, Any]:
    name = kind.__name__
    if name not in kinds:
        kinds[name] = {}  # a kind may hold itself
        kinds[name] = _object(kind, kinds, closed)
    return {"$ref": f"#/$defs/{name}"}


def _object(kind: Any, kinds: dict[str, Any], closed: bool) -> dict[str, Any]:
    fields = get_type_hints(kind, include_extras=True)
    found: dict[str, Any] = {"type": "object"}
    said = " ".join((kind.__doc__ or "").split())
    if said and not said.startswith("dict()"):
        found["description"] = said
    found["properties"] = {name: _of(_always(each), kinds, closed) for name, each in fields.items()}
    found["required"] = [name for name, each in fields.items() if get_origin(each) is not NotRequired]
    if kind in _MORE:
        found["additionalProperties"] = {"description": _MORE[kind]}
    elif closed:
        found["additionalProperties"] = False
    return found


def _always(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is NotRequired else kind
