"""A table on the screen: its title in the line above it, one row chosen, and only the lines that are seen are made."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from quorumlog_cli.top.table import Table, fit, line, titles
from quorumlog_cli.top.words import cut

_STYLES = {"": Style(), "warn": Style(color="yellow"), "bad": Style(color="red", bold=True)}
_HEADING = Style(dim=True)
_CHOSEN = Style(reverse=True)


class Listing(ScrollView, can_focus=True):
    """The chosen row stays chosen by its key while rows move."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("home,g", "jump(0)", "first", show=False),
        Binding("end,G", "jump(-1)", "last", show=False),
        Binding("enter", "open", "open", show=False),
        Binding("e", "explain", "explain", show=False),
    ]

    class Opened(Message):
        def __init__(self, listing: Listing, key: str) -> None:
            super().__init__()
            self.listing, self.key = listing, key

    class Explains(Message):
        def __init__(self, listing: Listing, key: str) -> None:
            super().__init__()
            self.listing, self.key = listing, key

    def __init__(self, table: Table, *, id: str, opens: str = "") -> None:
        """opens: what a row is, for `Opened`; empty: rows cannot be opened."""
        super().__init__(id=id)
        self.table, self.opens = table, opens
        self._key = ""
        self.border_title = table.heading

    def show(self, table: Table) -> None:
        self.table = table
        self.border_title = cut(table.heading, max(4, self.size.width - 2))
        self.virtual_size = Size(self.size.width, len(table.rows) + 1)
        self.refresh()

    @property
    def chosen(self) -> int:
        """Its index; the first row if none was chosen, or the chosen one is gone."""
        return next((index for index, row in enumerate(self.table.rows) if row.key == self._key), 0)

    def on_resize(self) -> None:
        self.show(self.table)

    def on_click(self, event: Click) -> None:
        index = event.y + self.scroll_offset.y - 1
        if 0 <= index < len(self.table.rows):
            self._choose(index)

    def action_move(self, by: int) -> None:
        self._choose(self.chosen + by)

    def action_page(self, by: int) -> None:
        self._choose(self.chosen + by * max(1, self.size.height - 2))

    def action_jump(self, to: int) -> None:
        self._choose(to if to >= 0 else len(self.table.rows) - 1)

    def action_open(self) -> None:
        if self.opens and self.table.rows:
            self.post_message(self.Opened(self, self.table.rows[self.chosen].key))

    def action_explain(self) -> None:
        if self.table.rows:
            self.post_message(self.Explains(self, self.table.rows[self.chosen].key))

    def _choose(self, index: int) -> None:
        if not self.table.rows:
            return
        index = min(max(0, index), len(self.table.rows) - 1)
        self._key = self.table.rows[index].key
        at = 0 if index == 0 else index + 1
        self.scroll_to_region(Region(0, at, self.size.width, 1), animate=False, force=True)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        fitted = fit(self.table.columns, width)
        index = y + self.scroll_offset.y - 1
        if y == 0:  # the titles stay
            return _strip(titles(self.table.columns, fitted) if self.table.rows else "", _HEADING, width)
        if not self.table.rows:
            return _strip(self.table.note if y == 1 else "", _HEADING, width)
        if not 0 <= index < len(self.table.rows):
            return Strip.blank(width)
        row = self.table.rows[index]
        style = _STYLES[row.level]
        if self.has_focus and index == self.chosen:
            style += _CHOSEN
        return _strip(line(self.table.columns, row.cells, fitted), style, width)


def _strip(text: str, style: Style, width: int) -> Strip:
    return Strip([Segment(text, style)]).adjust_cell_length(width, style)
