"""A quick run of `./dev bench spark`: our source and Spark's own give the same answer, and the run judges no goals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import spark
from bench.kafka_tools import missing
from bench.spark_tools import NEWEST, is_downloaded

RUN_S = 1_200  # of eleven sessions of Spark
NOT_DOWNLOADED = f"pyspark {NEWEST} and its connector are not here: run ./dev bench spark --quick once"
LISTED_SKIPS = ("no java", "no mvn", NOT_DOWNLOADED)


def why_not() -> str:
    return missing() or ("" if is_downloaded() else NOT_DOWNLOADED)


@pytest.mark.timeout(RUN_S)
def test_a_quick_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if reason := why_not():
        assert reason in LISTED_SKIPS or reason.startswith("java is "), f"a skip that is not listed: {reason}"
        pytest.skip(reason)
    figures = tmp_path / "figures.json"
    assert (
        spark.main(
            ["--quick", "--versions", NEWEST, "--records", "60000", "--folder", str(tmp_path), "--json", str(figures)]
        )
        == 0
    )
    found = json.loads(figures.read_text())
    assert found["settings"]["pyspark"] == [NEWEST]
    (turn,) = found["samples"][NEWEST]["rounds"]
    assert {answer[0] for session in turn.values() for answer in session["answers"]} == {found["settings"]["read"]}
    (other,) = found["samples"][NEWEST]["pipeline"]
    assert all(session["answers"] for pair in other.values() for session in pair.values())
    assert [row["name"] for row in found["rows"] if row["goal"] is not None] == []
    assert "judges no goals" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == [figures]
