"""Field by field between one of our messages and Kafka's dict: the same structure, with the field names of `names`.

A field that the version does not have keeps our default. Kafka's null string is our empty string, its zero uuid our
empty id; an empty error message is written as null.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from quorumlog.ids import ZERO_UUID
from quorumlog.wire.convert.names import names_of
from quorumlog.wire.schema import Values

Change = Callable[[Any], Any]


class Mirrored(NamedTuple):
    """One field. required: its value if the dict has none; None: the default of our message."""

    name: str
    theirs: tuple[str, ...]
    read: Change | None
    write: Change | None
    required: Any


def to_values(message: Any) -> Values:
    """Our message as Kafka's dict, with the field names of all versions."""
    values: Values = {}
    for field in _plan_of(type(message)):
        value = getattr(message, field.name)
        if field.write is not None:
            value = field.write(value)
        for name in field.theirs:
            values[name] = value
    return values


def from_values(message: type, values: Values) -> Any:
    """Kafka's dict of any version as our message."""
    found: Values = {}
    for field in _plan_of(message):
        value = next((values[name] for name in field.theirs if name in values), None)
        if value is None:
            value = field.required
        elif field.read is not None:
            value = field.read(value)
        if value is not None:
            found[field.name] = value
    return message(**found)


def _plan_of(message: type) -> tuple[Mirrored, ...]:
    return _plan(message)


@cache
def _plan(message: Hashable) -> tuple[Mirrored, ...]:
    assert isinstance(message, type) and is_dataclass(message)
    hints = get_type_hints(message)
    plan = []
    for field in fields(message):
        hint = hints[field.name]
        read, write = _changes(field.name, hint)
        required = None
        if field.default is MISSING and field.default_factory is MISSING:
            required = {int: 0, str: "", bytes: b"", bool: False}.get(hint)
        plan.append(Mirrored(field.name, names_of(message, field.name), read, write, required))
    return tuple(plan)


def _changes(name: str, hint: Any) -> tuple[Change | None, Change | None]:
    if name == "error_message":
        return None, _text_or_null
    if hint is bytes:
        return _id_or_empty, _id_or_zero
    if get_origin(hint) is tuple:
        element = get_args(hint)[0]
        if is_dataclass(element):
            return _many(element), lambda values: [to_values(value) for value in values]
        return tuple, None
    element = next((part for part in get_args(hint) if part is not NoneType), None)
    if is_dataclass(element):
        return _one(element), lambda value: None if value is None else to_values(value)
    return None, None


def _many(element: Any) -> Change:
    return lambda values: tuple([from_values(element, value) for value in values])


def _one(element: Any) -> Change:
    return lambda value: from_values(element, value)


def _text_or_null(text: str) -> str | None:
    return text or None


def _id_or_empty(value: bytes) -> bytes:
    return b"" if value == ZERO_UUID else value


def _id_or_zero(value: bytes) -> bytes:
    return value or ZERO_UUID
