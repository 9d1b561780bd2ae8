"""The checkers of joint transactions accept what may happen, and name each fault in a bad history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from jepsen.checkers.joint.events import (
    Abort,
    AbortAnswer,
    Attempt,
    Begun,
    ChildRecord,
    Commit,
    Decided,
    DecisionRecord,
    Missing,
    Poll,
    Row,
)
from jepsen.checkers.joint.history import JointHistory
from jepsen.checkers.joint.logs import (
    ABORTED,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    NOT_NAMED,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TIMED_OUT,
    JointLogs,
    LogRecord,
)

G, PLACE = "spark/g", "file:/checkpoint"

# --- the log ---


def child(slot: int, token: str, epoch: int, status: int, *, sequence: int = 0, run: str = "r1", cause: int = 0):  # type: ignore[no-untyped-def]
    return ChildRecord(f"joint:{slot}", G, slot, token, run, sequence, PLACE, 100 + slot, epoch, status, cause)


def decision(sequence: int, children: dict[int, int], *, run: str = "r1", kind: int = 0) -> DecisionRecord:
    return DecisionRecord(G, kind, PLACE, run, sequence, {"rows": 1}, children)


def sound_log() -> list[LogRecord]:
    """Batch 0 of run r1 with one winner, one loser, one that timed out and one that was aborted; batch 1 of run r2."""
    return [
        child(0, "a", 0, ONGOING),
        child(1, "b", 0, ONGOING),
        child(2, "c", 0, ONGOING),
        child(3, "d", 0, ONGOING),
        child(0, "a", 0, ONGOING),
        child(2, "c", 1, PREPARE_ABORT, cause=TIMED_OUT),
        child(3, "d", 1, PREPARE_ABORT, cause=ABORTED),
        child(2, "c", 1, COMPLETE_ABORT, cause=TIMED_OUT),
        decision(0, {0: 0}),
        child(0, "a", 1, PREPARE_COMMIT),
        child(1, "b", 1, PREPARE_ABORT, cause=NOT_NAMED),
        child(0, "a", 1, COMPLETE_COMMIT),
        child(0, "e", 1, ONGOING, sequence=1, run="r2"),
        child(1, "b", 1, COMPLETE_ABORT, cause=NOT_NAMED),
        child(3, "d", 1, COMPLETE_ABORT, cause=ABORTED),
        decision(1, {0: 1}, run="r2"),
        child(0, "e", 2, PREPARE_COMMIT, sequence=1, run="r2"),
        child(0, "e", 2, COMPLETE_COMMIT, sequence=1, run="r2"),
        decision(2, {}, run="r2"),
    ]


ASKED = [Abort(G, 0, PLACE, "r1")]


def found_in(*logs: list[LogRecord]) -> set[str]:
    checked = JointLogs(ASKED)
    checked.check(logs)
    return {finding.name for finding in checked.findings}


def test_a_sound_log_is_accepted_and_tells_what_was_decided() -> None:
    checked = JointLogs(ASKED)
    checked.check([sound_log()])
    assert checked.findings == []
    assert checked.decided == [
        Decided(G, 0, "r1", PLACE, 1, frozenset({"a"})),
        Decided(G, 1, "r2", PLACE, 1, frozenset({"e"})),
        Decided(G, 2, "r2", PLACE, 1, frozenset()),
    ]
    assert (checked.counts["joint children"], checked.counts["joint slots"]) == (5, 4)


def changed(at: int, **fields: object) -> Callable[[list[LogRecord]], None]:
    def change(log: list[LogRecord]) -> None:
        log[at] = replace(log[at], **fields)  # type: ignore[arg-type]

    return change


def inserted(at: int, *records: LogRecord) -> Callable[[list[LogRecord]], None]:
    def change(log: list[LogRecord]) -> None:
        log[at:at] = records

    return change


BAD_LOGS = [
    ("decided again", inserted(19, decision(2, {}, run="r2")), "joint-decided-twice"),
    ("a batch is left out", changed(18, sequence=3), "joint-gap"),
    ("a version falls", changed(18, sequence=0, kind=1), "joint-gap"),
    ("another checkpoint", changed(18, location="file:/copy"), "joint-copy"),
    ("a superseded run", changed(18, run="r1"), "joint-superseded"),
    ("a child that has ended", changed(8, children={0: 0, 2: 0}), "joint-not-open"),
    ("a child of another epoch", changed(8, children={0: 1}), "joint-not-open"),
    ("a child of another batch", changed(12, sequence=7), "joint-not-open"),
    ("a slot that nobody has", changed(8, children={0: 0, 9: 0}), "joint-not-open"),
    ("the winner aborts", changed(9, status=PREPARE_ABORT, cause=NOT_NAMED), "joint-undone"),
    ("the loser commits", changed(10, status=PREPARE_COMMIT, cause=0), "joint-undone"),
    ("the loser times out after all", changed(10, cause=TIMED_OUT), "joint-undone"),
    ("the loser goes on", inserted(9, child(1, "b", 0, ONGOING)), "joint-undone"),
    ("a commit that nobody decided", changed(5, status=PREPARE_COMMIT, cause=0), "joint-unasked"),
    ("an abort that nobody asked for", changed(6, run="r9"), "joint-unasked"),
    ("an abort without a cause", changed(5, cause=0), "joint-unasked"),
    ("an abort without a decision", changed(5, cause=NOT_NAMED), "joint-unasked"),
    ("markers of the child's epoch", changed(9, epoch=0), "joint-epoch"),
    ("a late batch opens it", inserted(12, child(0, "a", 1, ONGOING)), "joint-opened"),
    ("a token has two children", inserted(5, child(4, "a", 0, ONGOING)), "joint-token-twice"),
    ("a slot with another id", changed(11, transactional_id="joint:other"), "joint-slot"),
    ("open at the end", changed(17, status=PREPARE_COMMIT), "joint-open"),
]


@pytest.mark.parametrize(("change", "name"), [row[1:] for row in BAD_LOGS], ids=[row[0] for row in BAD_LOGS])
def test_a_bad_log_is_named(change: Callable[[list[LogRecord]], None], name: str) -> None:
    log = sound_log()
    change(log)
    assert name in found_in(log)


def test_a_group_in_two_partitions_is_named() -> None:
    assert found_in(sound_log(), [decision(3, {})]) >= {"joint-elsewhere"}


# --- the history ---

DECIDED = [Decided(G, 0, "r1", PLACE, 2, frozenset({"a", "b"})), Decided(G, 1, "r2", PLACE, 0, frozenset())]


def row(token: str, number: int, partition: int, offset: int) -> Row:
    return Row(partition, f"{G}/0/{token}/{number}", acked=offset >= 0, offset=offset)


def sound_history() -> JointHistory:
    """Batch 0 has two tasks; c is an attempt that lost. In partition 0 lie a, c and a marker, in 1 b and a marker."""
    history = JointHistory()
    history.attempts = [
        Attempt(G, 0, "r1", PLACE, "a", [row("a", 0, 0, 0)]),
        Attempt(G, 0, "r1", PLACE, "b", [row("b", 0, 1, 0), row("b", 1, 1, -1)]),
        Attempt(G, 0, "r1", PLACE, "c", [row("c", 0, 0, 1)]),
    ]
    history.begun = [
        Begun(G, 0, PLACE, "a", ("joint:0", 7, 0), 10),
        Begun(G, 0, PLACE, "a", ("joint:0", 7, 0), 11),
        Begun(G, 0, PLACE, "b", ("joint:1", 8, 0), 10),
        Begun(G, 0, PLACE, "d", None, 200),
    ]
    history.commits = [
        Commit(G, 0, "r1", PLACE, frozenset({"a", "b"}), 2, acked_ns=100),
        Commit(G, 1, "r2", PLACE, frozenset(), 0, acked_ns=300),
        Commit(G, 1, "r3", PLACE, frozenset({"x"}), 0),
    ]
    history.aborts = [AbortAnswer(Abort(G, 0, PLACE), False, 50), AbortAnswer(Abort(G, 0, PLACE), True, 101)]
    history.missing = [Missing(G, 5, 400)]
    history.polls = [
        Poll(0, 0, 3, [0], [f"{G}/0/a/0"]),
        Poll(0, 1, 3, [], []),
        Poll(0, 0, 3, [0], [f"{G}/0/a/0"], final=True),
        Poll(1, 0, 2, [0], [f"{G}/0/b/0"], final=True),
    ]
    return history


def test_a_sound_history_is_accepted_and_counted() -> None:
    history = sound_history()
    assert history.check(DECIDED) == []
    assert history.count(DECIDED)["joint records committed"] == 2
    assert history.count(DECIDED)["joint records of others"] == 1


def test_a_version_below_the_last_may_be_told_as_not_decided() -> None:
    history = sound_history()
    history.aborts.append(AbortAnswer(Abort(G, 0, PLACE), False, 301))
    history.versioned.add(G)
    assert history.check(DECIDED) == []


def poll(at: int, **fields: object) -> Callable[[JointHistory], None]:
    def change(history: JointHistory) -> None:
        history.polls[at] = history.polls[at]._replace(**fields)  # type: ignore[arg-type]

    return change


def commit(at: int, **fields: object) -> Callable[[JointHistory], None]:
    def change(history: JointHistory) -> None:
        history.commits[at] = replace(history.commits[at], **fields)  # type: ignore[arg-type]

    return change


def begun(*more: Begun) -> Callable[[JointHistory], None]:
    return lambda history: history.begun.extend(more)


def lose_all(history: JointHistory) -> None:
    history.polls = []


BAD_HISTORIES: list[tuple[str, Callable[[JointHistory], None], str]] = [
    ("a read leaves a record out", poll(0, offsets=[], values=[]), "joint-lost"),
    ("a decided batch is not there", lose_all, "joint-lost"),
    ("a part of a batch is not there", poll(3, offsets=[], values=[]), "joint-torn"),
    ("the loser is read", poll(0, offsets=[0, 1], values=[f"{G}/0/a/0", f"{G}/0/c/0"]), "joint-leak"),
    ("a record that nobody sent", poll(0, offsets=[0], values=[f"{G}/0/z/0"]), "joint-leak"),
    ("a record is there twice", poll(2, offsets=[0, 2], values=[f"{G}/0/a/0"] * 2), "joint-twice"),
    ("an offset changes", poll(3, offsets=[0], values=[f"{G}/0/b/1"]), "joint-torn"),
    ("an acknowledged decision is gone", commit(2, sequence=9, acked_ns=5), "joint-forgotten"),
    ("a missing decision was acknowledged", lambda one: one.missing.append(Missing(G, 2, 400)), "joint-forgotten"),
    ("nobody has asked for it", commit(1, tokens=frozenset({"x"})), "joint-invented"),
    ("another run has asked for it", commit(1, run="r9"), "joint-invented"),
    ("other totals count as decided", commit(2, acked_ns=400, rows=7), "joint-replay"),
    ("a copy counts as decided", commit(2, acked_ns=400, location="file:/copy"), "joint-replay"),
    ("a child behind the decision", begun(Begun(G, 0, PLACE, "f", ("joint:2", 9, 0), 101)), "joint-begun"),
    ("a task of a copy hears decided", begun(Begun(G, 0, "file:/copy", "f", None, 101)), "joint-begun"),
    ("a task hears decided too soon", begun(Begun(G, 2, PLACE, "f", None, 101)), "joint-begun"),
    ("two tokens have a child", begun(Begun(G, 0, PLACE, "f", ("joint:0", 7, 0), 12)), "joint-shared"),
    (
        "an abort of what is decided",
        lambda one: one.aborts.append(AbortAnswer(Abort(G, 0, PLACE), False, 101)),
        "joint-aborted",
    ),
]


@pytest.mark.parametrize(("change", "name"), [row[1:] for row in BAD_HISTORIES], ids=[row[0] for row in BAD_HISTORIES])
def test_a_bad_history_is_named(change: Callable[[JointHistory], None], name: str) -> None:
    history = sound_history()
    change(history)
    assert name in {finding.name for finding in history.check(DECIDED)}


def test_an_offset_that_shows_two_records_is_named() -> None:
    history = sound_history()
    history.polls.append(Poll(1, 0, 2, [0], [f"{G}/0/b/1"]))
    assert "joint-twice" in {finding.name for finding in history.check(DECIDED)}
