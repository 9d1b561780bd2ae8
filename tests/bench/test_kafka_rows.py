"""The table beside Kafka: ratios, goals, and a machine that has no Kafka."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.kafka import command as kafka
from bench.kafka.rows import rows
from bench.kafka.table import Samples, beside
from bench.peers.kafka_tools import Unavailable, get_kafka


def test_a_ratio_is_of_the_medians_and_its_ends_are_the_worst_and_the_best() -> None:
    _, row = beside("produce", "MB/s", [10.0, 20.0, 40.0], [30.0, 40.0, 50.0], goal=2.0)
    assert list(row.shares) == [30 / 40, 40 / 20, 50 / 10]
    assert row.reached


def test_less_is_better_where_it_says_so() -> None:
    _, row = beside("start", "s", [10.0], [3.0], goal=0.25, at_least=False)
    assert row.reached is False


def run_start(monkeypatch: pytest.MonkeyPatch, folder: Path, *options: str) -> list[dict[str, Any]]:
    """The rows of a run of one part that reaches its goal."""
    file = folder / "figures.json"
    values = {"Kafka": 10.0, "quorumlog": 1.0}
    monkeypatch.setattr(kafka, "get_kafka", lambda: None)
    monkeypatch.setattr(kafka, "measure", lambda *given: given[-1].add("start", values[given[-1].name]))
    assert kafka.main(["start", *options, "--json", str(file), "--folder", str(folder)]) == 0
    rows: list[dict[str, Any]] = json.loads(file.read_text())["rows"]
    return rows


def test_a_quick_run_judges_no_goals_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its Kafka is cold, and would let every goal be reached."""
    rows = run_start(monkeypatch, tmp_path, "--quick")
    assert [(row["goal"], row["reached"]) for row in rows] == [(None, None), (None, None)]
    said = capsys.readouterr().out
    assert "reached" not in said and "goals missed" not in said
    assert "no goals: --quick does not warm the clusters" in said


def test_a_whole_run_judges_its_goals(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [row["reached"] for row in run_start(monkeypatch, tmp_path)] == [None, True]
    assert "0 goals missed" in capsys.readouterr().out


def test_figures_of_a_kafka_that_did_not_get_warm_have_no_goals() -> None:
    theirs, ours = Samples("Kafka"), Samples("quorumlog")
    for of, warm_up in ((theirs, [20.0, 40.0]), (ours, [60.0, 61.0])):
        of.add("java kib", 10.0)
        of.add("start", 1.0)
        for rate in warm_up:
            of.add("warm-up", rate)
    found = rows(["start", "produce"], theirs, ours)
    assert [row.note for row in found if row.name == "warm-up"] == [
        "not warm: Kafka: rounds 1 and 2 differ by 100 %; no goals for produce, consume, latency"
    ]
    judged = [row.name for row in found if row.goal is not None]
    assert judged == ["start to first acknowledged write"]


GOALS = [
    ("p50, 1 KiB at 2,000/s, Java, linger 0 ms", 1.5),
    ("p99, 1 KiB at 2,000/s, Java, linger 0 ms", 0.3),
    ("p50, 1 KiB at 2,000/s, Java, linger 5 ms", 0.5),
    ("p99, 1 KiB at 20,000/s, Java, linger 0 ms", 0.5),
    ("produce 1 KiB, own best", 2.5),
    ("produce 100 B, own best", 2.5),
    ("produce 1 KiB, Java", 1.3),
    ("produce 1 KiB, Java defaults", 1.0),
]


@pytest.mark.parametrize(("name", "goal"), GOALS)
def test_the_goals(name: str, goal: float) -> None:
    theirs, ours = Samples("Kafka"), Samples("quorumlog")
    for of in (theirs, ours):
        for figure in ("java kib", "rdkafka kib", "java small", "rdkafka small", "java defaults kib", "own kib",
                       "own small", *(f"{part} {rate} {linger}" for part in ("p50", "p99") for rate in (2000, 20000)
                                      for linger in (0, 5))):  # fmt: skip
            of.add(figure, 1.0)
    assert {row.goal for row in rows(["produce", "latency"], theirs, ours) if row.name == name} == {goal}


def test_without_java_or_maven_it_says_so_and_ends_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(Unavailable, match="no java"):
        get_kafka(tmp_path)
    assert kafka.main([]) == 0
    assert "no java" in capsys.readouterr().out
