"""Live runs as a whole: a minute of every fault, the way for machines that allow nothing, and an interrupt."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from jepsen.live.disks.ways import EDGE
from jepsen.live.plan import Kind
from jepsen.live.report.report import FACTS, PAGE

ROOT = Path(__file__).resolve().parents[2]


def command(report: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "jepsen", "live", "--report", str(report), *options]


def facts_of(report: Path) -> dict[str, Any]:
    assert (report / PAGE).stat().st_size > 0
    facts: dict[str, Any] = json.loads((report / FACTS).read_text())
    return facts


def run(report: Path, *options: str) -> dict[str, Any]:
    """The facts of a run that must be valid."""
    done = subprocess.run(command(report, *options), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return facts_of(report)


def assert_exercised(facts: dict[str, Any], kinds: list[Kind]) -> None:
    assert facts["verdict"] == "VALID" and facts["findings"] == []
    assert all(minimum["met"] for minimum in facts["minimums"])
    assert {strike["kind"] for strike in facts["strikes"] if strike["bit"]} == {kind.value for kind in kinds}
    assert all(blow["evidence"] for strike in facts["strikes"] for blow in strike["blows"])


@pytest.mark.timeout(320)
def test_a_minute_of_every_fault_breaks_no_promise(tmp_path: Path) -> None:
    facts = run(tmp_path / "report", "--minutes", "1", "--seed", "1")
    assert_exercised(facts, list(Kind))
    assert facts["acknowledged"] > 5_000
    assert facts["strikes_until_ms"] - facts["strikes_from_ms"] > 30_000


@pytest.mark.timeout(240)
def test_disks_are_struck_where_neither_strace_nor_a_mount_is_allowed(tmp_path: Path) -> None:
    kinds = [Kind.FAILING_DISK, Kind.FULL_DISK, Kind.LOW_DISK, Kind.HUNG_DISK]
    names = ",".join(kind.value for kind in kinds)
    facts = run(tmp_path / "report", "--minutes", "0", "--seed", "2", "--edge-only", "--faults", names)
    assert_exercised(facts, kinds)
    assert dict.fromkeys(facts["ways"].values()) == {EDGE: None}


@pytest.mark.timeout(240)
def test_a_scenario_strikes_one_directory_and_brings_it_back(tmp_path: Path) -> None:
    """A smoke of the scenarios; the verb runs all of them."""
    facts = run(tmp_path / "report", "--scenario", "directories", "--steps", "enospc", "--edge-only")
    assert facts["verdict"] == "VALID" and facts["findings"] == []
    (strike,) = [one for one in facts["strikes"] if one["bit"]]
    assert "log-dirs online brought it back" in strike["blows"][0]["evidence"]


@pytest.mark.timeout(300)
def test_an_interrupt_ends_the_faults_writes_the_report_and_leaves_no_process(tmp_path: Path) -> None:
    """A node is paused when the interrupt comes."""
    options = ("--minutes", "5", "--seed", "1", "--faults", "pause")
    with subprocess.Popen(command(tmp_path, *options), cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        started: list[psutil.Process] = []
        try:
            for line in process.stdout:
                if "acknowledged" in line:
                    break
            started = psutil.Process(process.pid).children(recursive=True)
            assert len(started) >= 3
            process.send_signal(signal.SIGINT)
            rest = process.stdout.read()
            process.wait()
        finally:
            process.kill()
    assert "interrupted" in rest
    facts = facts_of(tmp_path)
    assert facts["interrupted"] and facts["findings"] == []
    assert process.returncode == facts["exit_code"]
    assert [child for child in started if child.is_running()] == []
