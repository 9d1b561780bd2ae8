"""The short form of the virtual year: everything holds, and nothing grows. Its mutants are leaks that it must see."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from errno import EIO
from pathlib import Path

import pytest

from jepsen.__main__ import main
from jepsen.sim.machine.disk_faults import Fail
from jepsen.soak.gauges import GROWTH, QUARTER_MIN, Gauge, Gauges, Reading, too_little
from jepsen.soak.page import page
from jepsen.soak.year.moves import path_of
from jepsen.soak.year.run import run_year
from jepsen.soak.year.year import Year

DAYS = 20.0


@pytest.fixture(autouse=True)
def _the_level_of_logging_is_put_back() -> Iterator[None]:
    logger = logging.getLogger("quorumlog")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.mark.parametrize("seed", [2])
def test_nothing_grows_and_nothing_is_lost_in_some_days(seed: int) -> None:
    outcome = run_year(seed, DAYS)
    assert not outcome.findings, outcome.findings
    assert not outcome.lacking, list(map(str, outcome.lacking))
    assert all(count > 0 for count in outcome.counts.values()), outcome.counts
    text = page("some days", outcome.verdict, outcome.findings, outcome.counts, outcome.gauges)
    assert text.count("<svg") == sum(len(gauge.readings) > 1 for gauge in outcome.gauges.by_name.values()) > 15


def test_a_directory_that_failed_and_returned_leaves_no_file_open_that_is_gone() -> None:
    outcome = run_year(4, 5.5)  # a directory fails on day 4, and what its old logs had open leaves its logs after that
    assert not outcome.findings, outcome.findings
    assert outcome.counts["directories brought back"] and outcome.counts["segments that left"]


def test_a_stop_whose_syncs_fail_may_lose_what_the_topic_left_to_the_page_cache() -> None:
    year = Year(7)
    year.begin()
    model = next(one for one in year.models if one.kind.loses)
    log = year.machine.running.plane.registry.find(model.topic_id, model.index).log
    assert log is not None
    while log.synced_end == model.end:
        year._load()
    path = path_of(year.machine.running, model)
    year._undo_fault[path] = year.machine.plans.add(
        lambda operation: Fail(EIO) if operation.kind == "sync" and operation.path.endswith(".log") else None
    )
    before = model.end
    year._restart(year._stop)
    assert model.end < before and not year.machine.crashes
    year._look_at_all()
    year.drop()


def test_the_same_seed_is_the_same_run() -> None:
    first, again = run_year(1, 2.0), run_year(1, 2.0)
    assert first.counts == again.counts and not first.findings
    assert first.counts != run_year(2, 2.0).counts


def curve(values: list[float]) -> Gauge:
    gauge = Gauge("files")
    for at, value in enumerate(values):
        gauge.at.append(at)
        gauge.readings.append(Reading(value, 100.0))
    return gauge


def test_a_gauge_tells_what_passes_its_bound_and_what_grows() -> None:
    level = curve([50.0, 60.0, 40.0, 55.0] * QUARTER_MIN)
    assert level.excess == level.growth == ""
    rising = curve([10.0 + number for number in range(4 * QUARTER_MIN)])
    assert rising.growth and not rising.excess and "grows" in rising.growth
    rising.slack = 1_000.0
    assert not rising.growth
    assert curve([10.0] * 7 + [101.0]).excess.startswith("files is 101 at 7.0")
    slow = [100.0] * QUARTER_MIN * 2 + [100.0 * (1 + GROWTH / 2)] * QUARTER_MIN + [100.0 * (1 + GROWTH)] * QUARTER_MIN
    assert not curve(slow).growth
    assert not curve([1.0, 2.0, 3.0, 40.0]).growth  # too few samples to tell


def test_a_soak_that_did_too_little_says_so() -> None:
    counts = {"kills": 3, "batches": 10}
    assert not too_little(counts, {"kills": 1, "batches": 2}, 3.0)
    assert [str(one) for one in too_little(counts, {"kills": 1, "audits": 0.5}, 4.0)] == [
        "kills: 3 of 4",
        "audits: 0 of 2",
    ]
    assert Gauges("days").findings == []


def test_the_command_draws_the_curves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["soak", "--virtual-days", "1", "--seed", "3", "--report", str(tmp_path)])
    told = capsys.readouterr().out
    assert code in (0, 2) and "1 virtual days" in told and (tmp_path / "year.html").read_text().startswith("<!DOCTYPE")


@pytest.mark.parametrize(
    "options", [["--cluster", "--virtual-days", "1"], ["--virtual-hours", "1"]], ids=["days of a cluster", "no cluster"]
)
def test_a_length_of_another_soak_is_refused(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["soak", *options]) == 2 and "soak" in capsys.readouterr().out


@pytest.mark.parametrize("days", ["0", "-1", "x", "nan"])
def test_a_length_that_is_none_is_refused(days: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["soak", "--virtual-days", days])
    assert ended.value.code == 2
