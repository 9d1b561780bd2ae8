"""Gauges of a soak: samples with their bounds, and whether a curve grows.

A bound follows from the settings and from what was done, never from what was seen. A gauge also must not grow: the
median of its last quarter is at most that of the second one, and a part more (`GROWTH`), where it has risen from
quarter to quarter. The first quarter fills the logs, so it is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

GROWTH = 0.2
VALID, TOO_LITTLE = "VALID", "TOO LITTLE"
FOUND = "BROKEN "  # so begins the line of a finding
QUARTER_MIN = 20  # samples; of fewer no growth is told


class Finding(NamedTuple):
    """name: of the gauge, or of the promise that was broken."""

    name: str
    text: str

    def __str__(self) -> str:
        return f"{FOUND}{self.name}: {self.text}"


class Reading(NamedTuple):
    """bound: None where only growth is judged."""

    value: float
    bound: float | None


@dataclass(slots=True)
class Gauge:
    """at: of each sample, in the soak's time unit. slack: a growth that is smaller than this is none.

    is_level: it must not grow in the long run.
    """

    name: str
    unit: str = ""
    slack: float = 0.0
    is_level: bool = True
    at: list[float] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)

    @property
    def values(self) -> list[float]:
        return [reading.value for reading in self.readings]

    @property
    def excess(self) -> str:
        """Where it was above its bound first; "" if it never was."""
        for at, (value, bound) in zip(self.at, self.readings, strict=True):
            if bound is not None and value > bound:
                return f"{self.name} is {value:,.0f}{self.unit} at {at:.1f}, its bound is {bound:,.0f}{self.unit}"
        return ""

    @property
    def quarters(self) -> tuple[float, ...]:
        """The medians."""
        part = len(self.readings) // 4
        return tuple(median(self.values[number * part : (number + 1) * part]) for number in range(4)) if part else ()

    @property
    def growth(self) -> str:
        """What is told where it grows; "" if it does not."""
        if not self.is_level or len(self.readings) < 4 * QUARTER_MIN:
            return ""
        _, second, third, last = self.quarters
        grows = second < third < last and last > second * (1 + GROWTH) and last - second > self.slack
        told = ", ".join(f"{value:,.0f}" for value in (second, third, last))
        return f"{self.name} grows: {told}{self.unit} in the last three quarters" if grows else ""


class Gauges:
    """By name, in the order of the first sample."""

    def __init__(self, time_unit: str) -> None:
        self.time_unit = time_unit
        self.by_name: dict[str, Gauge] = {}

    def sample(
        self,
        at: float,
        name: str,
        value: float,
        bound: float | None = None,
        *,
        unit: str = "",
        slack: float = 0.0,
        is_level: bool = True,
    ) -> None:
        gauge = self.by_name.setdefault(name, Gauge(name, unit, slack, is_level))
        gauge.at.append(at)
        gauge.readings.append(Reading(value, bound))

    @property
    def findings(self) -> list[Finding]:
        """Of all gauges: bounds that were passed, and growth."""
        told = [(gauge.name, text) for gauge in self.by_name.values() for text in (gauge.excess, gauge.growth)]
        return [Finding(name, text) for name, text in told if text]


class Minimum(NamedTuple):
    """A count that a soak must reach to prove anything."""

    name: str
    happened: int
    wanted: int

    def __str__(self) -> str:
        return f"{self.name}: {self.happened:,} of {self.wanted:,}"

    @property
    def is_met(self) -> bool:
        return self.happened >= self.wanted


def too_little(counts: Mapping[str, int], wanted: Mapping[str, float], length: float) -> list[Minimum]:
    """Those that are not met. wanted: for each unit of time. Below one event in the whole soak none is wanted."""
    minimums = [Minimum(name, counts.get(name, 0), int(rate * length)) for name, rate in wanted.items()]
    return [minimum for minimum in minimums if not minimum.is_met]


def lines_of(gauges: Gauges) -> Sequence[str]:
    """A table for people: the quarters of each gauge, its largest value and the bound at that moment."""
    lines = [f"{'gauge':34} {'quarters: medians':>40} {'largest':>12} {'its bound':>12}"]
    for gauge in gauges.by_name.values():
        largest = max(gauge.readings, key=lambda reading: reading.value)
        medians = " ".join(f"{value:>9,.0f}" for value in gauge.quarters)
        bound = "" if largest.bound is None else f"{largest.bound:,.0f}"
        lines.append(f"{gauge.name:34} {medians:>40} {largest.value:>12,.0f} {bound:>12}")
    return lines
