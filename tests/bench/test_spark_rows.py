"""Spark beside its Kafka source: ratios by round, goals, wrong answers, and a machine that cannot run it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bench.measuring.report import Row
from bench.peers.kafka_tools import Unavailable
from bench.spark import command as spark
from bench.spark.part import Found, Part, Setting, rotated
from bench.spark.reads import reads_found
from bench.spark.rows import (
    COLD_GOAL,
    GRPC_GOAL,
    WARM_GOAL,
    Pair,
    PipelineRound,
    Round,
    Session,
    WrongAnswer,
    WrongWay,
    check_answers,
    check_counts,
    check_way,
    parse_session,
    pipeline_rows,
    rows,
)
from bench.spark.tools import NEWEST, OLDEST, get_spark, requirements

RECORDS = 600
ANSWER = (RECORDS, 60_000, 12_345)


def session(*reads_s: float, session_s: float = 4.0, used_s: float = 1.0) -> Session:
    return Session(
        version=NEWEST, session_s=session_s, reads_s=reads_s, used_s=[used_s] * len(reads_s),
        answers=[ANSWER] * len(reads_s),
    )  # fmt: skip


def named(found: Sequence[Row], name: str) -> Row:
    (row,) = [row for row in found if row.name == name]
    return row


TURN = Round(
    ours=session(6.0, 3.0, 2.0, 1.0),
    theirs=session(10.0, 6.0, 6.0, 6.0),
    empty=session(7.0, 2.0),
    quick=session(5.0, 1.5),
    lane=session(5.0, 1.4),
)


def counted(*runs_s: float, records: int = RECORDS) -> Session:
    return dataclasses.replace(session(*runs_s), answers=[(records,)] * len(runs_s))


PIPELINE = PipelineRound(
    stream=Pair(ours=counted(9.0, 2.0), theirs=counted(9.0, 5.0)),
    steady=Pair(ours=session(3.0, 0.2, 0.3, 0.2), theirs=session(3.0, 0.5)),
    load=Pair(ours=counted(6.0, 3.0), theirs=counted(9.0, 5.0)),
)


def test_streams_and_loads_count_by_their_rate_and_small_batches_by_their_time() -> None:
    found = pipeline_rows([PIPELINE], RECORDS, judged=True)
    stream, load = named(found, "stream of all, availableNow, later"), named(found, "load into Parquet, later")
    assert stream.rounds == [RECORDS / 2.0] and stream.shares == [2.5] and stream.reached
    assert load.rounds == [RECORDS / 3.0] and load.shares == [5.0 / 3.0] and load.reached is False
    steady = named(found, "batch of a stream, 1,000 records/s")
    assert steady.rounds == [0.2] and steady.shares == [0.2 / 0.5] and steady.reached
    assert named(found, "stream of all, availableNow, first").goal is None
    slow = dataclasses.replace(PIPELINE, steady=Pair(ours=session(1.0, 0.6), theirs=session(1.0, 0.5)))
    assert named(pipeline_rows([slow], RECORDS, judged=True), "batch of a stream, 1,000 records/s").reached is False
    assert [row.name for row in pipeline_rows([PIPELINE], RECORDS, judged=False) if row.goal is not None] == []


@pytest.mark.parametrize("work", ["stream", "load"])
def test_each_run_of_a_stream_and_of_a_load_counts_all_records(work: str) -> None:
    check_counts(PIPELINE, RECORDS)
    pair: Pair = getattr(PIPELINE, work)
    for side in ("ours", "theirs"):
        short = dataclasses.replace(pair, **{side: counted(1.0, records=RECORDS - 1)})
        with pytest.raises(WrongAnswer, match=f"{work}: {RECORDS - 1} of {RECORDS} records"):
            check_counts(dataclasses.replace(PIPELINE, **{work: short}), RECORDS)


def test_a_cold_read_is_the_first_and_its_share_is_of_the_same_round() -> None:
    other = Round(
        ours=session(9.0, 2.0), theirs=session(30.0, 6.0), empty=session(27.0, 2.0), quick=session(6.0, 1.0),
        lane=session(6.0, 1.0),
    )  # fmt: skip
    found = rows([TURN, other], RECORDS, judged=True)
    assert named(found, "first read of a session").shares == [6.0 / 10.0, 9.0 / 30.0]
    assert named(found, "first read of a session, empty cache").shares == [7.0 / 10.0, 27.0 / 30.0]
    assert named(found, "  from the start of its process").rounds == [10.0, 13.0]


def test_a_later_read_counts_by_the_median_of_its_session() -> None:
    found = rows([TURN], RECORDS, judged=True)
    assert named(found, "later reads").rounds == [RECORDS / 2.0]
    assert named(found, "Spark's: later reads").rounds == [RECORDS / 6.0]
    assert named(found, "later reads").shares == [3.0]


COLD = [("at the goal", 10 * COLD_GOAL, True), ("above the goal", 10 * COLD_GOAL + 0.1, False)]


@pytest.mark.parametrize(("ours_s", "reached"), [case[1:] for case in COLD], ids=[case[0] for case in COLD])
def test_the_goal_of_a_cold_read(ours_s: float, reached: bool) -> None:
    ours = session(ours_s, 1.0)
    turn = Round(ours=ours, theirs=session(10.0, 1.0), empty=ours, quick=ours, lane=ours)
    found = rows([turn], RECORDS, judged=True)
    assert named(found, "first read of a session").reached is reached
    assert named(found, "first read of a session, empty cache").reached is reached
    assert named(found, "first read of a session, quick start").reached is reached


WARM = [("at the goal", 5 / WARM_GOAL, True), ("slower", 5 / WARM_GOAL + 0.1, False)]


@pytest.mark.parametrize(("ours_s", "reached"), [case[1:] for case in WARM], ids=[case[0] for case in WARM])
def test_the_goal_of_later_reads(ours_s: float, reached: bool) -> None:
    ours = session(1.0, ours_s)
    found = rows([Round(ours=ours, theirs=session(1.0, 5.0), empty=ours, quick=ours, lane=ours)], RECORDS, judged=True)
    assert named(found, "later reads").reached is reached
    assert named(found, "later reads, quick start").reached is reached


@pytest.mark.parametrize(("by_grpc_s", "reached"), [(2.0, True), (2.3, False)])
def test_the_goal_of_grpc_is_of_the_lane_in_the_same_round(by_grpc_s: float, reached: bool) -> None:
    turn = dataclasses.replace(TURN, quick=session(5.0, by_grpc_s), lane=session(5.0, 2.0 * GRPC_GOAL + 0.05))
    found = named(rows([turn], RECORDS, judged=True), "later reads by gRPC, quick start")
    assert found.rounds == [RECORDS / by_grpc_s] and found.of == "the lane" and found.reached is reached


def test_a_session_has_to_be_read_the_way_that_its_name_says() -> None:
    check_way("lane-0", 0, 0)
    check_way("quick-0", 1_001, 1_000)
    with pytest.raises(WrongWay, match="lane-0: the brokers sent 1 bytes by gRPC, and should have sent none"):
        check_way("lane-0", 1, 0)
    with pytest.raises(WrongWay, match=r"quick-0: the brokers sent 999 bytes by gRPC, .* at least 1,000"):
        check_way("quick-0", 999, 1_000)


def test_a_run_that_is_not_judged_states_no_goal() -> None:
    found = rows([TURN], RECORDS, judged=False)
    assert found and [row.name for row in found if row.goal is not None or row.reached is not None] == []


def test_processor_time_is_left_out_where_it_is_unknown() -> None:
    def counted(turn: Round) -> list[str]:
        return [row.name for row in rows([turn], RECORDS, judged=True) if "processor time" in row.name]

    assert counted(TURN)
    assert counted(dataclasses.replace(TURN, empty=session(7.0, 2.0, used_s=0.0))) == []


def test_all_reads_of_a_round_must_agree() -> None:
    check_answers(TURN, RECORDS)
    with pytest.raises(WrongAnswer, match=f"{RECORDS} of {RECORDS + 1} records"):
        check_answers(TURN, RECORDS + 1)
    lost = dataclasses.replace(TURN.empty, answers=[ANSWER, (RECORDS - 1, 1, 1)])
    with pytest.raises(WrongAnswer, match=f"{RECORDS - 1}.*{RECORDS}"):
        check_answers(dataclasses.replace(TURN, empty=lost), RECORDS)


def test_a_session_is_read_from_the_last_line() -> None:
    wanted = session(2.0, 1.0)
    said = json.dumps({**dataclasses.asdict(wanted), "answers": [list(one) for one in wanted.answers]})
    assert parse_session(f"what Spark says\n\n{said}\n").reads_s == [2.0, 1.0]


def test_the_environment_holds_what_our_package_needs() -> None:
    text = '[project]\ndependencies = ["a>=1"]\noptional-dependencies = {arrow = ["b"], spark = ["c"]}\n'
    assert requirements(text, "4.2.0") == ["pyspark==4.2.0", "pandas", "a>=1", "b"]


def test_without_java_or_maven_it_says_so_and_ends_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(Unavailable, match="no java"):
        get_spark(folder=tmp_path)
    assert spark.main([]) == 0
    assert capsys.readouterr().out == "not measured with Spark: no java\n"


def test_packages_that_cannot_be_had_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, script in (("java", """echo 'openjdk version "17.0.1"' >&2"""), ("mvn", "echo no such artifact; exit 1")):
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(Unavailable, match=f"could not fetch the connector of Spark {OLDEST}: no such artifact"):
        get_spark(OLDEST, tmp_path / "out")
    assert not (tmp_path / "out" / f"connector-{OLDEST}").exists()


@pytest.mark.parametrize("quick", [False, True])
def test_a_run_ends_with_its_rows_and_its_goals(
    quick: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def read(setting: Setting) -> Iterator[Found]:
        assert setting.quick is quick
        for version, measured in ((NEWEST, ([TURN], [PIPELINE])), (OLDEST, ([TURN], []))):
            yield reads_found(version, measured, RECORDS, judged=not quick)

    monkeypatch.setattr(spark, "get_spark", lambda version: None)
    monkeypatch.setattr(spark, "PARTS", {"read": read, "sink": lambda setting: iter([])})
    figures = tmp_path / "figures.json"
    options = ["--folder", str(tmp_path), "--json", str(figures), *(["--quick"] if quick else [])]
    assert spark.main(options) == 0
    said = capsys.readouterr().out
    assert all(said.count(f"pyspark {version} on both sides") == 1 for version in (NEWEST, OLDEST))
    found = json.loads(figures.read_text())
    assert found["settings"]["pyspark"] == [NEWEST, OLDEST] and found["settings"]["read"] == RECORDS
    assert found["settings"]["parts"] == ["read", "sink"]
    assert found["samples"][OLDEST]["rounds"][0]["theirs"]["reads_s"] == [10.0, 6.0, 6.0, 6.0]
    stated = [row["name"] for row in found["rows"] if row["goal"] is not None]
    assert bool(stated) is not quick
    cold = "first read of a session, empty cache"
    missed = [f"{NEWEST}: {cold}", f"{NEWEST}: load into Parquet, later", f"{OLDEST}: {cold}"]
    wanted = "a quick run judges no goals" if quick else f"3 goals missed: {'; '.join(missed)}"
    assert said.splitlines()[-1] == wanted
    assert list(tmp_path.iterdir()) == [figures]


def test_one_part_may_be_chosen_and_needs_the_newest_version_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked, ran = [], []

    def part(name: str) -> Part:
        return lambda setting: iter(ran.append((name, setting.rounds, setting.records)) or [])

    monkeypatch.setattr(spark, "get_spark", asked.append)
    monkeypatch.setattr(spark, "PARTS", {name: part(name) for name in ("read", "sink", "commit", "mirror")})
    words = ["--only", "mirror", "commit", "--rounds", "2", "--records", "7", "--folder", str(tmp_path)]
    assert spark.main(words) == 0
    assert asked == [NEWEST] and ran == [("mirror", 2, 7), ("commit", 2, 7)]


def test_each_session_is_the_first_of_a_round_as_often_as_any_other() -> None:
    names = ["ours", "theirs", "empty"]
    orders = [rotated(names, number) for number in range(6)]
    assert [order[0] for order in orders] == names * 2
    assert all(sorted(order) == sorted(names) for order in orders)
