"""Docstrings of ours as reStructuredText, which autodoc reads: they are plain text with Markdown's backticks."""

from __future__ import annotations

import re
from typing import Any

_CODE = re.compile(r"(`[^`\n]+`)")
_SPECIAL = re.compile(r"([*|\\]|_(?=\W|$))")
_FIELD = re.compile(r"^[a-z_]\w*(, \w+)*( and \w+)?: |^Raises ")  # of a parameter, or of errors: a line of its own


def as_rst(lines: list[str]) -> list[str]:
    """Single backticks are code, nothing else is markup; each line about a parameter is a paragraph of its own."""
    made: list[str] = []
    for line in lines:
        if _FIELD.match(line) and made and made[-1]:
            made.append("")
        if made and made[-1].strip() and _indent(line) != _indent(made[-1]) and line.strip():
            made.append("")
        made.append(_line(line))
    return made


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _line(line: str) -> str:
    parts = _CODE.split(line)
    return "".join(f"`{part}`" if index % 2 else _SPECIAL.sub(r"\\\1", part) for index, part in enumerate(parts))


def on_docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Sphinx's event. lines: replaced in place."""
    lines[:] = as_rst(lines)
