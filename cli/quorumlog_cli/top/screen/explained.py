"""Why a row is as it is: what `quorumlog explain` says of it, read while the screen waits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from quorumlog.nursery import Nursery
from quorumlog_cli.terminal.output import on_one_line

Explain = Callable[[str], Awaitable[list[str]]]  # a subject, as `quorumlog explain` takes it; lines for people
SORTS = {"brokers": "broker", "topics": "topic", "groups": "group"}  # of a row, by its panel


class Explained(Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,backspace,left,e", "dismiss", "back", show=False)]

    def __init__(self, subject: str, explain: Explain) -> None:
        super().__init__()
        self._subject, self._explain = subject, explain
        self._nursery = Nursery(lambda _name, error: self._show([f"it cannot be explained: {error}"]))

    def compose(self) -> ComposeResult:
        yield Static(id="status", markup=False)
        with VerticalScroll(id="why"):
            yield Static(f"{self._subject}: reading …", id="lines", markup=False)
        yield Static("esc back  \u2191\u2193 scroll", id="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one("#why").focus()
        self._nursery.start(self._read(), self._subject)

    async def on_unmount(self) -> None:
        await self._nursery.close()

    async def _read(self) -> None:
        self._show(await self._explain(self._subject))

    def _show(self, lines: list[str]) -> None:
        """Names in them are as clients chose them."""
        self.query_one("#lines", Static).update("\n".join(map(on_one_line, [self._subject, "", *lines])))
