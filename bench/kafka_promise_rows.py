"""The rows of equal promises: rates beside each other, and processor time per MB and at rest, with their goals.

A load whose warm-up did not settle on both sides has no goals: beside a cold Kafka, all of them would be reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.java_load import LOADS
from bench.kafka_promises import CACHE, DISK, FLUSH, REPLICATED, VARIANTS, Variant
from bench.kafka_samples import Samples
from bench.kafka_table import not_warm, or_why, ratios, why_cold, without_goals
from bench.report import Row


@dataclass(frozen=True, slots=True)
class Goals:
    """Ratios of MB/s, except cost: ms of processor time per MB, ours on disk."""

    disk: float  # beside Kafka's page cache
    flushed: float  # ours on disk, beside flush.messages=1
    replicated: float  # beside Kafka's page cache
    cost: float


GOALS = {
    "defaults": Goals(disk=1.0, flushed=2.0, replicated=1.0, cost=32),
    "large": Goals(disk=1.2, flushed=1.6, replicated=1.2, cost=9),
    "small": Goals(disk=1.2, flushed=2.0, replicated=1.2, cost=10),
}
IDLE_GOAL = 1.5  # percent of one core, three nodes together


def promise_rows(theirs: Samples, ours: Samples) -> list[Row]:
    sides = {of.name: of for of in (theirs, ours)}
    return [*(row for key in LOADS for row in _load_rows(key, sides)), *_idle_rows(theirs, ours)]


def _load_rows(key: str, sides: Mapping[str, Samples]) -> list[Row]:
    title, goals = LOADS[key].name, GOALS[key]
    rows = [
        *_rate(CACHE, title, key, sides),
        *_rate(FLUSH, title, key, sides),
        *_rate_beside(DISK, CACHE, "page cache", title, key, sides, goals.disk),
        *_rate_beside(DISK, FLUSH, "flushed", title, key, sides, goals.flushed),
        *_rate_beside(REPLICATED, CACHE, "page cache", title, key, sides, goals.replicated),
        *(row for variant in VARIANTS for row in _costs(variant, title, key, sides, goals)),
        *(row for variant in (CACHE, FLUSH) for row in _compiling(variant, title, key, sides)),
    ]
    cold = [
        f"{variant.title}: {why}"
        for variant in VARIANTS
        if (why := why_cold(sides[variant.side], f"{key} {variant.name} warm-up"))
    ]
    return [*not_warm(title, cold, "this load"), *without_goals(rows)] if cold else rows


def _figure(variant: Variant, key: str, name: str, sides: Mapping[str, Samples]) -> Sequence[float]:
    return sides[variant.side][f"{key} {variant.name} {name}"]


def _rate(variant: Variant, title: str, key: str, sides: Mapping[str, Samples]) -> list[Row]:
    name = f"{variant.title}: {title}"
    return or_why(name, lambda: [Row(name=name, unit="MB/s", rounds=_figure(variant, key, "MB/s", sides))])


def _rate_beside(
    variant: Variant, other: Variant, of: str, title: str, key: str, sides: Mapping[str, Samples], goal: float
) -> list[Row]:
    """A rate with its share of the other variant's, which `of` names."""
    name = f"{variant.title} / {of}: {title}"

    def make() -> list[Row]:
        base, rates = _figure(other, key, "MB/s", sides), _figure(variant, key, "MB/s", sides)
        return [Row(name=name, unit="MB/s", rounds=rates, shares=ratios(base, rates), of=of, goal=goal)]

    return or_why(name, make)


def _costs(variant: Variant, title: str, key: str, sides: Mapping[str, Samples], goals: Goals) -> list[Row]:
    """Processor time of the three nodes, user and system together, and apart."""
    name = f"CPU, {variant.title}: {title}"

    def make() -> list[Row]:
        user, system = (_figure(variant, key, part, sides) for part in ("user", "system"))
        both = [sum(parts) for parts in zip(user, system, strict=True)]
        goal = goals.cost if variant is DISK else None
        return [
            Row(name=name, unit="ms/MB", rounds=both, goal=goal, at_least=False),
            Row(name="  of it user", unit="ms/MB", rounds=user),
            Row(name="  of it system", unit="ms/MB", rounds=system),
        ]

    return or_why(name, make)


def _compiling(variant: Variant, title: str, key: str, sides: Mapping[str, Samples]) -> list[Row]:
    """Of its processor time, the share of its virtual machines' compilers: less is warmer."""
    name = f"JIT, {variant.title}: {title}"
    return or_why(name, lambda: [Row(name=name, unit="% of CPU", rounds=_figure(variant, key, "compiling", sides))])


def _idle_rows(theirs: Samples, ours: Samples) -> list[Row]:
    unit = "% of a core"
    return [
        *or_why("Kafka: idle", lambda: [Row(name="Kafka: idle", unit=unit, rounds=theirs["idle"])]),
        *or_why("idle", lambda: [
            Row(name="idle", unit=unit, rounds=ours["idle"], goal=IDLE_GOAL, at_least=False)
        ]),
    ]  # fmt: skip
