"""The third act's proof must fail for every kind of fault; and its driver ends with the demo, whatever happens."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from quorumlog.spark.session.java import NoJava
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.demo import driver, third_act
from quorumlog_cli.demo.driver import Driver
from quorumlog_cli.demo.flights import Figures, figures_of, to_flights
from quorumlog_cli.demo.totals import Total, flights_counted, total_problems

CSV = """year,dep_delay,carrier,tailnum
2013,2,UA,N1
2013,NA,UA,N2
2013,-5,AA,NA
2013,7,DL,N3
"""
FIRST = [Total(1_000, "UA", 1), Total(1_000, "AA", 1)]
LAST = [Total(2_000, "UA", 2), Total(2_000, "AA", 1), Total(2_000, "DL", 1)]
TOO_FEW = [Total(2_000, "UA", 1), *LAST[1:]]
WAIT_S = 30.0
GONE_S = 10.0


def figures() -> dict[str, Figures]:
    return figures_of(to_flights(CSV))


def test_a_good_run() -> None:
    assert total_problems([*LAST, *FIRST], 2, figures()) == [], "partitions are read in any order"
    assert flights_counted([]) == 0 and flights_counted(FIRST) == 2 and flights_counted([*FIRST, *LAST]) == 4


FAULTS = [
    ("a batch is lost", FIRST + LAST, 3, "the checkpoint has 3 batches, the topic 2"),
    ("a batch is written twice at another time", [*FIRST, *LAST, *(one._replace(time_ms=3_000) for one in LAST)], 2,
     "the checkpoint has 2 batches, the topic 3"),
    ("a batch is repeated", FIRST + FIRST + LAST, 2, "batch 0 is there twice"),
    ("a part of a batch is repeated", [*FIRST, *LAST, LAST[0]], 2, "batch 1 is there twice"),
    ("a batch is torn", [*FIRST, *LAST, *(one._replace(time_ms=3_000) for one in LAST[1:])], 3,
     "batch 2, UA: nothing follows 2 flights"),
    ("a count falls", [*LAST, *(one._replace(time_ms=3_000) for one in TOO_FEW)], 2, "batch 1, UA: 1 follows 2"),
    ("a flight was not counted", FIRST + TOO_FEW, 2, "UA: the CSV has 2 flights, the stream counted 1"),
    ("one was counted twice", [*FIRST, *LAST[:2], Total(2_000, "DL", 2)], 2, "DL: the CSV has 1 flights, the stream "),
    ("nothing is there", [], 0, "AA: the CSV has 1 flights, the stream counted 0"),
]  # fmt: skip


@pytest.mark.parametrize(("totals", "batches", "named"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_faults_are_named(totals: list[Total], batches: int, named: str) -> None:
    assert any(problem.startswith(named) for problem in total_problems(totals, batches, figures()))


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The driver runs this script in place of its own."""
    script = tmp_path / "stub.py"
    monkeypatch.setattr(driver, "command", lambda arguments: [sys.executable, str(script), *arguments])
    return script


def test_a_driver_that_fails_is_told_with_its_last_words(stub: Path, tmp_path: Path) -> None:
    stub.write_text("import sys; sys.exit('no such topic')")
    with Driver([], tmp_path / "log") as running:
        wait_until(lambda: running.has_ended, WAIT_S, "its end")
        assert running.problems() == ["the driver ended with code 1: no such topic"]


def test_a_driver_is_killed_with_the_processes_of_its_session(stub: Path, tmp_path: Path) -> None:
    """As Java is, which would go on for a second."""
    stub.write_text(
        "import os, pathlib, sys, time\nif not os.fork(): pathlib.Path(sys.argv[1]).touch()\ntime.sleep(600)"
    )
    with Driver([str(tmp_path / "child")], tmp_path / "log") as running:
        wait_until(lambda: (tmp_path / "child").exists(), WAIT_S, "its child")
        first = running.process
        assert first is not None and not running.has_ended
        running.kill()
        assert first.returncode == -9 and group_is_gone(first.pid)
        running.start()
        second = running.process
    assert second is not None and second.returncode == -9 and group_is_gone(second.pid)


def group_is_gone(group: int) -> bool:
    """A process that was killed may take a moment to end."""
    deadline_s = time.monotonic() + GONE_S
    while time.monotonic() < deadline_s:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def test_without_java_or_with_an_older_spark_it_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    from quorumlog.spark.format import stream_source

    monkeypatch.setattr(third_act, "use_java", lambda: None)
    monkeypatch.setattr(stream_source, "HAS_LIMITS", True)
    assert third_act.why_not() == ""
    monkeypatch.setattr(stream_source, "HAS_LIMITS", False)
    assert third_act.why_not().startswith("the third act is skipped: below Spark 4.2")

    def none() -> None:
        raise NoJava("Spark needs Java 17 or newer: install one")

    monkeypatch.setattr(third_act, "use_java", none)
    assert third_act.why_not().endswith("is skipped: Spark needs Java 17 or newer: install one")
