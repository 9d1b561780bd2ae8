"""What a key of a node's configuration is: its name, how its text is read, its default and limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quorumlog_server.config.values import parse_bytes, parse_int

MAX_INT = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKey:
    """One key. default None: required, or absent if `optional`. Limits are inclusive, for numbers only."""

    name: str
    parse: Callable[[str], Any]
    default: str | None
    doc: str
    optional: bool = False
    minimum: float | None = None
    maximum: float | None = None


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
