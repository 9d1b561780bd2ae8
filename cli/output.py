"""Output of results: a table for people or JSON for programs, on stdout; messages go to stderr.

The format belongs to the process and is set before the command line is parsed, so that even a usage error is JSON if
JSON was requested.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

NOTHING = ("—", "-")  # cells without a value
FULL_WIDTH = 10_000  # columns, if stdout is not a terminal: a pipe must get whole lines


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[
    Format, typer.Option("--output", "-o", help="table for people, json for programs.", show_default=True)
]

_format = Format.TABLE


def use_format_of(arguments: Sequence[str]) -> None:
    """Find -o in arguments that are not parsed yet."""
    global _format
    _format = Format.TABLE
    for index, argument in enumerate(arguments):
        value = arguments[index + 1 : index + 2] if argument in ("-o", "--output") else []
        if value == ["json"] or argument in ("-ojson", "--output=json", "-o=json"):
            _format = Format.JSON
        if argument == "--":
            return


def use(chosen: Format) -> bool:
    """Set the parsed format. Returns True for JSON."""
    global _format
    _format = chosen
    return is_json()


def is_json() -> bool:
    return _format is Format.JSON


def show_json(value: Any) -> None:
    """One document."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def show_json_line(value: Any) -> None:
    """One line of many."""
    print(json.dumps(value, ensure_ascii=False))


def show_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Aligned columns without lines; numbers are right-aligned. Without rows only the heading is printed."""
    from rich.console import Console
    from rich.table import Table

    cells = [[_cell(value) for value in row] for row in rows]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for index, column in enumerate(columns):
        texts = [row[index] for row in cells]
        numeric = all(map(_is_number, texts)) and any(text not in NOTHING for text in texts)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        table.add_row(*row)
    on_screen = sys.stdout.isatty()
    console = Console(width=None if on_screen else FULL_WIDTH, markup=False, highlight=False, emoji=False)
    with console.capture() as captured:
        console.print(table)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def show(columns: Sequence[str], rows: Sequence[Sequence[Any]], document: Any) -> None:
    """Print the result in the requested format."""
    if is_json():
        show_json(document)
    else:
        show_table(columns, rows)


def say(text: str) -> None:
    """Print a message, not data. Nothing is printed with JSON output."""
    if not is_json():
        print(text, file=sys.stderr)


def counted(count: int, thing: str) -> str:
    """1 record, 2 records."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def complain(message: str, hint: str = "") -> None:
    """Print an error and what to do about it."""
    colours = sys.stderr.isatty()
    bold, plain = ("\x1b[1;31m", "\x1b[0m") if colours else ("", "")
    print(f"{bold}error{plain}  {message}", file=sys.stderr)
    if hint:
        print(f"hint   {hint}", file=sys.stderr)


def duration(ms: int) -> str:
    """A duration for people: 12 ms, 2.1 s, 3 min, 5 h; — if unknown (negative)."""
    if ms < 0:
        return "—"
    if ms < 1_000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1_000:.1f} s"
    return f"{ms // 60_000} min" if ms < 3_600_000 else f"{ms // 3_600_000} h"


def _cell(value: Any) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(str(item) for item in value) or "—"
    return str(value)


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit() or text in NOTHING
