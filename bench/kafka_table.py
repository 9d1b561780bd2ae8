"""How the rows beside Kafka are made: ratios, figures that could not be measured, and goals that are not judged."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from bench.kafka_samples import NotMeasured, Samples
from bench.report import Row
from bench.rounds import not_settled


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
