"""A progress bar on stderr: a line that is drawn again on a terminal, a line for each tenth elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType

WIDTH = 30
STEPS = 10


class Progress:
    """A context: the line ends with it."""

    def __init__(self, what: str, unit: str = "bytes") -> None:
        self._what, self._unit = what, unit
        self._is_terminal = sys.stderr.isatty()
        self._shown = ""
        self._step = -1

    def show(self, done: int, total: int) -> None:
        """done, total: in the unit."""
        share = min(1.0, done / total) if total else 1.0
        step = int(share * STEPS)
        if not self._is_terminal and step == self._step:
            return
        self._step = step
        text = f"{self._what} [{'#' * int(share * WIDTH):<{WIDTH}}] {share:4.0%}  {done:,} of {total:,} {self._unit}"
        if text != self._shown:
            sys.stderr.write(f"\r{text}" if self._is_terminal else f"{text}\n")
            sys.stderr.flush()
            self._shown = text

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_terminal and self._shown:
            sys.stderr.write("\n")
