"""The core's rules one by one: what is decided and when, what an answer means, who is refused, who is fenced."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.client.errors import QuorumlogError, RequestFailed, Unavailable
from quorumlog.errors import ErrorCode as E
from quorumlog.messages.joint import BeginJointRequest, CommitJointRequest
from quorumlog.records.coordinator.joint import JointKind, JointValue
from quorumlog.spark.write.kafka import core
from quorumlog.spark.write.kafka.core import (
    DecidedTransactionLost,
    Limits,
    NotEnded,
    Overrides,
    Run,
    RunOver,
    check,
    check_totals,
)
from quorumlog.spark.write.kafka.decisions import (
    MAX_GIVEN_UP,
    BadDecision,
    Child,
    Decision,
    attempt_id,
    decode_decision,
    driver_id,
    encode_decision,
    prefix_of,
    read_attempt,
    run_tag,
    to_drop,
    to_fence,
)
from quorumlog.spark.write.kafka.steps import (
    Commit,
    Describe,
    Drop,
    End,
    Fate,
    Fence,
    ListOpen,
    Now,
    Read,
    Step,
    Steps,
    TakeOver,
    Verdict,
    Write,
    verdict_of,
)
from quorumlog.spark.write.sending.delivery import Attempt, BatchOf
from quorumlog_broker.coordinator.transactions.joint.checks import Refusal
from quorumlog_broker.coordinator.transactions.joint.checks import check as coordinators_check
from tests.spark.decisions.fake_kafka import Driver, FakeKafka, Killed, Txn, rows_of, step_through

HOUR_MS = 3_600_000
LEVELS = (1, 2)
PLAIN = Overrides()
LIMITS = Limits()
HERE = "/checkpoint"


def batch(sequence: int = 0, *, run: str = "run-0", group: str = "spark/q", location: str = HERE) -> BatchOf:
    return BatchOf(group=group, kind=JointKind.STREAM, location=location, run=run, sequence=sequence)


@dataclass
class World:
    """Drivers and tasks of one group, without faults. seen: steps of the driver's last call."""

    kafka: FakeKafka
    run: Run = field(default_factory=Run)
    driver: Driver = field(default_factory=Driver)
    tokens: int = 0

    def task(self, of: BatchOf, *rows: object, timeout_ms: int = HOUR_MS) -> Attempt | None:
        if step_through(self.kafka, Driver(), core.begin(of, PLAIN, LIMITS)):
            return None
        self.tokens += 1
        token = b"%d" % self.tokens
        name = attempt_id(of.group, of.sequence, of.run, token)
        txn = self.kafka.begin(name, timeout_ms)
        attempt = Attempt(transactional_id=name, producer_id=txn.producer_id, producer_epoch=txn.epoch, token=token)
        for number, row in enumerate(rows):
            assert self.kafka.write(txn, txn.epoch, row, partition=number)
        return replace(attempt, written=tuple(txn.written))

    def commit(
        self,
        of: BatchOf,
        attempts: list[Attempt | None],
        excused: Overrides = PLAIN,
        upto: int | None = None,
        before: type | None = None,
    ) -> None:
        steps = core.commit(self.run, of, [one for one in attempts if one], {"rows": 2}, excused, LIMITS)
        step_through(self.kafka, self.driver, steps, upto, before)

    def abort(self, of: BatchOf, attempts: list[Attempt] | None) -> None:
        step_through(self.kafka, self.driver, core.abort(self.run, of, attempts, PLAIN, LIMITS))

    def restart(self) -> None:
        self.run, self.driver = Run(), Driver()

    def txn(self, attempt: Attempt | None) -> Txn:
        assert attempt is not None
        return self.kafka.txns[attempt.transactional_id]

    def readable(self) -> list[object]:
        return sorted(rows_of(self.kafka, Fate.COMMITTED), key=str)


@pytest.fixture(params=LEVELS)
def world(request: pytest.FixtureRequest) -> World:
    return World(FakeKafka(request.param))


# --- names ---


def test_a_prefix_is_of_one_group_only() -> None:
    names = ["a", "a-b", "a:1", "a:", "ä", "spark/x", "a%3A"]
    ids = {name: attempt_id(name, 1, "run", b"\x01") for name in names}
    for name in names:
        assert [other for other in names if ids[other].startswith(prefix_of(name))] == [name]
        assert read_attempt(ids[name]) == (name, 1, run_tag("run"))
        assert read_attempt(driver_id(name)) is None
    assert len({driver_id(name) for name in names}) == len(names)


def test_what_is_fenced_after_a_decision_and_what_is_dropped_before_it() -> None:
    def of(group: str, sequence: int, run: str) -> str:
        return attempt_id(group, sequence, run, b"t")

    ids = [of("a", 4, "r1"), of("a", 5, "r1"), of("a", 5, "r2"), of("a", 6, "r1"), of("a-b", 4, "r1"), "other"]
    assert to_fence(ids, "a", 5, [ids[1]]) == [ids[0], ids[2]]
    assert to_drop(ids, "a", 5, "r1") == [ids[0], ids[1]], "another run's attempts may be in a decision"


# --- answers ---


@pytest.mark.parametrize(
    ("code", "want"),
    [
        (E.NONE, Verdict.ENDED),
        (E.CONCURRENT_TRANSACTIONS, Verdict.AGAIN),
        (E.NOT_COORDINATOR, Verdict.AGAIN),
        (E.COORDINATOR_LOAD_IN_PROGRESS, Verdict.AGAIN),
        (E.REQUEST_TIMED_OUT, Verdict.AGAIN),
        (E.INVALID_TXN_STATE, Verdict.UNCLEAR),
        (E.PRODUCER_FENCED, Verdict.UNCLEAR),
        (E.INVALID_PRODUCER_EPOCH, Verdict.UNCLEAR),
        (E.INVALID_PRODUCER_ID_MAPPING, Verdict.UNCLEAR),
        (E.UNKNOWN_SERVER_ERROR, Verdict.UNCLEAR),
    ],
)
def test_what_an_answer_to_an_end_means(code: E, want: Verdict) -> None:
    assert verdict_of(code) is want


# --- records ---

TEXTS = st.text(max_size=8)
NUMBERS = st.integers(0, 2**40)
TOTALS = st.dictionaries(TEXTS, NUMBERS, max_size=3)


@given(
    location=TEXTS,
    superseded=st.lists(TEXTS, max_size=3),
    sequence=NUMBERS,
    totals=TOTALS,
    ids=st.lists(TEXTS, max_size=3),
    ended=st.booleans(),
)
def test_a_decision_is_read_as_it_was_written(
    location: str, superseded: list[str], sequence: int, totals: dict[str, int], ids: list[str], ended: bool
) -> None:
    world = World(FakeKafka())
    attempt = world.task(batch(), "x", "y")
    assert attempt is not None
    children = tuple(
        [Child(transactional_id=one, producer_id=7, producer_epoch=3, written=attempt.written) for one in ids]
    )
    decision = Decision(
        kind=0, location=location, run="r", superseded=tuple(superseded), sequence=sequence, totals=totals,
        children=children, ended=ended, before=sequence - 1, before_totals=totals, dropped=tuple(ids),
    )  # fmt: skip
    assert decode_decision(encode_decision(decision)) == decision


@pytest.mark.parametrize(
    "value", [b"", b"{}", b"[]", b"null", b"\xff", b'{"version":true}', b'{"version":1,"kind":"0"}']
)
def test_what_is_no_decision(value: bytes) -> None:
    with pytest.raises(BadDecision, match="is no decision"):
        decode_decision(value)


def test_a_newer_decision_is_not_guessed_at() -> None:
    with pytest.raises(BadDecision, match="upgrade this job"):
        decode_decision(b'{"version":2}')


# --- checks ---


@given(
    kinds=st.tuples(st.sampled_from(JointKind), st.sampled_from(JointKind)),
    locations=st.tuples(st.sampled_from("ab"), st.sampled_from("ab")),
    runs=st.tuples(st.sampled_from(["r0", "r1", "r2"]), st.lists(st.sampled_from(["r0", "r1"]), max_size=2)),
    sequences=st.tuples(st.integers(0, 4), st.integers(0, 6)),
    excused=st.tuples(st.integers(-1, 6), st.sampled_from(["", "a", "b"])),
    is_first=st.booleans(),
)
def test_the_checks_are_those_of_the_coordinator(
    kinds: tuple[JointKind, JointKind],
    locations: tuple[str, str],
    runs: tuple[str, list[str]],
    sequences: tuple[int, int],
    excused: tuple[int, str],
    is_first: bool,
) -> None:
    superseded = tuple(runs[1])
    ours = Decision(
        kind=kinds[0], location=locations[0], run="r2", superseded=superseded, sequence=sequences[0], totals={},
        before_totals={},
    )  # fmt: skip
    theirs = JointValue(
        kind=kinds[0], location=locations[0], run="r2", superseded=superseded, sequence=sequences[0], facts=(),
        children=b"", decided_at_ms=0,
    )  # fmt: skip
    named = {"group_id": "g", "kind": kinds[1], "location": locations[1], "run": runs[0], "sequence": sequences[1]}
    allowed = {"first_batch": excused[0], "checkpoint_moved": excused[1]}
    of = BatchOf(group="g", kind=kinds[1], location=locations[1], run=runs[0], sequence=sequences[1])
    try:
        found: E | bool = check(None if is_first else ours, of, Overrides(**allowed))
    except RequestFailed as error:
        found = error.code
    for request in (
        BeginJointRequest(**named, **allowed, token=b"t", timeout_ms=1),
        CommitJointRequest(**named, **allowed),
    ):
        want = coordinators_check(None if is_first else theirs, request)
        assert found == (want.code if isinstance(want, Refusal) else want)


@pytest.mark.parametrize(("excused", "refused"), [(-1, True), (6, True), (7, False)])
def test_a_replay_with_other_totals(excused: int, refused: bool) -> None:
    decision = Decision(kind=0, location=HERE, run="r", sequence=7, totals={"rows": 2}, before_totals={})
    check_totals(decision, batch(7), {"rows": 2}, PLAIN)
    if refused:
        with pytest.raises(RequestFailed, match=r"decided with rows 2, and is rows 3 now.*replayMismatch=7") as caught:
            check_totals(decision, batch(7), {"rows": 3}, Overrides(replay_mismatch=excused))
        assert caught.value.code is E.REPLAY_DIFFERS
    else:
        check_totals(decision, batch(7), {"rows": 3}, Overrides(replay_mismatch=excused))


# --- deciding ---


def test_batches_are_there_once_and_nothing_stays_open(world: World) -> None:
    for number in range(3):
        of = batch(number)
        stray = world.task(of, f"{number} stray")
        attempts = [world.task(of, f"{number}a", f"{number}b"), world.task(of, f"{number}c")]
        world.commit(of, attempts)
        assert world.txn(stray).state != "Ongoing", "what no decision names is fenced"
        assert world.task(of, "again") is None, "it is decided"
    assert world.readable() == [f"{number}{name}" for number in range(3) for name in "abc"]
    decided = [(one.decision.sequence, one.decision.ended) for one in world.kafka.log if one.state == "committed"]
    assert decided == [(number, ended) for number in range(3) for ended in (False, True)]


def test_a_batch_is_there_although_what_else_is_open_cannot_be_listed(world: World) -> None:
    class Deaf(FakeKafka):
        def do(self, driver: Driver, step: Step, *more: object) -> object:
            if isinstance(step, ListOpen):
                raise Unavailable("no broker answered")
            return super().do(driver, step)

    stray = world.task(batch(0), "stray")
    world.kafka.__class__ = Deaf
    world.commit(batch(0), [world.task(batch(0), "x")])
    assert world.txn(stray).state == "Ongoing"
    world.kafka.__class__ = FakeKafka
    world.commit(batch(1), [world.task(batch(1), "y")])
    assert world.txn(stray).state != "Ongoing" and world.readable() == ["x", "y"]


def test_a_batch_without_rows_and_a_task_without_any_are_decided(world: World) -> None:
    world.commit(batch(0), [])
    world.commit(batch(1), [world.task(batch(1)), world.task(batch(1), "x")])
    assert world.readable() == ["x"]
    assert world.kafka.last("spark/q") is not None and world.kafka.last("spark/q").sequence == 1  # type: ignore[union-attr]


def test_the_order_of_a_decision(world: World) -> None:
    """The record first, then the look at the children, then its commit, and no end before that."""
    of, seen = batch(), list[Step]()
    attempts = [world.task(of, "x")]

    class Watched(FakeKafka):
        def do(self, driver: Driver, step: Step, *more: object) -> object:
            seen.append(step)
            return super().do(driver, step)

    world.kafka.__class__ = Watched
    world.commit(of, attempts)
    kinds = [type(one) for one in seen if isinstance(one, TakeOver | Read | Write | Describe | Commit | End)]
    assert kinds == [Read, TakeOver, Read, Describe, Write, Describe, Commit, End, Write, Commit]


def fail_by_time(world: World, attempt: Attempt) -> None:
    world.kafka.pass_ms(HOUR_MS + 1)


def end_from_outside(world: World, attempt: Attempt) -> None:
    world.kafka.fence(attempt.transactional_id)


def end_by_its_task(world: World, attempt: Attempt) -> None:
    code = world.kafka.end(attempt.transactional_id, attempt.producer_id, attempt.producer_epoch, commits=False)
    assert code is E.NONE
    world.kafka.write_markers()


def leave_too_little(world: World, attempt: Attempt) -> None:
    world.kafka.pass_ms(HOUR_MS - LIMITS.min_left_ms + 1)


def forget(world: World, attempt: Attempt) -> None:
    del world.kafka.txns[attempt.transactional_id]


@pytest.mark.parametrize(
    ("what", "told"),
    [
        (fail_by_time, "transactionTimeout"),
        (end_from_outside, "cannot be committed"),
        (end_by_its_task, "cannot be committed"),
        (leave_too_little, r"59999 ms are left of its transactionTimeout, 3600000 ms, and a decision needs 60000"),
        (forget, "forgotten"),
    ],
)
def test_nothing_is_decided_with_a_child_that_is_not_open(world: World, what: object, told: str) -> None:
    attempts = [world.task(batch(), "x"), world.task(batch(), "y")]
    what(world, attempts[1])  # type: ignore[operator]
    with pytest.raises(QuorumlogError) as caught:
        world.commit(batch(), attempts)
    assert isinstance(caught.value, RequestFailed) and caught.value.code is E.CHILD_NOT_OPEN, caught.value
    assert re.search(f"batch 0 of spark/q was not decided: .*{told}", str(caught.value))
    assert world.kafka.last("spark/q") is None
    assert not world.run.over, "the driver goes on"
    world.abort(batch(), [one for one in attempts if one and one.transactional_id in world.kafka.txns])
    assert world.kafka.open_ids(prefix_of("spark/q")) == []
    world.restart()
    again = batch(run="run-1")
    world.commit(again, [world.task(again, "x"), world.task(again, "y")])
    assert world.readable() == ["x", "y"]


def test_an_attempt_that_does_not_say_what_it_has_written_is_refused(world: World) -> None:
    attempt = world.task(batch(), "x")
    assert attempt is not None
    with pytest.raises(RequestFailed, match="did not tell what it has written"):
        world.commit(batch(), [replace(attempt, written=())])


@pytest.mark.parametrize("level", LEVELS)
def test_a_driver_that_sleeps_before_any_step_decides_nothing_that_has_timed_out(level: int) -> None:
    slept_before = []
    while Commit not in slept_before:
        world = World(FakeKafka(level))
        attempt = world.task(batch(), "x")
        assert attempt is not None
        steps = core.commit(world.run, batch(), [attempt], {"rows": 1}, PLAIN, LIMITS)
        step = next(steps)
        for _ in slept_before:
            step = steps.send(world.kafka.do(world.driver, step))
        slept_before.append(type(step))
        world.kafka.pass_ms(2 * HOUR_MS)
        try:
            while True:
                step = steps.send(world.kafka.do(world.driver, step))
        except QuorumlogError:
            pass
        assert world.kafka.last("spark/q") is None, f"decided after a sleep before {slept_before[-1].__name__}"
    assert slept_before == [Read, TakeOver, Read, Describe, Write, Describe, Now, Commit]


# --- runs ---


def test_a_run_that_another_one_has_taken_over_leaves_its_attempts_alone(world: World) -> None:
    """The other one has decided nothing yet."""
    world.commit(batch(0), [])
    late = world.task(batch(1), "late")
    old, old_driver = world.run, world.driver
    world.restart()
    with pytest.raises(Killed):
        world.commit(batch(1, run="run-1"), [world.task(batch(1, run="run-1"), "y")], before=Write)
    world.run, world.driver = old, old_driver
    with pytest.raises(RunOver, match="taken over"):
        world.commit(batch(1), [late])
    for attempts in ([late], None):
        world.abort(batch(1), attempts)  # type: ignore[arg-type]
        assert world.txn(late).state == "Ongoing", "it is not this run's any more to say what becomes of a batch"


def test_a_run_that_was_taken_over_decides_nothing_and_aborts_nothing(world: World) -> None:
    world.commit(batch(0), [world.task(batch(0), "x")])
    late = world.task(batch(1), "late")
    old, old_driver = world.run, world.driver
    world.restart()
    world.commit(batch(1, run="run-1"), [world.task(batch(1, run="run-1"), "y")])
    world.run, world.driver = old, old_driver
    with pytest.raises(RunOver, match="taken over"):
        world.commit(batch(1), [late])
    before = len(world.kafka.fenced)
    world.abort(batch(1), None)
    with pytest.raises(RunOver, match="taken over"):
        world.commit(batch(1), [])
    assert len(world.kafka.fenced) == before and world.driver.epoch < world.kafka.driver_epochs["spark/q"]
    assert world.readable() == ["x", "y"]


@pytest.mark.parametrize(
    ("of", "code"),
    [
        (batch(1, location="/copy"), E.CHECKPOINT_COPIED),
        (batch(1, run="run-0"), E.SUPERSEDED),
        (batch(0, run="run-2"), E.CHECKPOINT_ROLLED_BACK),
        (batch(5, run="run-2"), E.DECISION_MISSING),
    ],
)
def test_who_is_refused_takes_the_group_from_nobody(world: World, of: BatchOf, code: E) -> None:
    world.commit(batch(0), [world.task(batch(0), "x")])
    world.restart()
    world.commit(batch(1, run="run-1"), [world.task(batch(1, run="run-1"), "y")])
    living, driver = world.run, world.driver
    if code is not E.CHECKPOINT_ROLLED_BACK:
        of = replace(of, sequence=of.sequence + 1)
    world.restart()
    for call in (lambda: world.task(of, "z"), lambda: world.commit(of, []), lambda: world.abort(of, None)):
        with pytest.raises(RequestFailed) as caught:
            call()
        assert caught.value.code is code
    world.run, world.driver = living, driver
    world.commit(batch(2, run="run-1"), [world.task(batch(2, run="run-1"), "w")])
    assert world.readable() == ["w", "x", "y"]


def test_a_replay_sends_nothing_and_its_first_commit_closes_what_the_last_run_left_open(world: World) -> None:
    attempts = [world.task(batch(), "x")]
    left = world.task(batch(), "left")
    with pytest.raises(Killed):
        world.commit(batch(), attempts, before=Fence)
    assert world.txn(left).state == "Ongoing"
    world.restart()
    again = batch(run="run-1")
    assert world.task(again, "x") is None
    world.commit(again, [])
    assert world.txn(left).state != "Ongoing" and world.readable() == ["x"]


def test_abort_closes_this_runs_attempts_and_no_other_runs(world: World) -> None:
    other = world.task(batch(0, run="run-9"), "other")
    attempts = [world.task(batch(), "x"), world.task(batch(), "y")]
    unknown = world.task(batch(), "unknown")
    world.abort(batch(), [one for one in attempts if one])
    assert [world.txn(one).state for one in (*attempts, unknown)].count("Ongoing") == 0
    assert world.txn(other).state == "Ongoing"
    assert world.readable() == []


class Stepped:
    """A call of a process, step by step. result: what it returned or raised; None while it goes on."""

    def __init__(self, kafka: FakeKafka, steps: Steps[None]) -> None:
        self._kafka, self._steps, self._driver = kafka, steps, Driver()
        self._step = next(steps)
        self.result: object = None

    def go_on(self, most: int = 1_000) -> None:
        for _ in range(most):
            if self.result is not None or self._kafka.must_wait(self._step):
                return
            try:
                self._step = self._one()
            except StopIteration:
                self.result = "done"
            except QuorumlogError as error:
                self.result = error

    def _one(self) -> Step:
        try:
            answer = self._kafka.do(self._driver, self._step)
        except RunOver as error:
            return self._steps.throw(error)
        return self._steps.send(answer)


def test_abort_in_another_process_than_commit(world: World) -> None:
    """Each stands before any of its steps while the other goes on: all is readable, or nothing."""
    outcomes = set()
    for pair, (first, second) in enumerate(itertools.product(range(12), range(16))):
        of = batch(group=f"group-{pair}")
        attempts = [one for number in range(2) if (one := world.task(of, (pair, number)))]
        abort = Stepped(world.kafka, core.abort(Run(), of, attempts[1:], PLAIN, LIMITS))
        commit = Stepped(world.kafka, core.commit(Run(), of, attempts, {"rows": 2}, PLAIN, LIMITS))
        abort.go_on(first)
        commit.go_on(second)
        while abort.result is None or commit.result is None:
            abort.go_on()
            commit.go_on()
        rows = [row for row in rows_of(world.kafka, Fate.COMMITTED) if row[0] == pair]  # type: ignore[index]
        assert len(rows) in (0, 2), f"torn: the abort stood before step {first}, the commit before step {second}"
        assert len(rows) == 2 or commit.result != "done", f"told as committed: {first}, {second}"
        outcomes.add(len(rows))
    assert outcomes == {0, 2}, "both come first"


def test_abort_finishes_what_is_decided(world: World) -> None:
    attempts = [world.task(batch(), "x"), world.task(batch(), "y")]
    with pytest.raises(Killed):
        world.commit(batch(), attempts, before=End)
    assert world.kafka.last("spark/q") is not None
    world.restart()
    world.abort(batch(run="run-1"), [one for one in attempts if one])
    assert world.readable() == ["x", "y"]


def test_a_single_batch_leaves_no_record(world: World) -> None:
    of = replace(batch(group="write/x", location=""), kind=JointKind.SINGLE)
    world.commit(of, [world.task(of, "x")])
    assert world.readable() == ["x"] and world.kafka.last("write/x") is None
    assert [one.decision is None for one in world.kafka.log] == [False, False, True]


def test_a_group_is_forgotten_once_nothing_of_it_is_open(world: World) -> None:
    def forget() -> bool:
        return step_through(world.kafka, Driver(), core.forget(Run(), "spark/q"))

    assert forget() is False
    world.commit(batch(0), [world.task(batch(0), "x")])
    attempts = [world.task(batch(1), "y")]
    with pytest.raises(RequestFailed, match="spark/q has transactions that are open"):
        forget()
    with pytest.raises(Killed):
        world.commit(batch(1), attempts, before=End)
    with pytest.raises(RequestFailed, match="spark/q has transactions that are open") as caught:
        forget()
    assert caught.value.code is E.JOINT_GROUP_OPEN
    world.restart()
    world.commit(batch(1, run="run-1"), [])
    assert forget() is True and world.kafka.last("spark/q") is None
    with pytest.raises(RunOver):
        world.commit(batch(2, run="run-1"), [])
    world.restart()
    with pytest.raises(RequestFailed) as caught:
        world.commit(batch(2, run="run-1"), [])
    assert caught.value.code is E.DECISION_MISSING


def late_task(kafka: FakeKafka, of: BatchOf, name: str) -> Iterator[str]:
    """Its turns, between which others may run: what it reads, its first row, what it reads then."""
    try:
        assert not step_through(kafka, Driver(), core.begin(of, PLAIN, LIMITS))
        txn = kafka.begin(name, HOUR_MS)
        yield "looked"
        assert kafka.write(txn, txn.epoch, "late")
        yield "open"
        step_through(kafka, Driver(), core.check_wanted(of, PLAIN, LIMITS))
        yield "wanted"
    except RequestFailed as error:
        assert error.code is E.CHILD_NOT_OPEN and "its driver is done" in str(error)
        if name in kafka.txns:
            txn = kafka.txns[name]
            kafka.end(name, txn.producer_id, txn.epoch, commits=False)


@pytest.mark.parametrize("turns", range(4))
@pytest.mark.parametrize("decides_before", [False, True], ids=["the first batch", "a later one"])
def test_wherever_a_task_stands_when_its_driver_aborts_nothing_stays_open(
    world: World, decides_before: bool, turns: int
) -> None:
    """The abort is one moment of the task's, and each of the abort's steps may be the task's next turn."""
    sequence = int(decides_before)
    of = batch(sequence)
    for at in range(12):
        world.kafka, world.run, world.driver = FakeKafka(world.kafka.level), Run(), Driver()
        if decides_before:
            world.commit(batch(0), [world.task(batch(0), "x")])
        task = late_task(world.kafka, of, attempt_id(of.group, sequence, of.run, b"late"))
        for _ in range(turns):
            next(task, None)
        steps, answer, count, moved = core.abort(world.run, of, None, PLAIN, LIMITS), None, 0, False
        while True:
            try:
                step = steps.send(answer)
            except StopIteration:
                break
            if count == at and not any(one.state == "open" for one in world.kafka.log):
                next(task, None)
                moved = True
            answer, count = world.kafka.do(world.driver, step), count + 1
        for _ in task:
            pass
        world.kafka.write_markers()
        assert world.kafka.open_ids(prefix_of(of.group)) == [], f"the task moved before step {at}: {moved}"
        world.run, world.driver = Run(), Driver()
        again = batch(sequence, run="run-1")
        world.commit(again, [world.task(again, "again")])
        assert "again" in world.readable() and "late" not in world.readable()


def test_a_task_that_begins_behind_its_batchs_decision_ends_by_itself(world: World) -> None:
    of = batch(0)
    assert not step_through(world.kafka, Driver(), core.begin(of, PLAIN, LIMITS))
    world.commit(of, [world.task(of, "x")])
    with pytest.raises(RequestFailed, match="was decided while this task began") as caught:
        step_through(world.kafka, Driver(), core.check_wanted(of, PLAIN, LIMITS))
    assert caught.value.code is E.CHILD_NOT_OPEN


def test_a_task_goes_on_where_the_decision_of_its_batch_came_to_nothing(world: World) -> None:
    """Time has aborted all children of it, so the batch is sent and decided anew."""
    with pytest.raises(Killed):
        world.commit(batch(0), [world.task(batch(0), "x")], before=End)
    world.kafka.pass_ms(2 * HOUR_MS)
    world.kafka.write_markers()
    again = batch(0, run="run-1")
    assert not step_through(world.kafka, Driver(), core.begin(again, PLAIN, LIMITS))
    step_through(world.kafka, Driver(), core.check_wanted(again, PLAIN, LIMITS))
    world.restart()
    world.commit(again, [world.task(again, "again")])
    assert world.readable() == ["again"]


def test_few_batches_that_are_given_up_are_remembered_and_older_records_have_none(world: World) -> None:
    for run in range(MAX_GIVEN_UP + 5):
        world.restart()
        world.abort(batch(0, run=f"run-{run}"), None)
    last = world.kafka.last("spark/q")
    assert last is not None and len(last.given_up) == MAX_GIVEN_UP
    assert last.given_up[-1] == (run_tag(f"run-{MAX_GIVEN_UP + 4}"), 0)
    older = json.loads(encode_decision(last))
    del older["given_up"]
    assert decode_decision(json.dumps(older).encode()) == replace(last, given_up=())


def test_people_abort_what_is_open_and_finish_what_is_decided(world: World) -> None:
    def abort_open() -> int:
        return step_through(world.kafka, Driver(), core.abort_open(Run(), "spark/q", PLAIN, LIMITS))

    assert abort_open() == 0
    first = [world.task(batch(0), "x"), world.task(batch(0), "y")]
    stray = world.task(batch(0, run="run-9"), "z")
    with pytest.raises(Killed):
        world.commit(batch(0), first, before=End)
    assert abort_open() == 1
    assert world.readable() == ["x", "y"] and world.txn(stray).fate is Fate.ABORTED
    with pytest.raises(RunOver):
        world.commit(batch(1), [])
    world.restart()
    world.commit(batch(1, run="run-1"), [world.task(batch(1, run="run-1"), "again")])
    assert world.readable() == ["again", "x", "y"]


def test_people_abort_a_group_that_has_decided_nothing(world: World) -> None:
    attempt = world.task(batch(0), "x")
    with pytest.raises(RequestFailed, match=re.escape(f"1, such as {world.txn(attempt).transactional_id}")) as caught:
        step_through(world.kafka, Driver(), core.forget(Run(), "spark/q"))
    assert caught.value.code is E.JOINT_GROUP_OPEN
    assert step_through(world.kafka, Driver(), core.abort_open(Run(), "spark/q", PLAIN, LIMITS)) == 1
    world.commit(batch(0, run="run-1"), [world.task(batch(0, run="run-1"), "again")])
    assert world.readable() == ["again"]


# --- ends ---


def decided(world: World, *timeouts_ms: int) -> list[Attempt | None]:
    """A batch that is decided, and whose driver has died before the first end."""
    attempts = [world.task(batch(), f"row {number}", timeout_ms=ms) for number, ms in enumerate(timeouts_ms)]
    with pytest.raises(Killed):
        world.commit(batch(), attempts, before=End)
    assert world.kafka.last("spark/q") is not None
    world.restart()
    return attempts


def test_a_task_ends_what_was_decided_before_it_sends(world: World) -> None:
    decided(world, HOUR_MS, HOUR_MS)
    assert world.task(batch(run="run-1"), "row 0") is None
    assert world.readable() == ["row 0", "row 1"]


def test_if_all_were_aborted_by_time_the_batch_is_decided_anew(world: World) -> None:
    decided(world, HOUR_MS, HOUR_MS)
    world.kafka.pass_ms(HOUR_MS + 1)
    again = batch(run="run-1")
    attempts = [world.task(again, f"row {number}") for number in range(2)]
    world.commit(again, attempts)
    assert world.readable() == ["row 0", "row 1"]
    assert world.kafka.last("spark/q").before == -1  # type: ignore[union-attr]


def test_the_child_whose_time_is_over_first_decides_for_all(world: World) -> None:
    """The other one is still open, and is aborted: nothing is readable, so the batch can be written anew."""
    attempts = decided(world, 3 * HOUR_MS, HOUR_MS)
    world.kafka.pass_ms(HOUR_MS + 1)
    assert world.txn(attempts[0]).state == "Ongoing"
    again = batch(run="run-1")
    try:
        world.commit(again, [world.task(again, "row 0"), world.task(again, "row 1")])
    except DecidedTransactionLost as error:
        pytest.fail(f"what could be aborted has committed: {error}")
    assert world.readable() == ["row 0", "row 1"]


def torn(world: World) -> list[Attempt | None]:
    """The first child has committed, and the others' time is over."""
    attempts = decided(world, HOUR_MS, 2 * HOUR_MS)
    first = attempts[0]
    assert first is not None
    code = world.kafka.end(first.transactional_id, first.producer_id, first.producer_epoch, commits=True)
    assert code is E.NONE
    world.kafka.pass_ms(2 * HOUR_MS + 1)
    return attempts


def test_a_mixture_is_lost_at_every_start_until_it_is_accepted(world: World) -> None:
    torn(world)
    told = (
        r"batch 0 of spark/q was decided, and part of it is readable.*lost are the rows at t-0 offsets 1 to 1\..*"
        "acceptLost=0"
    )
    again = batch(run="run-1")
    for excused in (PLAIN, Overrides(accept_lost=1)):
        for _ in range(2):
            world.restart()
            with pytest.raises(DecidedTransactionLost, match=told):
                world.commit(again, [], excused)
            with pytest.raises(DecidedTransactionLost, match=told):
                world.task(again, "row 0")
    world.restart()
    world.commit(again, [], Overrides(accept_lost=0))
    world.restart()
    assert world.task(again, "row 0") is None
    world.commit(batch(1, run="run-1"), [world.task(batch(1, run="run-1"), "next")])
    assert world.readable() == ["next", "row 0"]


def test_ends_that_do_not_come_leave_the_batch_decided(world: World) -> None:
    attempts = decided(world, HOUR_MS, HOUR_MS)

    class Silent(FakeKafka):
        def do(self, driver: Driver, step: Step, *more: object) -> object:
            if isinstance(step, End):
                return {one.transactional_id: Verdict.AGAIN for one in step.children}
            return super().do(driver, step)

    world.kafka.__class__ = Silent
    with pytest.raises(
        NotEnded, match=r"batch 0 of spark/q is decided, and 1 of its transactions did not end in 6\d{4}"
    ):
        world.commit(batch(run="run-1"), attempts)
    world.kafka.__class__ = FakeKafka
    world.abort(batch(run="run-1"), None)
    assert world.readable() == ["row 0", "row 1"]


def test_a_driver_that_dies_between_any_two_steps_leaves_each_row_once(world: World) -> None:
    """Counted: each step of the protocol is one at which it dies."""
    died_before = set()
    sequence = 0
    for upto in range(40):
        of = batch(sequence, run=f"run-{upto}")
        world.restart()
        attempts = [world.task(of, f"{sequence}a"), world.task(of, f"{sequence}b")]
        stray = world.task(of, "stray")
        assert (stray is None) == (attempts[0] is None)
        try:
            world.commit(of, attempts, upto=upto)
        except Killed as killed:
            died_before.add(type(killed.step))
            world.kafka.pass_ms(31_000)  # an open decision is aborted by its time-out
            world.restart()
            of = replace(of, run=f"run-{upto}b")
            world.commit(of, [world.task(of, f"{sequence}a"), world.task(of, f"{sequence}b")])
        assert world.kafka.open_ids(prefix_of("spark/q")) == []
        sequence += 1
    assert died_before >= {Read, TakeOver, Describe, Write, Commit, End, Fence}
    assert world.readable() == sorted(f"{number}{name}" for number in range(sequence) for name in "ab")


def test_a_drop_follows_a_refused_decision(world: World) -> None:
    attempt = world.task(batch(), "x")
    world.kafka.pass_ms(HOUR_MS + 1)
    seen: list[type] = []
    steps = core.commit(world.run, batch(), [attempt] if attempt else [], {"rows": 1}, PLAIN, LIMITS)
    answer: object = None
    with pytest.raises(RequestFailed):
        while True:
            step = steps.send(answer)
            seen.append(type(step))
            answer = world.kafka.do(world.driver, step)
    assert seen[-1] is Drop and Commit not in seen
