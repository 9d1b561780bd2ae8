"""What a run of the pipeline draws, what it has to exercise, which cells the matrix has, and how places are held."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from jepsen.checkers.findings import Finding
from jepsen.pipeline import matrix
from jepsen.pipeline.cells import KILLED, Cell, Way, cells, chosen
from jepsen.pipeline.command import COULD_NOT_RUN
from jepsen.pipeline.history import Planned, Shape
from jepsen.pipeline.places import BOTH, RAISES_AFTER, RAISES_BEFORE, STOP, Folder, Place
from jepsen.pipeline.run import Options, Outcome
from jepsen.pipeline.spark_processes import ROOT, of_session
from jepsen.pipeline.strikes import Strike
from jepsen.pipeline.targets import Target, targets
from jepsen.pipeline.world import planned_end, planned_of
from tests.jepsen.test_nightly_table import parsed

OPTIONS = Options(minutes=1.0, kills=14, seed=1, shape=Shape.MAP, per_second=100.0)


def struck(number: int, target: Target, *, bit: bool = True, rows: int = 900) -> Strike:
    return Strike(number, target, "kill -9", bit, 1.0 * number, rows, 9, 1)


def outcome(strikes: list[Strike], decided: int = 30, options: Options = OPTIONS) -> Outcome:
    return Outcome(options, strikes=strikes, counts={"batches decided": decided})


ALL = [struck(number, target) for number, target in enumerate([*Target, *Target])]


def test_each_deck_has_every_target_once_and_a_seed_draws_the_same_again() -> None:
    first, again = ([*itertools.islice(targets(random.Random(7), tuple(Target)), 21)] for _ in range(2))
    assert first == again
    assert all(set(first[at : at + 7]) == set(Target) for at in (0, 7, 14))
    assert first != [*itertools.islice(targets(random.Random(8), tuple(Target)), 21)]


def test_a_run_that_met_all_targets_is_valid_and_tells_of_each() -> None:
    found = outcome(ALL)
    assert found.verdict == "VALID", [str(one) for one in found.minimums if not one.is_met]
    assert len(found.by_target) == len(Target)
    assert found.by_target[0] == "driver: 2 kills, 2 bit, 900 to 900 rows acknowledged at them"
    json.dumps(found.facts())


@pytest.mark.parametrize("target", Target)
def test_without_a_target_it_is_too_little(target: Target) -> None:
    others = [one for one in ALL if one.target is not target]
    assert outcome([*others, *others]).verdict == "NOT EXERCISED"
    missed = [struck(one.number, one.target, bit=one.target is not target) for one in [*ALL, *ALL]]
    assert outcome(missed).verdict == "NOT EXERCISED"


def test_few_kills_few_batches_or_kills_before_any_row_are_too_little() -> None:
    assert outcome(ALL[:13]).verdict == "NOT EXERCISED"
    assert outcome(ALL, decided=6).verdict == "NOT EXERCISED"
    assert outcome([struck(one.number, one.target, rows=0) for one in ALL]).verdict == "NOT EXERCISED"


def test_fewer_kills_than_targets_need_not_meet_all_of_them() -> None:
    options = dataclasses.replace(OPTIONS, kills=3)
    assert outcome(ALL[:3], options=options).verdict == "VALID"
    assert outcome(ALL[:2], options=options).verdict == "NOT EXERCISED"
    assert outcome(ALL[:3], options=dataclasses.replace(OPTIONS, kills=0)).verdict == "NOT EXERCISED"


def test_a_finding_is_invalid_whatever_was_exercised() -> None:
    found = outcome([])
    found.findings.append(Finding("pipeline-torn", "batch 3"))
    assert found.verdict == "INVALID"


# --- the matrix ---


def test_the_matrix_is_whole() -> None:
    assert len(cells()) == len(set(cells())) == len(KILLED) * len(Place) * len(Way) * 2
    impossible = Counter(cell.place for cell in cells() if cell.impossible)
    assert impossible == dict.fromkeys((Place.FIRST_SEND, Place.RECORD, Place.MARKERS), len(KILLED) * len(Way))
    assert all(cell.replay for cell in cells() if cell.impossible)
    assert len(chosen(())) == len(cells()) - impossible.total()


def test_cells_are_chosen_by_how_they_begin() -> None:
    assert len(chosen(["driver"])) == 27 and len(chosen(["driver/record"])) == 3
    assert chosen(["leader/after/stop"]) == [Cell(Target.LEADER, Place.AFTER, Way.STOP)]
    assert chosen(["leader/after/stop/replay"]) == [Cell(Target.LEADER, Place.AFTER, Way.STOP, True)]
    for cell in chosen(()):
        assert chosen([str(cell)]) == [cell]
    with pytest.raises(ValueError, match="no such cell"):
        chosen(["leader", "lead"])
    with pytest.raises(ValueError, match="gets no second record"):
        chosen(["driver/record/stop/replay"])


def test_a_commit_raises_before_or_behind_the_decision_as_the_place_says() -> None:
    orders = {(cell.place, cell.way): cell.order for cell in chosen(["driver"])}
    assert orders[Place.COMMIT, Way.RAISES] == orders[Place.RETURNS, Way.RAISES] == RAISES_BEFORE
    assert orders[Place.MARKERS, Way.RAISES] == orders[Place.AFTER, Way.RAISES] == RAISES_AFTER
    assert orders[Place.RECORD, Way.STOP] == STOP and orders[Place.RECORD, Way.BOTH] == BOTH


def test_a_cell_that_was_not_reached_is_too_little() -> None:
    wanted = chosen(["driver/record"])
    found = matrix.Outcome(wanted, [matrix.Played(cell, 1.0) for cell in wanted])
    assert found.verdict == "VALID" and found.reached == 3
    assert sum(line.startswith("impossible, 15 cells: */") for line in found.table()) == 3
    found.played[1] = matrix.Played(wanted[1], 1.0, "nobody came")
    assert found.verdict == "NOT EXERCISED" and "NOT REACHED: nobody came" in found.table()[1]
    assert matrix.Outcome(wanted, found.played[:1]).verdict == "NOT EXERCISED"
    found.findings.append(Finding("pipeline-torn", "batch 3"))
    assert found.verdict == "INVALID"


# --- what the processes tell each other ---


def test_one_comes_to_a_place_and_leaves_it_when_it_is_released(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert not folder.comes_to(Place.COMMIT), "nobody holds it"
    folder.hold(Place.COMMIT)
    assert not folder.is_reached(Place.COMMIT) and not folder.comes_to(Place.AFTER)
    assert folder.comes_to(Place.COMMIT) and folder.is_reached(Place.COMMIT)
    assert not folder.comes_to(Place.COMMIT), "another one is there"
    assert not folder.is_left(Place.COMMIT)
    folder.release(Place.COMMIT)
    assert folder.is_left(Place.COMMIT) and not folder.comes_to(Place.COMMIT)
    folder.wait_at(Place.COMMIT)


def test_an_order_is_taken_once(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.order(STOP)
    assert folder.has(STOP) and folder.take(STOP) and not folder.take(STOP) and not folder.has(STOP)


def test_events_are_whole_lines(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.events() == []
    folder.tell({"event": "started"})
    folder.tell({"event": "decided", "batch": 1})
    with (tmp_path / "events").open("a") as file:
        file.write('{"event": "dec')
    assert [one["event"] for one in folder.events()] == ["started", "decided"]
    with (tmp_path / "events").open("a") as file:
        file.write('ided"}\n')
    assert (
        [one["event"] for one in folder.events()]
        == ["started", "decided", "decided"]
        == [one["event"] for one in folder.events()]
    )


def test_plans_are_read_from_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    for number, ends in ((0, {"0": 3, "1": 5}), (10, {"0": 4, "1": 9}), (2, {"0": 3, "1": 7})):
        offset = json.dumps({"v": 1, "c": "cluster", "o": {"from": ends}, "t": {}, "e": {}})
        (tmp_path / "offsets" / str(number)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{offset}')
        (tmp_path / "offsets" / f".{number}.crc").write_bytes(b"crc")
    (tmp_path / "offsets" / ".11.6d1e.tmp").write_text("half a pl")
    found = planned_of(tmp_path)
    assert found == [Planned(0, {0: 3, 1: 5}), Planned(2, {0: 3, 1: 7}), Planned(10, {0: 4, 1: 9})]


def test_the_newest_plan_is_found_without_the_others(tmp_path: Path) -> None:
    assert planned_end(tmp_path) == 0, "Spark has not begun"
    (tmp_path / "offsets").mkdir()
    for number, end in ((9, 30), (10, 40)):
        offset = json.dumps({"v": 1, "c": "cluster", "o": {"from": {"0": end, "1": 2}}, "t": {}, "e": {}})
        (tmp_path / "offsets" / str(number)).write_text(f"v1\n{{}}\n{offset}")
    assert planned_end(tmp_path) == 42


def test_processes_of_a_session_are_found() -> None:
    mine = of_session(os.getsid(0))
    assert os.getpid() in [one.pid for one in mine]


# --- the command ---


def test_other_verbs_do_not_load_spark() -> None:
    code = "import sys, jepsen.__main__; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--cells", "driver"), "names cells of the --matrix"),
        (("--matrix", "--kafka", "localhost:9092"), "holds nodes of ours"),
        (("--matrix", "--cells", "pilot"), "no such cell"),
    ],
)
def test_options_that_do_not_go_together(
    words: tuple[str, ...], why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from jepsen.pipeline.command import pipeline

    assert pipeline(parsed(("pipeline", *words), monkeypatch)) == COULD_NOT_RUN
    assert why in capsys.readouterr().err
