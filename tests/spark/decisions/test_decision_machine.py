"""Drivers and tasks of several runs at once, with deaths, lost answers and time: what must always hold, and counted.

The rules are those that a reader sees: a row of a batch is readable at most once; nothing commits that no decision
names; once a run has told Spark that a batch is committed, all its rows are readable, unless that was told as lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from quorumlog.client.errors import QuorumlogError, RequestFailed
from quorumlog.errors import ErrorCode as E
from quorumlog.records.coordinator.joint import JointKind
from quorumlog.spark.write.kafka import core
from quorumlog.spark.write.kafka.calls import DRIVER_TIMEOUT_MS
from quorumlog.spark.write.kafka.core import DecidedTransactionLost, Limits, Overrides, Run, RunOver
from quorumlog.spark.write.kafka.decisions import Decision, attempt_id
from quorumlog.spark.write.kafka.steps import Commit, Fence, Step, Steps, TakeOver, Write
from quorumlog.spark.write.sending.delivery import Attempt, BatchOf
from tests.parts import few
from tests.spark.decisions.fake_kafka import Driver, FakeKafka

GROUP, HERE = "spark/q", "/checkpoint"
TASKS = 2
HOUR_MS = 3_600_000
TIMEOUTS_MS = (HOUR_MS, HOUR_MS + 200_000)
LIMITS = Limits()
Row = tuple[int, int]
"""Sequence and task."""


@dataclass
class Call:
    """Steps under way. done: takes what they return or raise. step: the one to carry out next."""

    steps: Steps[object]
    done: Callable[[object], None]
    step: Step


@dataclass
class Process:
    """A driver with the tasks of its batch. phase: tasks, commit, abort or over."""

    run: str
    sequence: int
    known: Run = field(default_factory=Run)
    driver: Driver = field(default_factory=Driver)
    phase: str = "tasks"
    attempts: dict[int, Attempt | None] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    asleep: int = 0  # turns that it misses


class History:
    """Of one checkpoint: what Spark has committed, what was lost, and what has happened how often."""

    def __init__(self, level: int, rng: Random) -> None:
        self.kafka, self.rng = FakeKafka(level), rng
        self.processes: list[Process] = []
        self.starts = self.tokens = 0
        self.committed = -1  # the last batch that Spark has noted as committed
        self.lost: set[int] = set()
        self.seen: Counter[str] = Counter()

    # --- what happens ---

    def start(self) -> None:
        self.starts += 1
        self.processes.append(Process(f"run-{self.starts}", self.committed + 1))
        self.seen["two drivers"] += len(self.processes) > 1

    def kill(self, at: int) -> None:
        if self.processes:
            process = self.processes.pop(at % len(self.processes))
            for call in process.calls:
                self.seen[f"killed before {type(call.step).__name__}"] += 1
            self.seen[f"killed in {process.phase}"] += 1

    def go_on(self, at: int) -> None:
        """One step of one of them."""
        if not self.processes:
            return
        process = self.processes[at % len(self.processes)]
        if process.asleep or self.rng.random() < 0.02:
            process.asleep = process.asleep - 1 if process.asleep else self.rng.choice([10, 60])
        elif process.calls:
            self._step(process, self.rng.choice(process.calls))
        elif process.phase == "tasks":
            self._next_of_tasks(process)
        elif process.phase == "over":
            self.processes.remove(process)

    def stop(self, at: int) -> None:
        """`abort` in another process than the one whose `commit` runs, so without what that one knows."""
        committing = [one for one in self.processes if one.phase == "commit"]
        if committing:
            process = committing[at % len(committing)]
            twin = Process(process.run, process.sequence, attempts=dict(process.attempts))
            self.processes.append(twin)
            self._abort(twin, known=self.rng.random() < 0.5)
            self.seen["abort beside commit"] += 1

    def pass_ms(self, ms: int) -> None:
        self.kafka.pass_ms(ms)

    # --- tasks ---

    def _next_of_tasks(self, process: Process) -> None:
        missing = [task for task in range(TASKS) if task not in process.attempts]
        if not missing or self.rng.random() < 0.05:
            if missing:  # a task failed for good
                return self._abort(process, known=self.rng.random() < 0.5)
            attempts = [one for one in process.attempts.values() if one is not None]
            batch, excused = self._batch(process), self._excused(process)
            commit = core.commit(process.known, batch, attempts, {"rows": TASKS}, excused, LIMITS)
            process.phase = "commit"
            self._begin(process, commit, lambda result: self._committed(process, result))
            return None
        task = missing[0]
        steps = core.begin(self._batch(process), self._excused(process), LIMITS)
        return self._begin(process, steps, lambda result: self._begun(process, task, result))

    def _begun(self, process: Process, task: int, result: object) -> None:
        if isinstance(result, Exception):
            self._told(process, result)
            return self._abort(process, known=True)
        if result is True:
            self.seen["a task sends nothing"] += 1
            process.attempts[task] = None
            return None
        self.tokens += 1
        name = attempt_id(GROUP, process.sequence, process.run, b"%d" % self.tokens)
        txn = self.kafka.begin(name, self.rng.choice(TIMEOUTS_MS))
        epoch = txn.epoch
        if not self.kafka.write(txn, epoch, (process.sequence, task), partition=task):
            raise AssertionError("a new id cannot be fenced")
        if self.rng.random() < 0.2:
            self.seen["a task runs again"] += 1
            return None  # its message is lost; Spark runs it again
        process.attempts[task] = Attempt(
            transactional_id=name,
            producer_id=txn.producer_id,
            producer_epoch=epoch,
            token=b"",
            written=tuple(txn.written),
        )
        return None

    # --- the driver ---

    def _committed(self, process: Process, result: object) -> None:
        if isinstance(result, Exception):
            self._told(process, result)
            return self._abort(process, known=self.rng.random() < 0.5)
        self.seen["committed"] += 1
        self.committed = max(self.committed, process.sequence)
        if process.sequence not in self.lost:
            missing = [task for task in range(TASKS) if self.count((process.sequence, task)) != 1]
            assert not missing, f"batch {process.sequence} is told as committed without the rows of tasks {missing}"
        process.sequence += 1
        process.phase, process.attempts = "tasks", {}
        return None

    def _abort(self, process: Process, *, known: bool) -> None:
        process.calls.clear()
        attempts = [one for one in process.attempts.values() if one is not None] if known else None
        process.phase = "abort"
        steps = core.abort(process.known, self._batch(process), attempts, self._excused(process), LIMITS)
        self._begin(process, steps, lambda result: self._aborted(process, result))

    def _aborted(self, process: Process, result: object) -> None:
        if isinstance(result, Exception):
            self._told(process, result)
        self.seen["aborted"] += 1
        process.phase = "over"  # Spark ends the query

    def _told(self, process: Process, error: Exception) -> None:
        self.seen[type(error).__name__ if not isinstance(error, RequestFailed) else error.code.name] += 1
        if isinstance(error, DecidedTransactionLost):
            self.lost.add(error.sequence)
            committed = [task for task in range(TASKS) if self.count((error.sequence, task))]
            first = self._last_decision(error.sequence).children[0].transactional_id
            assert "Commit" in self.kafka.txns[first].state, "the first child decides for all, and was aborted"
            assert committed, f"batch {error.sequence} is told as lost, and could be written anew"
        if isinstance(error, RequestFailed):
            assert error.code in (E.CHILD_NOT_OPEN, E.SUPERSEDED, E.CHECKPOINT_ROLLED_BACK, E.DECISION_MISSING), error

    def _excused(self, process: Process) -> Overrides:
        """The user accepts a loss once it was told."""
        return Overrides(accept_lost=process.sequence if process.sequence in self.lost else -1)

    def _batch(self, process: Process) -> BatchOf:
        return BatchOf(group=GROUP, kind=JointKind.STREAM, location=HERE, run=process.run, sequence=process.sequence)

    # --- steps ---

    def _begin(self, process: Process, steps: Steps[object], done: Callable[[object], None]) -> None:
        self._advance(process, None, steps, done, None, None)

    def _step(self, process: Process, call: Call) -> None:
        if self.kafka.must_wait(call.step):
            self.seen["a read waits"] += 1
            return
        if isinstance(call.step, Commit | Write | TakeOver) and self.rng.random() < 0.03:
            return self._lose(process, call)
        answer: object = None
        error: QuorumlogError | None = None
        before = {name: txn.state for name, txn in self.kafka.txns.items()}
        try:
            answer = self.kafka.do(process.driver, call.step, lambda name: self.rng.random() < 0.15)
        except QuorumlogError as raised:
            error = raised
        self._check_ends(before, call.step)
        if isinstance(call.step, Commit) and error is None:
            self._check_decided()
        self._advance(process, call, call.steps, call.done, answer, error)
        return None

    def _lose(self, process: Process, call: Call) -> None:
        """It is carried out or not, and nobody hears of it."""
        if self.rng.random() < 0.5:
            try:
                self.kafka.do(process.driver, call.step)
            except RunOver:
                pass
        self.seen[f"no answer to {type(call.step).__name__}"] += 1
        self._advance(process, call, call.steps, call.done, None, RunOver("it is not known"))

    def _advance(
        self,
        process: Process,
        call: Call | None,
        steps: Steps[object],
        done: Callable[[object], None],
        answer: object,
        error: QuorumlogError | None,
    ) -> None:
        if call is not None:
            process.calls.remove(call)
        result: object
        try:
            step = steps.send(answer) if error is None else steps.throw(error)
            process.calls.append(Call(steps, done, step))
            return
        except StopIteration as end:
            result = end.value
        except QuorumlogError as raised:
            result = raised
        done(result)

    # --- what must hold ---

    def _check_decided(self) -> None:
        """A moment ago, so each child still has some of its time: what was left when it was looked at, without the
        longest time that a decision takes."""
        decision = self.kafka.log[-1].decision
        for child in () if decision is None else decision.children:
            txn = self.kafka.txns[child.transactional_id]
            assert txn.state == "Ongoing", f"{child.transactional_id} is {txn.state}, and is decided to commit"
            left_ms = txn.started_at_ms + txn.timeout_ms - self.kafka.now_ms
            assert left_ms >= LIMITS.min_left_ms - DRIVER_TIMEOUT_MS, f"{child.transactional_id}: {left_ms} ms are left"
            self.seen["decided"] += 1

    def _check_ends(self, before: dict[str, str], step: Step) -> None:
        named = self._named()
        for name, txn in self.kafka.txns.items():
            if before.get(name) != "Ongoing" or txn.state == "Ongoing":
                continue
            if "Commit" in txn.state:
                assert name in named, f"{name} commits, and no decision that was committed names it"
                self.seen["ended by a decision"] += 1
            if isinstance(step, Fence):
                assert not self._stands(name), f"{name} is fenced, and a decision that is not ended names it"
                self.seen["fenced"] += 1

    def _named(self) -> set[str]:
        return {
            child.transactional_id
            for entry in self.kafka.log
            if entry.state == "committed"
            if entry.decision is not None
            for child in entry.decision.children
        }

    def _last_decision(self, sequence: int) -> Decision:
        return [
            entry.decision
            for entry in self.kafka.log
            if entry.state == "committed" and entry.decision.sequence == sequence and not entry.decision.ended
        ][-1]

    def _stands(self, name: str) -> bool:
        """The last decision names it, and its first child was not aborted."""
        found = [entry.decision for entry in self.kafka.log if entry.state == "committed"]
        last = found[-1] if found else None
        if last is None or last.ended:
            return False
        ids = [one.transactional_id for one in last.children]
        return name in ids and "Abort" not in self.kafka.txns[ids[0]].state

    def count(self, row: Row) -> int:
        return sum(row in txn.rows and "Commit" in txn.state for txn in self.kafka.txns.values())

    def check(self) -> None:
        rows = Counter(row for txn in self.kafka.txns.values() if "Commit" in txn.state for row in txn.rows)
        twice = [row for row, count in rows.items() if count > 1]
        assert not twice, f"rows are readable twice: {twice}"
        for number in range(self.committed + 1):
            if number not in self.lost:
                missing = [task for task in range(TASKS) if not rows[number, task]]
                assert not missing, f"batch {number} is committed, and the rows of tasks {missing} are not readable"
        current = [entry for entry in self.kafka.log if entry.state == "committed"]
        runs = [entry.decision.run for entry in current]
        left = [run for at, run in enumerate(runs) if run in runs[:at] and runs[at - 1] != run]
        assert not left, f"runs decide that were superseded: {left}"

    def settle(self) -> None:
        """Everybody dies; then one start after the other, without faults. It goes on, and nothing stays open."""
        for process in list(self.processes):
            self.kill(0)
            assert process not in self.processes
        self.kafka.pass_ms(31_000)
        self.rng.random = lambda: 1.0  # type: ignore[method-assign]  # no more faults
        target = self.committed + 2
        for _ in range(8):
            self.start()
            for _ in range(2_000):
                if not self.processes or self.committed >= target:
                    break
                self.go_on(0)
            if self.committed >= target:
                break
            self.processes.clear()
        assert self.committed >= target, f"nothing goes on: {self.seen}"
        self.check()
        open_now = [name for name, txn in self.kafka.txns.items() if txn.state == "Ongoing"]
        open_now = [name for name in open_now if int(name.split(":")[2]) <= self.committed]
        assert not open_now, f"left open: {open_now}"


def walk(seed: int, steps: int) -> History:
    rng = Random(seed)
    history = History(1 + seed % 2, rng)
    for _ in range(steps):
        happens = rng.random()
        if happens < 0.03 or not history.processes:
            if len(history.processes) < 3:
                history.start()
        elif happens < 0.05:
            history.kill(rng.randrange(3))
        elif happens < 0.06:
            history.stop(rng.randrange(3))
        elif happens < 0.08:
            history.pass_ms(rng.choice([1_000, 31_000, 200_000, HOUR_MS, HOUR_MS + 100_000]))
        elif happens < 0.2:
            history.kafka.write_markers()
        else:
            history.go_on(rng.randrange(3))
        history.check()
    history.settle()
    return history


REACHED = (
    "committed", "aborted", "abort beside commit", "two drivers", "a task sends nothing", "a task runs again",
    "a read waits", "fenced",
    "ended by a decision", "RunOver", "CHILD_NOT_OPEN", "SUPERSEDED", "DecidedTransactionLost",
    "killed before Write", "killed before Commit", "killed before End", "killed before Fence", "killed before TakeOver",
    "killed before Fates", "no answer to Commit", "no answer to Write", "no answer to TakeOver",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(few(200)))
def test_histories(seed: int) -> None:
    walk(seed, 600)


def test_histories_reach_every_case() -> None:
    seen: Counter[str] = Counter()
    for seed in range(1_000, 1_120):
        seen += walk(seed, 600).seen
    assert not [name for name in REACHED if not seen[name]], seen


class Decisions(RuleBasedStateMachine):
    """The same histories, of which hypothesis looks for the shortest one that fails."""

    @initialize(level=st.sampled_from([1, 2]), seed=st.integers(0, 2**32))
    def begin(self, level: int, seed: int) -> None:
        self.history = History(level, Random(seed))
        self.history.start()

    @rule()
    def another_start(self) -> None:
        if len(self.history.processes) < 3:
            self.history.start()

    @rule(at=st.integers(0, 2))
    def a_death(self, at: int) -> None:
        self.history.kill(at)

    @rule(at=st.integers(0, 2), steps=st.integers(1, 30))
    def one_goes_on(self, at: int, steps: int) -> None:
        for _ in range(steps):
            self.history.go_on(at)
            self.history.check()

    @rule(at=st.integers(0, 2))
    def a_query_is_stopped(self, at: int) -> None:
        self.history.stop(at)

    @rule(ms=st.sampled_from([1_000, 31_000, 200_000, HOUR_MS, HOUR_MS + 100_000]))
    def time_passes(self, ms: int) -> None:
        self.history.pass_ms(ms)

    @rule()
    def markers_are_written(self) -> None:
        self.history.kafka.write_markers()

    @invariant()
    def rows_are_there_once(self) -> None:
        if hasattr(self, "history"):
            self.history.check()

    def teardown(self) -> None:
        if hasattr(self, "history"):
            self.history.settle()


TestDecisions = Decisions.TestCase
TestDecisions.settings = settings(max_examples=few(200), stateful_step_count=40, deadline=None)
