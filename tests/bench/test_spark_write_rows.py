"""What Spark writes beside its own sink and MirrorMaker 2: ratios by round, goals, and answers that cannot be."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from bench.measuring.report import Row, percentile
from bench.peers.mirror_maker import properties
from bench.spark.commit import (
    ROWS,
    TASKS,
    Commit,
    CommitRound,
    Sightings,
    calls_of,
    commit_found,
    read_commits,
)
from bench.spark.mirror import Copy, MirrorRound, mirror_found
from bench.spark.rows import Session, WrongAnswer
from bench.spark.sink import Sinks, check_written, sink_found

RECORDS = 600


def session(*runs_s: float) -> Session:
    answers = [(RECORDS,)] * len(runs_s)
    return Session(version="4.2.0", session_s=4.0, reads_s=runs_s, used_s=[1.0] * len(runs_s), answers=answers)


def named(found: Sequence[Row], name: str) -> list[Row]:
    return [row for row in found if row.name == name]


def sinks(once_s: float, least_s: float, theirs_s: float) -> Sinks:
    return Sinks(once=session(9.0, once_s), least=session(9.0, least_s), theirs=session(9.0, theirs_s))


AT_THE_GOALS = sinks(5.0, 3.0, 6.0)
BELOW = sinks(5.1, 3.1, 6.0)


def test_a_sink_counts_by_its_later_runs_beside_sparks_of_the_same_round() -> None:
    rounds = [{"sink": AT_THE_GOALS, "sink_stream": BELOW}, {"sink": sinks(1.0, 1.0, 4.0), "sink_stream": BELOW}]
    rows = sink_found("4.2.0", rounds, RECORDS, judged=True).rows
    (once,) = named(rows, "exactly once: sink, later")
    assert once.rounds == [RECORDS / 5.0, RECORDS / 1.0] and once.shares == [6.0 / 5.0, 4.0]
    assert named(rows, "exactly once: sink, first")[0].goal is None
    (theirs,) = named(rows, "Spark's: sink, later")
    assert theirs.rounds == [RECORDS / 6.0, RECORDS / 4.0] and theirs.goal is None
    assert named(rows, "at least once: sink, processor time of a later run")[0].shares == [1.0, 1.0]
    assert [row.name for row in sink_found("4.2.0", rounds, RECORDS, judged=False).rows if row.goal] == []


@pytest.mark.parametrize(("turn", "reached"), [(AT_THE_GOALS, True), (BELOW, False)])
@pytest.mark.parametrize("work", ["sink", "stream into the sink"])
@pytest.mark.parametrize(("delivery", "goal"), [("exactly once", 1.2), ("at least once", 2.0)])
def test_the_goals_of_a_sink(turn: Sinks, reached: bool, work: str, delivery: str, goal: float) -> None:
    rows = sink_found("4.2.0", [{"sink": turn, "sink_stream": turn}], RECORDS, judged=True).rows
    (row,) = named(rows, f"{delivery}: {work}, later")
    assert (row.goal, row.reached) == (goal, reached)


def test_a_sinks_topic_has_each_row_once() -> None:
    check_written("sink", 6, 6)
    for found in (5, 7):
        with pytest.raises(WrongAnswer, match=f"sink: the topic has {found} records, and 6 rows were written"):
            check_written("sink", found, 6)


PERCENTILES = [
    ("of one", [7.0], 99, 7.0),
    ("the median of ten is the fifth", [float(n) for n in range(10, 0, -1)], 50, 5.0),
    ("90 of ten", [float(n) for n in range(1, 11)], 90, 9.0),
    ("99 of a hundred is the last but one", [float(n) for n in range(1, 101)], 99, 99.0),
    ("99 of ten is the largest", [float(n) for n in range(1, 11)], 99, 10.0),
]


@pytest.mark.parametrize(("values", "percent", "want"), [c[1:] for c in PERCENTILES], ids=[c[0] for c in PERCENTILES])
def test_percentile(values: list[float], percent: int, want: float) -> None:
    assert percentile(values, percent) == want
    assert sum(value <= want for value in values) * 100 >= percent * len(values)


def commit(batch: int, taken_ms: float, attempts: int = TASKS) -> Commit:
    calls = (("FindCoordinator", 1.0), ("CommitJoint", taken_ms - 2.0))
    return Commit(batch=batch, taken_ms=taken_ms, attempts=attempts, calls=calls)


def commit_round(*taken_ms: float) -> CommitRound:
    commits = [commit(number, taken) for number, taken in enumerate(taken_ms, 1)]
    return CommitRound(session=session(9.0, 1.0), commits=commits, windows_ms=[4.0, 6.0, 8.0])


@pytest.mark.parametrize(("median_ms", "reached"), [(150.0, True), (151.0, False)])
def test_a_commit_is_judged_by_its_median(median_ms: float, reached: bool) -> None:
    found = commit_found("4.2.0", [commit_round(10.0, median_ms, 900.0)], judged=True).rows
    (p50,), (p90,) = named(found, "commit, p50"), named(found, "commit, p90")
    assert p50.rounds == [median_ms] and p50.reached is reached
    assert p90.rounds == [900.0] and p90.goal is None
    assert named(found, "from the first marker seen to the last, p50")[0].rounds == [6.0]
    assert [row for row in commit_found("4.2.0", [commit_round(1.0, 2.0)], judged=False).rows if row.goal] == []


def test_the_calls_of_a_commit_are_counted_by_their_names() -> None:
    told = calls_of([commit_round(10.0, 20.0), commit_round(30.0, 40.0)])
    assert list(told) == ["CommitJoint", "FindCoordinator"]
    assert told["FindCoordinator"].startswith("1.00 calls a commit, each p50 1.0 ms")
    assert told["CommitJoint"].startswith("1.00 calls a commit, each p50 23.0 ms, p90 38.0 ms")


def test_a_commit_of_fewer_tasks_is_no_commit_of_eight() -> None:
    def text(attempts: int) -> str:
        return json.dumps({"batch": 3, "taken_ms": 5.0, "attempts": attempts, "calls": [["CommitJoint", 4.0]]}) + "\n"

    assert [one.batch for one in read_commits(text(TASKS))] == [3]
    with pytest.raises(WrongAnswer, match=f"batch 3 was written by {TASKS - 1} tasks, not by {TASKS}"):
        read_commits(text(TASKS) + text(TASKS - 1))


def test_a_window_is_from_a_batchs_first_row_to_its_last() -> None:
    seen = Sightings()
    half = ROWS // 2
    seen.saw(range(half), 1.0)
    assert not seen.has(0) and seen.windows_ms() == []
    seen.saw([], 1.2)
    seen.saw([*range(half, ROWS), ROWS], 1.5)
    assert seen.has(0) and not seen.has(1)
    assert seen.windows_ms() == [500.0]
    seen.saw(range(ROWS + 1, 2 * ROWS), 1.5)
    assert seen.windows_ms() == [500.0, 0.0]
    seen.saw([0], 2.0)
    with pytest.raises(WrongAnswer, match=f"batch 0: {ROWS + 1} rows were seen, and {ROWS} were written"):
        seen.windows_ms()


def test_a_mirror_is_judged_beside_both_modes_of_mirror_maker() -> None:
    turn = MirrorRound(
        ours=Copy(start_s=9.0, copied_s=3.0),
        maker=Copy(start_s=5.0, copied_s=3.0),
        maker_once=Copy(start_s=6.0, copied_s=2.9),
    )
    rows = mirror_found([turn], RECORDS, judged=True).rows
    beside, beside_once = named(rows, "mirror, exactly once")
    assert (beside.of, beside.shares, beside.reached) == ("MirrorMaker 2", [1.0], True)
    assert (beside_once.of, beside_once.reached) == ("MirrorMaker 2, exactly once", False)
    assert named(rows, "before the first record: ours")[0].rounds == [9.0]
    assert [row for row in mirror_found([turn], RECORDS, judged=False).rows if row.goal] == []


@pytest.mark.parametrize("exactly_once", [False, True])
def test_mirror_maker_runs_as_it_comes_but_for_its_replicas_and_its_mode(exactly_once: bool) -> None:
    found = properties(("a", "h:1"), ("b", "h:2"), "orders", exactly_once=exactly_once)
    assert found["a->b.topics"] == "orders" and found["b->a.enabled"] == "false"
    assert found.get("b.exactly.once.source.support", "disabled") == ("enabled" if exactly_once else "disabled")
    numbers = {name for name, value in found.items() if isinstance(value, int)}
    assert all(name.endswith("replication.factor") for name in numbers)
