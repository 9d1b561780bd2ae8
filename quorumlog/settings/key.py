"""What a setting of a node is: its key, how its text is read, its default and limits.

A part of a node says each of its settings once, as a field of its dataclass of settings (`setting`). What the file
knows (`keys_of`) and what the part gets (`part_of`) follow from that. Two parts that read the same key share it.

Every error of a parser is a sentence about the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar, Protocol, TypeVar

from quorumlog.settings.types import BOOLEAN, DOUBLE, LIST, MAX_INT, PASSWORD, STRING, TOLD, number_type

_BYTES = re.compile(r"(-?\d+)\s*([kKmMgGtT]i?)?[bB]?")
_UNIT = {"": 1, "k": 10**3, "ki": 2**10, "m": 10**6, "mi": 2**20, "g": 10**9, "gi": 2**30, "t": 10**12, "ti": 2**40}


def parse_bool(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return lowered == "true"


def parse_int(text: str) -> int:
    if not re.fullmatch(r"-?\d+", text.strip(), re.ASCII):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def parse_float(text: str) -> float:
    """A decimal number, with an exponent if need be."""
    if not re.fullmatch(r"-?\d+(\.\d*)?([eE][+-]?\d+)?", text.strip(), re.ASCII):
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def parse_bytes(text: str) -> int:
    """A number of bytes: 1048576, 1MiB, 1 GB (units without the i are powers of ten)."""
    match = _BYTES.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size; write 1048576 or 1MiB")
    return int(match[1]) * _UNIT[(match[2] or "").lower()]


def parse_list(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


_TYPES: Mapping[Callable[[str], Any], int] = {parse_bool: BOOLEAN, parse_float: DOUBLE, parse_list: LIST}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKey:
    """One key. default None: required, or absent if `optional`. Limits are inclusive, for numbers only. choices: the
    words that are allowed; none: any. secret: its text is shown to nobody."""

    name: str
    parse: Callable[[str], Any]
    default: str | None
    doc: str
    optional: bool = False
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    secret: bool = False


def type_of(key: NodeKey) -> int:
    """As DescribeConfigs tells it: Kafka's, else by how the key's text is read."""
    if key.name in TOLD:
        return TOLD[key.name]
    if key.secret:
        return PASSWORD
    if key.parse in (parse_int, parse_bytes):
        return number_type(key.maximum)
    return _TYPES.get(key.parse, STRING)


def text(given: str) -> str:
    return given.strip()


def number(name: str, default: int, minimum: int, doc: str, maximum: int = MAX_INT) -> NodeKey:
    return NodeKey(name=name, parse=parse_int, default=str(default), doc=doc, minimum=minimum, maximum=maximum)


def size(name: str, default: int, minimum: int, doc: str, maximum: int = MAX_INT) -> NodeKey:
    return NodeKey(name=name, parse=parse_bytes, default=str(default), doc=doc, minimum=minimum, maximum=maximum)


def number_or_not(name: str, minimum: int, doc: str) -> NodeKey:
    return NodeKey(name=name, parse=parse_int, default=None, optional=True, doc=doc, minimum=minimum, maximum=MAX_INT)


def maybe(name: str, parse: Callable[[str], Any], doc: str) -> NodeKey:
    return NodeKey(name=name, parse=parse, default=None, optional=True, doc=doc)


def flag(name: str, default: bool, doc: str) -> NodeKey:
    return NodeKey(name=name, parse=parse_bool, default=str(default).lower(), doc=doc)


def word(name: str, default: str, doc: str, choices: tuple[str, ...] = ()) -> NodeKey:
    return NodeKey(name=name, parse=text, default=default, doc=doc, choices=choices)


def names(name: str, default: str, doc: str) -> NodeKey:
    return NodeKey(name=name, parse=parse_list, default=default, doc=doc)


_KEY, _MADE = "key", "made"


class PartSettings(Protocol):
    """Any dataclass, as type checkers know it."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


T = TypeVar("T", bound=PartSettings)


def setting(key: NodeKey, made: Callable[[Any], Any] = lambda value: value) -> Any:
    """A field of a part's settings that the file sets by `key`, whose default is its own.

    made: the field's value of the key's.
    """
    default = None if key.default is None else made(key.parse(key.default))
    return field(default=default, metadata={_KEY: key, _MADE: made})


def keys_of(part: type[PartSettings], first: str = "", last: str = "") -> tuple[NodeKey, ...]:
    """The keys of a part's dataclass and of those inside it, in the order of their fields.

    first, last: names of the keys to begin and to end with, inclusive; empty: all keys on that side.
    """
    found = tuple(_keys(part))
    order = [key.name for key in found]
    return found[order.index(first) if first else 0 : order.index(last) + 1 if last else None]


def key_of(part: type[PartSettings], name: str) -> NodeKey:
    """The key of this name."""
    return keys_of(part, name, name)[0]


def fields_of(part: type[PartSettings]) -> dict[str, str]:
    """The names of a part's own fields by the names of their keys."""
    return {one.metadata[_KEY].name: one.name for one in fields(part) if _KEY in one.metadata}


def part_of(part: type[T], node: Mapping[str, Any], **others: Any) -> T:
    """The settings of a part, and of the parts inside it. node: the values of all keys by name.

    others: fields that are no keys, or not alone.
    """
    told = dict(others)
    for one in fields(part):
        if one.name in told:
            continue
        if _KEY in one.metadata:
            told[one.name] = one.metadata[_MADE](node[one.metadata[_KEY].name])
        elif (inner := _inner(one)) is not None:
            told[one.name] = part_of(inner, node)
    return part(**told)


def _keys(part: type[PartSettings]) -> Iterator[NodeKey]:
    for one in fields(part):
        if _KEY in one.metadata:
            yield one.metadata[_KEY]
        elif (inner := _inner(one)) is not None:
            yield from _keys(inner)


def _inner(one: Field[Any]) -> type[PartSettings] | None:
    made: Any = one.default_factory
    return made if hasattr(made, "__dataclass_fields__") else None
