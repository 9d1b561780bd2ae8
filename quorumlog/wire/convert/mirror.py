"""Field by field between one of our messages and Kafka's dict: the same structure, with the field names of `names`.

A field that the version does not have keeps our default. Kafka's null string is our empty string, its zero uuid the
empty bytes of our ids; an empty error message is written as null.

Arrays of messages become `Mapped`, so they are converted while they are written. What is read is converted by
`from_values`, or in slices by `from_values_sliced`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from quorumlog.ids import ZERO_UUID
from quorumlog.slices import Pace, Sliced
from quorumlog.wire.convert.names import NULL_WHEN_EMPTY, TEXT_WHEN_EMPTY, names_of
from quorumlog.wire.format.schema import Values

Change = Callable[[Any], Any]


class Mapped:
    """The elements of `of`, each changed when it is reached: 100,000 are never there twice, nor changed in one turn."""

    __slots__ = ("_change", "_of")

    def __init__(self, change: Callable[[Any], Any], of: Sequence[Any]) -> None:
        self._change, self._of = change, of

    def __len__(self) -> int:
        return len(self._of)

    def __iter__(self) -> Iterator[Any]:
        return map(self._change, self._of)


class Mirrored(NamedTuple):
    """One field. required: its value if the dict has none; None: the default of our message. element: our message of
    which it has many, or which it is."""

    name: str
    theirs: tuple[str, ...]
    read: Change | None
    write: Change | None
    required: Any
    element: type | None


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


def from_values_sliced(message: type, values: Values, pace: Pace) -> Sliced[Any]:
    """`from_values`, between whose messages others may run."""
    found: Values = {}
    for field in _plan_of(message):
        value = next((values[name] for name in field.theirs if name in values), None)
        if value is None:
            value = field.required
        elif field.element is not None:
            value = yield from _element_sliced(field.element, value, pace)
        elif field.read is not None:
            value = field.read(value)
        if value is not None:
            found[field.name] = value
    return message(**found)


def _element_sliced(element: type, value: Any, pace: Pace) -> Sliced[Any]:
    """value: the values of one, or a list of those of many."""
    if isinstance(value, dict):
        return (yield from from_values_sliced(element, value, pace))
    is_leaf = all(field.element is None for field in _plan_of(element))
    found = []
    for one in value:
        found.append(from_values(element, one) if is_leaf else (yield from from_values_sliced(element, one, pace)))
        if pace.is_over():
            yield
    return tuple(found)


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
        if (message, field.name) in NULL_WHEN_EMPTY:
            write = _null_when_empty(write)
        if field.name == "error_message" and message in TEXT_WHEN_EMPTY:
            write = None
        required = None
        if field.default is MISSING and field.default_factory is MISSING:
            required = {int: 0, str: "", bytes: b"", bool: False}.get(hint)
        names = names_of(message, field.name)
        plan.append(Mirrored(field.name, names, read, write, required, _element_of(hint)))
    return tuple(plan)


def _null_when_empty(write: Change | None) -> Change:
    return lambda values: None if not values else values if write is None else write(values)


def _changes(name: str, hint: Any) -> tuple[Change | None, Change | None]:
    if name == "error_message":
        return None, _text_or_null
    if hint is bytes and name.endswith("_id"):
        return _id_or_empty, _id_or_zero
    if get_origin(hint) is tuple:
        element = get_args(hint)[0]
        if is_dataclass(element):
            return _many(element), lambda values: Mapped(to_values, values)
        return tuple, None
    element = _element_of(hint)
    if element is not None:
        return _one(element), lambda value: None if value is None else to_values(value)
    return None, None


def _element_of(hint: Any) -> type | None:
    """The message in `X`, `X | None` and `tuple[X, ...]`."""
    parts = get_args(hint) or (hint,)
    return next((part for part in parts if isinstance(part, type) and is_dataclass(part)), None)


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
