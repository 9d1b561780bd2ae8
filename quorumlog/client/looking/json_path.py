"""A path into a JSON value: `$.order.items[0].id`, `$["a b"][*]`. A part of RFC 9535's: names, indexes and `*`.

A path may fit many values, none of them too: `$.tags[*]` fits each item of the array.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from quorumlog.client.looking.json_text import Members

MAX_STEPS = 50
MAX_FOUND = 10_000  # values that a path fits in one record; the rest is not looked at
_STEP = re.compile(
    r"\.(?P<name>[^\s.\[\]=<>!~\"']+)|\[(?P<index>-?\d{1,9})\]|\[(?P<all>\*)\]|\[(?P<quoted>\"(?:[^\"\\]|\\.)*\")\]"
)

Step = str | int | None  # a name, an index (negative: from the end), or None for all


class BadPath(ValueError):
    """Not a path. The text says what is known."""


@dataclass(frozen=True, slots=True)
class Path:
    text: str
    steps: tuple[Step, ...]

    def find(self, value: Any) -> Iterator[Any]:
        """The values that it fits, in their order; at most MAX_FOUND. value: of `read_json`."""
        found = [value]
        for step in self.steps:
            found = [inner for outer in found for inner in _inside(outer, step)][:MAX_FOUND]
        return iter(found)


def read_path(text: str) -> tuple[Path, str]:
    """The path that the text begins with, and what follows it. Raises BadPath."""
    if not text.startswith("$"):
        raise BadPath(f"a path begins with $: {text!r}")
    at, steps = 1, list[Step]()
    while found := _STEP.match(text, at):
        steps.append(_step(found))
        at = found.end()
    if len(steps) > MAX_STEPS:
        raise BadPath(f"a path has at most {MAX_STEPS} steps")
    if at < len(text) and text[at] in ".[":
        raise BadPath(f'unknown step {text[at : at + 20]!r}; known: .name ["name"] [0] [-1] [*] .*')
    return Path(text[:at], tuple(steps)), text[at:]


def _step(found: re.Match[str]) -> Step:
    name, index, quoted = found["name"], found["index"], found["quoted"]
    if index is not None:
        return int(index)
    if quoted is not None:
        try:
            return str(json.loads(quoted, strict=False))
        except ValueError as error:
            raise BadPath(f"{quoted}: {error}") from error
    return None if name in (None, "*") else str(name)


def _inside(value: Any, step: Step) -> list[Any]:
    if isinstance(value, Members):
        return [inner for name, inner in value if step is None or name == step]
    if isinstance(value, list):
        if step is None:
            return value
        if isinstance(step, int) and -len(value) <= step < len(value):
            return [value[step]]
    return []
