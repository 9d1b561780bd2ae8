"""Quick runs of `./dev bench spark`: both sides give the same answers, and the run judges no goals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.peers import mirror_maker
from bench.peers.kafka_tools import missing
from bench.spark import command as spark
from bench.spark.commit import QUICK_BATCHES, TASKS
from bench.spark.sink import QUICK_RUNS
from bench.spark.tools import NEWEST, is_downloaded

RUN_S = 1_200  # of eleven sessions of Spark
NOT_DOWNLOADED = f"pyspark {NEWEST} and its connector are not here: run ./dev bench spark --quick once"
NO_MAKER = "MirrorMaker 2 is not here: run ./dev bench spark --quick --only mirror once"
LISTED_SKIPS = ("no java", "no mvn", NOT_DOWNLOADED, NO_MAKER)


def skip_if(reason: str) -> None:
    if reason:
        assert reason in LISTED_SKIPS or reason.startswith("java is "), f"a skip that is not listed: {reason}"
        pytest.skip(reason)


def why_not() -> str:
    return missing() or ("" if is_downloaded() else NOT_DOWNLOADED)


def quick_run(part: str, folder: Path, *more: str) -> dict[str, Any]:
    """The figures of one part."""
    figures = folder / "figures.json"
    words = ["--only", part, "--quick", "--versions", NEWEST, "--folder", str(folder), "--json", str(figures), *more]
    assert spark.main(words) == 0
    found: dict[str, Any] = json.loads(figures.read_text())
    assert found["settings"]["pyspark"] == [NEWEST] and found["settings"]["parts"] == [part]
    assert found["rows"] and [row["name"] for row in found["rows"] if row["goal"] is not None] == []
    assert list(folder.iterdir()) == [figures]
    return found


@pytest.mark.timeout(RUN_S)
def test_a_quick_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    skip_if(why_not())
    found = quick_run("read", tmp_path, "--records", "60000")
    (turn,) = found["samples"][NEWEST]["rounds"]
    assert {answer[0] for session in turn.values() for answer in session["answers"]} == {found["settings"]["read"]}
    (other,) = found["samples"][NEWEST]["pipeline"]
    assert all(session["answers"] for pair in other.values() for session in pair.values())
    assert "judges no goals" in capsys.readouterr().out


@pytest.mark.timeout(RUN_S)
def test_a_quick_run_of_sinks(tmp_path: Path) -> None:
    skip_if(why_not())
    (turn,) = quick_run("sink", tmp_path, "--records", "60000")["samples"]["sink"]
    assert {len(session["reads_s"]) for sinks in turn.values() for session in sinks.values()} == {QUICK_RUNS}


@pytest.mark.timeout(RUN_S)
def test_a_quick_run_of_commits(tmp_path: Path) -> None:
    skip_if(why_not())
    (turn,) = quick_run("commit", tmp_path)["samples"]["commit"]
    assert {commit["attempts"] for commit in turn["commits"]} == {TASKS}
    assert all("CommitJoint" in dict(commit["calls"]) for commit in turn["commits"])
    assert len(turn["windows_ms"]) >= QUICK_BATCHES


@pytest.mark.timeout(RUN_S)
def test_a_quick_run_of_mirrors(tmp_path: Path) -> None:
    skip_if(why_not() or ("" if mirror_maker.is_downloaded() else NO_MAKER))
    (turn,) = quick_run("mirror", tmp_path, "--records", "20000")["samples"]["mirror"]
    assert set(turn) == {"ours", "maker", "maker_once"} and all(copy["copied_s"] > 0 for copy in turn.values())
