"""A run beside Kafka in which something fails: nothing that was measured is lost, and nothing else is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.kafka import command as kafka
from bench.kafka.rows import rows
from bench.kafka.table import NotMeasured, Samples


def raise_late() -> None:
    raise TimeoutError("the cluster was not there in time\nand so on")


def samples(name: str, **values: list[float]) -> Samples:
    found = Samples(name)
    for figure, rounds in values.items():
        for value in rounds:
            found.add(figure, value)
    return found


def test_a_figure_that_failed_is_not_tried_again_and_keeps_its_samples(capsys: pytest.CaptureFixture[str]) -> None:
    figures, tries = samples("ours", memory=[1.0], start=[2.0]), []

    def fail() -> None:
        tries.append(1)
        raise_late()

    figures.attempt(["memory"], fail)
    figures.attempt(["memory"], fail)
    assert len(tries) == 1 and figures["start"] == [2.0]
    assert figures.as_json() == {
        "samples": {"memory": [1.0], "start": [2.0]},
        "failed": {"memory": "TimeoutError: the cluster was not there in time"},
    }
    with pytest.raises(NotMeasured, match="ours: TimeoutError: the cluster was not there in time"):
        figures["memory"]
    assert "raise_late" in capsys.readouterr().out


def test_an_attempt_within_an_attempt_fails_alone() -> None:
    figures = Samples("ours")

    def outer() -> None:
        figures.add("produce", 1.0)
        figures.attempt(["consume"], raise_late)

    figures.attempt(["produce", "consume"], outer)
    assert figures["produce"] == [1.0] and list(figures.failed) == ["consume"]


def test_every_sample_and_every_failure_is_written() -> None:
    saved: list[dict[str, Any]] = []
    figures = Samples("ours", lambda: saved.append(json.loads(json.dumps(figures.as_json()))))
    figures.add("a", 1.0)
    figures.attempt(["b"], raise_late)
    assert [(list(one["samples"]), list(one["failed"])) for one in saved] == [(["a"], []), (["a"], ["b"])]


def test_a_row_says_why_it_was_not_measured_and_leaves_the_others() -> None:
    theirs = samples("Kafka", start=[5.0], **{"java kib": [10.0], "rdkafka kib": [10.0]})
    ours = samples("ours", start=[1.0], **{"java kib": [20.0], "of floor 6": [1.0]})
    ours.attempt(["of floor 6", "floor 6"], raise_late)
    found = {row.name: row for row in rows(["start", "produce"], theirs, ours)}
    assert found["produce 1 KiB, Java"].reached and found["start to first acknowledged write"].reached
    assert found["produce 1 KiB, librdkafka"].failed == "ours: nothing was measured"
    assert found["produce 1 KiB, 6 partitions"].failed == "ours: TimeoutError: the cluster was not there in time"
    assert found["produce 1 KiB, 6 partitions"].reached is None


def test_a_run_in_which_something_fails_ends_with_1_and_all_that_it_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    seen: list[dict[str, Any]] = []

    def measure(*given: Any) -> None:
        figures: Samples = given[-1]
        figures.add("start", 5.0 if figures.name == "Kafka" else 1.0)
        seen.append(json.loads(file.read_text()))
        if figures.name != "Kafka":
            figures.attempt(["memory"], raise_late)

    monkeypatch.setattr(kafka, "get_kafka", lambda: None)
    monkeypatch.setattr(kafka, "measure", measure)
    assert kafka.main(["start", "memory", "--json", str(file), "--folder", str(tmp_path)]) == 1
    assert seen[1]["samples"]["Kafka"]["samples"] == {"start": [5.0]} and seen[1]["rows"] == []
    saved = json.loads(file.read_text())
    assert saved["samples"]["quorumlog"]["samples"] == {"start": [1.0]}
    assert [(bool(row["failed"]), row["median"]) for row in saved["rows"]] == [(False, 5.0), (False, 1.0), (True, None)]
    assert "failed: Kafka: nothing was measured" in capsys.readouterr().out
    assert list(tmp_path.glob("*.tmp")) == []


def test_a_run_in_which_nothing_fails_ends_with_0(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kafka, "get_kafka", lambda: None)
    monkeypatch.setattr(kafka, "measure", lambda *given: given[-1].add("start", 1.0))
    assert kafka.main(["start", "--folder", str(tmp_path)]) == 0
    assert list(tmp_path.iterdir()) == []
