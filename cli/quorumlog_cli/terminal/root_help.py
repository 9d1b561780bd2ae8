"""The help of `quorumlog` itself: panels of verbs, laid out by counting characters.

rich would do it as well, but it and what it loads for Markdown take longer than everything else that `--help` does.
The texts are ASCII: each character takes one column.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence

NARROWEST, WIDEST = 40, 120  # columns: narrower texts would be cut, and wider ones are hard to read
BOLD, CYAN, DIM, PLAIN = "\x1b[1m", "\x1b[1;36m", "\x1b[2m", "\x1b[0m"
Rows = Sequence[tuple[str, str]]  # a name, and its help


def root_help(
    usage: str, text: str, panels: Mapping[str, Rows], epilog: str, *, columns: int, coloured: bool = False
) -> str:
    """The whole text, which ends with a line end. columns: of the terminal. panels: by heading, in their order."""
    width = max(NARROWEST, min(columns, WIDEST))
    names = max(len(name) for rows in panels.values() for name, _ in rows)
    bold, plain = (BOLD, PLAIN) if coloured else ("", "")
    lines = ["", f" {bold}Usage: {usage}{plain}", "", *_paragraph(text, width), ""]
    for heading, rows in panels.items():
        lines += _panel(heading, rows, names, width, coloured=coloured)
    return "\n".join([*lines, "", *_paragraph(epilog, width), ""])


def _paragraph(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width - 1, initial_indent=" ", subsequent_indent=" ")


def _panel(heading: str, rows: Rows, names: int, width: int, *, coloured: bool) -> Iterable[str]:
    name_colour, dim, plain = (CYAN, DIM, PLAIN) if coloured else ("", "", "")
    inside = width - 4  # between two frames with a space each
    yield f"{dim}╭─ {heading} {'─' * (width - 5 - len(heading))}╮{plain}"
    for name, text in rows:
        for number, line in enumerate(textwrap.wrap(text, inside - names - 2) or [""]):
            shown = name if number == 0 else ""
            rest = line.ljust(inside - names - 2)
            yield f"{dim}│{plain} {name_colour}{shown.ljust(names)}{plain}  {rest} {dim}│{plain}"
    yield f"{dim}╰{'─' * (width - 2)}╯{plain}"
