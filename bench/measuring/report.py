"""The results of a run: one row per figure, with all its rounds, as a table for people and as JSON for programs."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

NAME_WIDTH = 52


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure. rounds: its value in each round, in `unit`.

    shares: value / floor of the same round, if there is a floor, which `of` names. The goal is for the median of the
    shares if there are any, otherwise of the rounds. at_least: True if more is better. at_most: a second bound, beside
    a goal that is the least. failed: why there are no rounds.
    note: instead of rounds, what to know about the rows after it.
    """

    name: str
    unit: str
    rounds: Sequence[float]
    shares: Sequence[float] = ()
    of: str = ""
    goal: float | None = None
    at_least: bool = True
    at_most: float | None = None
    failed: str = ""
    note: str = ""

    @property
    def reached(self) -> bool | None:
        if self.goal is None or self.failed:
            return None
        median = statistics.median(self.shares or self.rounds)
        if not self.at_least:
            return median <= self.goal
        return median >= self.goal and (self.at_most is None or median <= self.at_most)


@dataclass(slots=True)
class Report:
    """settings, machine: the conditions of the run. samples: the raw values of rows, as far as measured."""

    settings: dict[str, Any] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    samples: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def add(self, *rows: Row) -> None:
        """Store the rows and print them."""
        for row in rows:
            self.rows.append(row)
            print(_line(row), flush=True)

    def write_json(self, path: Path) -> None:
        """Write everything known so far, atomically: a reader sees either the old text or the new one."""
        head = {"settings": self.settings, "machine": self.machine}
        samples = {"samples": self.samples} if self.samples else {}
        temporary = path.with_name(f"{path.name}.tmp")
        temporary.write_text(
            json.dumps({**head, **samples, "rows": [_as_json(row) for row in self.rows]}, indent=2) + "\n"
        )
        os.replace(temporary, path)


def print_heading(text: str) -> None:
    print(f"\n{text:<{NAME_WIDTH}} {'min':>10} {'median':>10} {'max':>10}", flush=True)


def _as_json(row: Row) -> dict[str, Any]:
    return {**asdict(row), "median": statistics.median(row.rounds) if row.rounds else None, "reached": row.reached}


def _line(row: Row) -> str:
    if row.failed:
        return f"{row.name:<{NAME_WIDTH}} failed: {row.failed}"
    if row.note:
        return f"{row.name:<{NAME_WIDTH}} {row.note}"
    parts = [f"{row.name:<{NAME_WIDTH}} {_spread(row.rounds)} {row.unit:<10}"]
    if row.shares:
        parts.append(f"{' /'.join(f'{share:5.0%}' for share in _three(row.shares))} of {row.of}")
    if row.goal is not None:
        sign = ">=" if row.at_least else "<="
        goal = f"goal {sign} {_goal(row, row.goal)}"
        if row.at_most is not None:
            goal += f" and <= {_goal(row, row.at_most)}"
        parts.append(f"{goal}: {'reached' if row.reached else 'MISSED'}")
    return "  ".join(parts)


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest of the values that at least so many percent of them do not exceed. values: at least one."""
    return sorted(values)[max(0, -(-len(values) * percent // 100) - 1)]


def _goal(row: Row, value: float) -> str:
    return f"{value:.0%}" if row.shares else f"{value:g} {row.unit}"


def _three(values: Sequence[float]) -> tuple[float, float, float]:
    return min(values), statistics.median(values), max(values)


def _spread(values: Sequence[float]) -> str:
    return " ".join(f"{_short(value):>10}" for value in _three(values))


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
