"""The table beside Kafka: ratios, goals, and a machine that has no Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import kafka
from bench.kafka_rows import beside
from bench.kafka_tools import Unavailable, get_kafka


def test_a_ratio_is_of_the_medians_and_its_ends_are_the_worst_and_the_best() -> None:
    _, row = beside("produce", "MB/s", [10.0, 20.0, 40.0], [30.0, 40.0, 50.0], goal=2.0)
    assert list(row.shares) == [30 / 40, 40 / 20, 50 / 10]
    assert row.reached


def test_less_is_better_where_it_says_so() -> None:
    _, row = beside("start", "s", [10.0], [3.0], goal=0.25, at_least=False)
    assert row.reached is False


def test_without_java_or_maven_it_says_so_and_ends_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(Unavailable, match="no java"):
        get_kafka(tmp_path)
    assert kafka.main([]) == 0
    assert "no java" in capsys.readouterr().out
