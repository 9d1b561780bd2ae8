"""Tables of Markdown that are wider than the terminal, as lists: a table that is squeezed there cuts names off."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_RULE = re.compile(r"^\|(?: *:?-+:? *\|)+ *$")
_BETWEEN = re.compile(r"(?<!\\)\|")
_FENCE = re.compile(r"^ *```")


def narrowed(text: str, width: int) -> str:
    """The same page. width: of the terminal, in columns. Tables that fit, and blocks of code, stay as they are."""
    return "\n".join(_lines(text.split("\n"), width))


def _lines(lines: Sequence[str], width: int) -> Iterator[str]:
    at, in_code = 0, False
    while at < len(lines):
        in_code ^= _FENCE.match(lines[at]) is not None
        end = at if in_code else _end_of_table(lines, at)
        if end > at:
            table = lines[at:end]
            yield from table if max(map(len, table)) <= width else _as_list(table)
            at = end
        else:
            yield lines[at]
            at += 1


def _end_of_table(lines: Sequence[str], at: int) -> int:
    """Exclusive; `at` if no table begins there."""
    if not (lines[at].startswith("|") and at + 1 < len(lines) and _RULE.match(lines[at + 1])):
        return at
    end = at + 2
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    return end


def _as_list(table: Sequence[str]) -> Iterator[str]:
    """An entry for each row: its first cell, then the others behind their titles; empty cells are left out."""
    titles = _cells(table[0])
    for row in table[2:]:
        first, *others = _cells(row)
        named = [f"{title}: {cell}" if title else cell for title, cell in zip(titles[1:], others, strict=False) if cell]
        yield f"- {' · '.join([first or '—', *named])}"


def _cells(row: str) -> list[str]:
    return [cell.strip().replace(r"\|", "|") for cell in _BETWEEN.split(row.strip())[1:-1]]
