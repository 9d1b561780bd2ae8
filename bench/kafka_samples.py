"""The samples and failures of one cluster so far, so that a late error does not lose earlier samples.

`changed` is called after every sample and writes them to the file. A figure that failed once is not tried again: its
earlier samples stay in the file, and its row gives the error.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

WHY_CHARACTERS = 200  # of an error's text in a row


class NotMeasured(Exception):
    """A row needs a figure that could not be measured. The message gives the error."""


class Samples:
    """The value of each round, by figure. changed: called after every sample and every failure."""

    def __init__(self, name: str, changed: Callable[[], None] = lambda: None) -> None:
        self.name = name
        self._changed = changed
        self._values: dict[str, list[float]] = {}
        self._failed: dict[str, str] = {}

    def __getitem__(self, figure: str) -> Sequence[float]:
        """Raises NotMeasured if the figure failed, or has no value."""
        if figure in self._failed:
            raise NotMeasured(f"{self.name}: {self._failed[figure]}")
        if figure not in self._values:
            raise NotMeasured(f"{self.name}: nothing was measured")
        return self._values[figure]

    def starting_with(self, prefix: str) -> list[str]:
        """Figures that were measured or tried, in that order."""
        return [figure for figure in {**self._values, **self._failed} if figure.startswith(prefix)]

    @property
    def failed(self) -> Mapping[str, str]:
        """Error by figure."""
        return self._failed

    def add(self, figure: str, value: float) -> None:
        self._values.setdefault(figure, []).append(value)
        self._changed()

    def attempt(self, figures: Iterable[str], measure: Callable[[], object]) -> None:
        """Measure these figures, unless one has failed before. An error is printed and stored."""
        wanted = [figure for figure in figures if figure not in self._failed]
        if not wanted:
            return
        try:
            measure()
        except Exception as error:
            traceback.print_exc(file=sys.stdout)
            print(f"{self.name}: FAILED: {', '.join(wanted)}: {_why(error)}", flush=True)
            self._failed.update(dict.fromkeys(wanted, _why(error)))
            self._changed()

    def as_json(self) -> dict[str, Any]:
        return {"samples": self._values, "failed": self._failed}


def _why(error: Exception) -> str:
    """The first line of the error."""
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return text if len(text) <= WHY_CHARACTERS else text[: WHY_CHARACTERS - 3] + "..."
