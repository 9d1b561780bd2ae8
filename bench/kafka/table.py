"""What is found beside Kafka: the samples and failures of each cluster, and how rows are made of them."""

from __future__ import annotations

import statistics
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench.measuring.report import Row
from bench.measuring.rounds import not_settled

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


def ratios(theirs: Sequence[float], ours: Sequence[float]) -> list[float]:
    """Ours / theirs: the worst that the rounds allow, that of the medians, and the best."""
    return [
        min(ours) / max(theirs),
        statistics.median(ours) / statistics.median(theirs),
        max(ours) / min(theirs),
    ]


def or_why(name: str, make: Callable[[], list[Row]]) -> list[Row]:
    """These rows, or one that says why a figure of theirs was not measured."""
    try:
        return make()
    except NotMeasured as why:
        return [Row(name=name, unit="", rounds=(), failed=str(why))]


def beside(
    name: str, unit: str, theirs: Sequence[float], ours: Sequence[float], goal: float | None, at_least: bool = True
) -> list[Row]:
    """Two rows: Kafka's figure, and ours with its ratio and goal."""
    shares = ratios(theirs, ours)
    return [
        Row(name=f"Kafka: {name}", unit=unit, rounds=theirs),
        Row(name=name, unit=unit, rounds=ours, shares=shares, of="Kafka's", goal=goal, at_least=at_least),
    ]


def figure_beside(
    name: str, unit: str, figure: str, goal: float | None, theirs: Samples, ours: Samples, *, at_least: bool = False
) -> list[Row]:
    """`beside` of a figure that both sides have under the same name, or why one of them has not."""
    return or_why(name, lambda: beside(name, unit, theirs[figure], ours[figure], goal, at_least))


def why_cold(of: Samples, figure: str) -> str:
    """Why the cluster is not known to be warm after the warm-up rounds of this figure; "" if it is."""
    try:
        return not_settled(of[figure])
    except NotMeasured as error:
        return str(error)


def not_warm(name: str, why: Sequence[str], of: str) -> list[Row]:
    """A row that says why the rows of `of` have no goals; none if there is no reason."""
    return [Row(name=name, unit="", rounds=(), note=f"not warm: {'; '.join(why)}; no goals for {of}")] if why else []


def without_goals(rows: Iterable[Row]) -> list[Row]:
    """Their figures stay; nothing is said about goals."""
    return [replace(row, goal=None) for row in rows]
