"""The rows of equal promises: which figure stands beside which, the goals, and a cluster that was never warm."""

from __future__ import annotations

import pytest

from bench.kafka.java_load import LOADS
from bench.kafka.promises import VARIANTS, promise_rows
from bench.kafka.table import Samples
from bench.measuring.report import Row

RATES = {"disk": 24.0, "replicated": 30.0, "cache": 20.0, "flush": 10.0}  # MB/s
COSTS = {"disk": 32.0, "replicated": 20.0, "cache": 40.0, "flush": 80.0}  # ms per MB


def both(warm_up: dict[str, list[float]] | None = None) -> tuple[Samples, Samples]:
    """The same figures for all loads. warm_up: by variant."""
    found = {"Kafka": Samples("Kafka"), "quorumlog": Samples("quorumlog")}
    for load in LOADS:
        for variant in VARIANTS:
            figures, name = found[variant.side], f"{load} {variant.name}"
            for value in (warm_up or {}).get(variant.name, [50.0, 51.0]):
                figures.add(f"{name} warm-up", value)
            figures.add(f"{name} MB/s", RATES[variant.name])
            figures.add(f"{name} user", COSTS[variant.name] - 5.0)
            figures.add(f"{name} system", 5.0)
            figures.add(f"{name} compiling", 2.0)
    found["Kafka"].add("idle", 7.3)
    found["quorumlog"].add("idle", 1.6)
    return found["Kafka"], found["quorumlog"]


def by_name(rows: list[Row]) -> dict[str, Row]:
    return {row.name: row for row in rows}


LOAD_GOALS = [
    ("1 KiB, Java defaults", (1.0, True), (2.0, True), (1.0, True), (32, True)),
    ("1 KiB, 256-KiB batches", (1.2, True), (1.6, True), (1.2, True), (9, False)),
    ("100 B, 256-KiB batches", (1.2, True), (2.0, True), (1.2, True), (10, False)),
]


@pytest.mark.parametrize(("load", "cache", "flush", "replicated", "cost"), LOAD_GOALS)
def test_each_promise_stands_beside_its_equal(
    load: str, cache: tuple[float, bool], flush: tuple[float, bool], replicated: tuple[float, bool],
    cost: tuple[float, bool],
) -> None:  # fmt: skip
    rows = by_name(promise_rows(*both()))
    disk, beside_flush = rows[f"on disk / page cache: {load}"], rows[f"on disk / flushed: {load}"]
    relaxed, spent = rows[f"replicated / page cache: {load}"], rows[f"CPU, on disk: {load}"]
    assert [row.shares[1] for row in (disk, beside_flush, relaxed)] == pytest.approx([1.2, 2.4, 1.5])
    assert list(spent.rounds) == [32.0]  # user and system
    judged = [(row.goal, row.reached) for row in (disk, beside_flush, relaxed, spent)]
    assert judged == [cache, flush, replicated, cost]
    assert not spent.at_least


def test_kafkas_own_rows_have_no_goals() -> None:
    kafkas = [row for row in promise_rows(*both()) if "Kafka" in row.name]
    assert len(kafkas) == 3 * (2 + 2 + 2) + 1  # rates, processor time, compilers; idle
    assert {row.goal for row in kafkas} == {None}


def test_an_idle_cluster_has_a_goal_of_its_own() -> None:
    idle = by_name(promise_rows(*both()))["idle"]
    assert (idle.goal, idle.reached, idle.at_least) == (1.5, False, False)


def test_a_load_whose_kafka_did_not_get_warm_says_so_and_has_no_goals() -> None:
    rows = promise_rows(*both({"flush": [50.0, 30.0]}))
    notes = [row.note for row in rows if row.note]
    assert notes == ["not warm: Kafka, flush.messages=1: rounds 1 and 2 differ by 40 %; no goals for this load"] * 3
    assert [row.name for row in rows if row.goal is not None] == ["idle"]


def test_a_failed_variant_leaves_the_rows_of_the_others() -> None:
    theirs, ours = both()
    ours.attempt(["large disk MB/s"], lambda: 1 / 0)
    rows = by_name(promise_rows(theirs, ours))
    assert "ZeroDivisionError" in rows["on disk / flushed: 1 KiB, 256-KiB batches"].failed
    assert rows["replicated / page cache: 1 KiB, 256-KiB batches"].reached
    assert rows["on disk / page cache: 100 B, 256-KiB batches"].reached
