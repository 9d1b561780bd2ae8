"""The demo's output: its steps with their times, and the progress of the load."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

TITLE_WIDTH = 44


class Steps:
    def __init__(self, console: Console) -> None:
        self.console = console
        self._started = time.monotonic()

    @property
    def total_s(self) -> float:
        return time.monotonic() - self._started

    @contextmanager
    def step(self, title: str) -> Iterator[list[str]]:
        """The block appends the details of its result."""
        details: list[str] = []
        started = time.monotonic()
        with self.console.status(f"{title} ..."):
            yield details
        self.done(title, time.monotonic() - started, *details)

    def done(self, title: str, took_s: float, *details: str) -> None:
        self.console.print(
            f"[green]✓[/] {title:<{TITLE_WIDTH}} [cyan]{took_s:6.1f} s[/]  {'; '.join(details)}", highlight=False
        )

    def say(self, text: str) -> None:
        self.console.print(f"  [yellow]•[/] {escape(text)}", highlight=False)

    def progress(self) -> Progress:
        return Progress(
            TextColumn("  {task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
        )
