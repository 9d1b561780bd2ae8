"""The second act's proof must fail for every kind of fault; and its members end with the demo, whatever happens."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from quorumlog_cli.demo import crew
from quorumlog_cli.demo.carriers import count_carriers, count_problems, sum_counts
from quorumlog_cli.demo.crew import Crew
from quorumlog_cli.demo.flights import figures_of, to_flights

CSV = """year,dep_delay,carrier,tailnum
2013,2,UA,N1
2013,NA,UA,N2
2013,-5,AA,NA
"""


def test_the_carrier_of_a_record() -> None:
    flights = to_flights(CSV)
    values = flights.records.column("value").to_pylist()
    counts = count_carriers(values, flights.columns.index("carrier"))
    assert counts == {"UA": 2, "AA": 1}
    assert count_problems(counts, figures_of(flights)) == []


def test_counts_are_added_up() -> None:
    assert sum_counts([(b"UA", b"2"), (b"AA", b"1"), (b"UA", b"5")]) == {"UA": 7, "AA": 1}


@pytest.mark.parametrize(
    ("counts", "named"),
    [
        ({"UA": 1, "AA": 1}, "UA"),  # a flight was lost
        ({"UA": 3, "AA": 1}, "UA"),  # one was counted twice
        ({"UA": 2}, "AA"),  # a carrier is missing
        ({"UA": 2, "AA": 1, "ZZ": 1}, "ZZ"),  # one that the CSV does not have
    ],
)
def test_a_count_that_differs_is_named(counts: dict[str, int], named: str) -> None:
    (problem,) = count_problems(counts, figures_of(to_flights(CSV)))
    assert problem.startswith(named)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Members run this script in place of their own."""
    script = tmp_path / "stub.py"
    made = crew.command
    monkeypatch.setattr(crew, "command", lambda number, arguments: [sys.executable, str(script), *made(number, [])[4:]])
    return script


def test_members_end_when_their_input_does(stub: Path, tmp_path: Path) -> None:
    stub.write_text("import sys; sys.stdin.read()")
    with Crew(3, [], tmp_path) as members:
        assert members.ended() == []
        assert members.end() == []


def test_a_member_that_fails_is_named_with_its_last_words(stub: Path, tmp_path: Path) -> None:
    stub.write_text("import sys; sys.stdin.read(); sys.exit('no more flights')")
    with Crew(1, [], tmp_path) as members:
        (problem,) = members.end()
    assert "member 0 ended with code 1: no more flights" in problem


def test_a_member_that_does_not_end_is_killed(stub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "END_TIMEOUT_S", 0.2)
    stub.write_text("import time; time.sleep(600)")
    with Crew(1, [], tmp_path) as members:
        process = members.processes[0]
        (problem,) = members.end()
    assert "did not end" in problem
    assert process is not None and process.returncode == -9
