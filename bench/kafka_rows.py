"""The table: Kafka's figure, ours, the ratio and its goal. Goals are the issue's, which asked for them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from bench.kafka_figures import KIB, LINGERS_MS, RATES, Figures
from bench.machine import MEGABYTE
from bench.report import Row

PARTS = ("start", "produce", "consume", "latency", "memory", "failover")
LEAST_MS = 0.5  # the Java tool tells whole milliseconds: 0 is less than this
FLOOR_GOAL = 0.6


def rows(parts: Sequence[str], theirs: Figures, ours: Figures) -> list[Row]:
    made = {
        "start": _start, "produce": _produce, "consume": _consume, "latency": _latency, "memory": _memory,
        "failover": _failover,
    }  # fmt: skip
    return [row for part in PARTS if part in parts for row in made[part](theirs, ours)]


def beside(
    name: str, unit: str, theirs: Sequence[float], ours: Sequence[float], goal: float, at_least: bool = True
) -> list[Row]:
    """Two rows. Ratios: the worst and the best that the rounds allow, and that of the medians between them."""
    ratios = [
        min(ours) / max(theirs),
        statistics.median(ours) / statistics.median(theirs),
        max(ours) / min(theirs),
    ]
    return [
        Row(name=f"Kafka: {name}", unit=unit, rounds=theirs),
        Row(name=name, unit=unit, rounds=ours, shares=ratios, of="Kafka's", goal=goal, at_least=at_least),
    ]


def _start(theirs: Figures, ours: Figures) -> list[Row]:
    return beside("start to first acknowledged write", "s", theirs["start"], ours["start"], 0.25, at_least=False)


def _produce(theirs: Figures, ours: Figures) -> list[Row]:
    def same(name: str, figure: str, goal: float) -> list[Row]:
        return beside(f"produce 1 KiB, {name}", "MB/s", _mb(theirs[figure]), _mb(ours[figure]), goal)

    small = beside("produce 100 B, own best", "records/s", _best(theirs, "small"), ours["own small"], 3.0)
    return [
        *same("Java", "java kib", 1.3),
        *same("librdkafka", "rdkafka kib", 1.3),
        *beside("produce 1 KiB, own best", "MB/s", _mb(_best(theirs, "kib")), _mb(ours["own kib"]), 2.0),
        *same("Java defaults", "java defaults kib", 2.0),
        *small,
        *_floor(ours),
    ]


def _floor(ours: Figures) -> list[Row]:
    found = []
    for figure in [name for name in ours if name.startswith("floor ")]:
        partitions, floor, rates = figure.split()[1], ours[figure], ours[f"of {figure}"]
        shares = [rate / base for rate, base in zip(rates, floor, strict=True)]
        found += [
            Row(name=f"floor: produce 1 KiB, {partitions} partitions", unit="MB/s", rounds=_mb(floor)),
            Row(
                name=f"produce 1 KiB, {partitions} partitions", unit="MB/s", rounds=_mb(rates), shares=shares,
                of="the floor", goal=FLOOR_GOAL,
            ),
        ]  # fmt: skip
    return found


def _consume(theirs: Figures, ours: Figures) -> list[Row]:
    kib = _best_of(theirs["java consume kib"], theirs["rdkafka consume kib"])
    small = _best_of(theirs["java consume small"], theirs["rdkafka consume small"])
    return [
        *beside("consume 1 KiB, own best", "MB/s", _mb(kib), _mb(ours["own consume chunks kib"]), 2.0),
        *beside("consume 1 KiB, into Arrow", "MB/s", _mb(kib), _mb(ours["own consume columns kib"]), 2.0),
        *beside("consume 100 B, into Arrow", "records/s", small, ours["own consume columns small"], 5.0),
        Row(name="consume 1 KiB, librdkafka", unit="MB/s", rounds=_mb(ours["rdkafka consume kib"])),
        Row(name="Kafka: consume 1 KiB, librdkafka", unit="MB/s", rounds=_mb(theirs["rdkafka consume kib"])),
    ]


def _latency(theirs: Figures, ours: Figures) -> list[Row]:
    def told(values: Sequence[float]) -> list[float]:
        return [max(value, LEAST_MS) for value in values]

    return [
        row
        for linger_ms in LINGERS_MS
        for rate in RATES
        for part in ("p50", "p99")
        for row in beside(
            f"{part}, 1 KiB at {rate:,}/s, Java, linger {linger_ms} ms", "ms",
            told(theirs[f"{part} {rate} {linger_ms}"]), told(ours[f"{part} {rate} {linger_ms}"]), 0.5, at_least=False,
        )
    ]  # fmt: skip


def _memory(theirs: Figures, ours: Figures) -> list[Row]:
    return beside("resident memory of a node after load", "MB", theirs["memory"], ours["memory"], 0.2, at_least=False)


def _failover(theirs: Figures, ours: Figures) -> list[Row]:
    name = "kill -9 of a leader to next acknowledged write"
    return beside(name, "s", theirs["failover"], ours["failover"], 0.1, at_least=False)


def _best(figures: Figures, size: str) -> list[float]:
    return _best_of(figures[f"java {size}"], figures[f"rdkafka {size}"])


def _best_of(*clients: Sequence[float]) -> list[float]:
    """Of each round, the faster client's."""
    return [max(found) for found in zip(*clients, strict=True)]


def _mb(records_per_s: Sequence[float]) -> list[float]:
    return [rate * KIB / MEGABYTE for rate in records_per_s]
