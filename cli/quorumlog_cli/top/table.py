"""Rows in columns that fit into a width: which columns are shown, and what stands in a line. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quorumlog_cli.terminal.output import harmless
from quorumlog_cli.top.words import bar, cut

GAP = " "


@dataclass(frozen=True, slots=True)
class Column:
    """width: characters; of the `flexible` one its least. drop: columns with more go first where room is short.

    is_bar: its cells are PART/WHOLE, and drawn so.
    """

    title: str
    width: int
    right: bool = False
    drop: int = 0
    flexible: bool = False
    is_bar: bool = False


class Row:
    """key: what opens it, the same in every look. level: "" , "warn" or "bad"."""

    def __init__(self, key: str, cells: tuple[str, ...] | Callable[[], tuple[str, ...]], level: str = "") -> None:
        """cells: perhaps how to make them, which is done for rows that are seen only."""
        self.key, self.level = key, level
        self._cells = cells

    @property
    def cells(self) -> tuple[str, ...]:
        if callable(self._cells):
            self._cells = self._cells()
        return self._cells


@dataclass(frozen=True, slots=True)
class Table:
    """title: in the frame above it. bad: rows with a problem, those that a filter hides included. note: if empty."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    bad: int = 0
    note: str = ""

    @property
    def heading(self) -> str:
        """The count stands early, where a narrow frame does not cut it off."""
        name, dot, rest = self.title.partition(" · ")
        return f"{name} {self.bad}!{dot}{rest}" if self.bad else self.title


def fit(columns: Sequence[Column], width: int) -> list[tuple[int, int]]:
    """(index, width) of the columns that fit; the flexible one takes what is left."""
    shown = list(range(len(columns)))

    def needed() -> int:
        return sum(columns[index].width for index in shown) + len(GAP) * (len(shown) - 1)

    while needed() > width and len(shown) > 1:
        droppable = [index for index in shown if columns[index].drop]
        if not droppable:
            break
        shown.remove(max(droppable, key=lambda index: columns[index].drop))
    left = max(0, width - needed())
    return [(index, columns[index].width + (left if columns[index].flexible else 0)) for index in shown]


def line(columns: Sequence[Column], cells: Sequence[str], fitted: Sequence[tuple[int, int]]) -> str:
    """Of one row. Names that clients have chosen cannot command the terminal."""
    parts = []
    for index, width in fitted:
        text = cells[index]
        if columns[index].is_bar and "/" in text:
            part, _, whole = text.partition("/")
            text = bar(float(part), float(whole), width)
        text = cut(harmless(text).replace("\n", " "), width)
        parts.append(text.rjust(width) if columns[index].right else text.ljust(width))
    return GAP.join(parts)


def titles(columns: Sequence[Column], fitted: Sequence[tuple[int, int]]) -> str:
    return line(columns, [column.title for column in columns], fitted)
