"""One driver of a group: it has runs, one after the other, and so may a second driver of the same group at once.

A run plans batches, gives each to tasks, and asks to decide it. It dies at any step: before its tasks begin, while they
send, before CommitJoint, after that was sent and before its answer. Some of its tasks die with it, and some go on. The
next run begins behind the last decision that anybody was told of, or plans that batch once more with the same rows, as
a query does whose `commits/N` is gone.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

from jepsen.checkers.joint.events import Abort, Attempt, Commit
from jepsen.joint.asking import Asking, begin_request, commit_request, new_commit
from jepsen.joint.late import Late, go_on_sending
from jepsen.joint.recorder import SINGLE, STREAM, VERSIONED, Group, JointRecorder
from jepsen.joint.task import Child, Failed, Over, Task
from jepsen.transactions.calls import Calls, Unknown
from quorumlog.errors import ErrorCode
from quorumlog.messages.joint import JointChildRef
from quorumlog.nursery import Nursery

MakeCalls = Callable[[str], Calls]
MAX_ATTEMPTS = 3  # of a task in one batch
BETWEEN_RUNS_S, STALLS_S = (0.1, 0.8), (0.5, 4.0)
LATE_TASK_S = 4.0  # Spark ends a worker 2 to 4 s behind its task
REFUSED_LATE = "joint tasks refused behind their abort"


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """Shares: of steps at which a driver dies; of batches for the rest. gap_s: the mean time between two batches.

    twice: a task has two attempts at once. aborts: AbortJoint runs beside CommitJoint. stalls: the driver stands still
    between its tasks and CommitJoint. confused: CommitJoint names a child by another token, epoch or sequence.
    """

    dies: float = 0.05
    twice: float = 0.2
    aborts: float = 0.12
    late_tasks: float = 0.8  # behind an abort of the whole run's
    stalls: float = 0.1
    confused: float = 0.25
    orphans: float = 0.6  # of the tasks of a driver that has died
    replays: float = 0.3  # of the runs
    gap_s: float = 0.25
    timeouts_ms: tuple[int, ...] = (1_500, 3_000, 3_000, 5_000)


class Died(Exception):
    """The driver's process has ended."""


class Driver:
    """group_of: the group of each run; the same one but for single batches."""

    def __init__(
        self, name: str, group_of: Callable[[], Group], recorder: JointRecorder, habits: Habits, calls_of: MakeCalls,
        rng: random.Random, nursery: Nursery,
    ) -> None:  # fmt: skip
        self.name, self.habits, self.rng = name, habits, rng
        self.recorder, self.calls_of, self.nursery = recorder, calls_of, nursery
        self.late = Late(recorder, rng)
        self._group_of = group_of

    async def run(self) -> None:
        while not self.recorder.stopping:
            run = Run(self, self._group_of())
            try:
                await run.go()
            except Died:
                self.recorder.counts["joint drivers died"] += 1
                await run.die()
            except Over:
                self.recorder.counts["joint runs over"] += 1
            except (Failed, Unknown):
                self.recorder.counts["joint runs failed"] += 1
            finally:
                await run.calls.close()
            await asyncio.sleep(self.rng.uniform(*BETWEEN_RUNS_S))


class Run:
    """name: another one at each start."""

    def __init__(self, driver: Driver, group: Group) -> None:
        self.driver, self.group = driver, group
        self.recorder, self._rng, self._habits = driver.recorder, driver.rng, driver.habits
        self.name = self.recorder.draw()
        self.calls = driver.calls_of(driver.name)
        self.asking = Asking(group, self.recorder, self.calls)
        self.tasks: list[Task] = []
        self._children: list[tuple[Task, Child]] = []
        self.recorder.counts["joint runs"] += 1

    async def go(self) -> None:
        """Raises Died, Over, Failed, Unknown."""
        sequence = self._first()
        while not self.recorder.stopping:
            await self.batch(sequence)
            if self.group.kind == SINGLE:
                return
            await asyncio.sleep(self._rng.expovariate(1 / self._habits.gap_s))
            sequence += self._rng.randint(1, 3) if self.group.kind == VERSIONED else 1

    def _first(self) -> int:
        committed = self.group.committed
        if committed >= 0 and self._rng.random() < self._habits.replays:
            self.recorder.counts["joint batches replayed"] += 1
            return committed
        return committed + 1

    def _dies(self) -> None:
        """Raises Died by chance."""
        if self._rng.random() < self._habits.dies:
            raise Died

    # --- a batch ---

    async def batch(self, sequence: int) -> None:
        """Raises Died, Over, Failed, Unknown."""
        self.tasks, self._children = [], []
        self._dies()
        try:
            children = await self._write(sequence)
            if self._rng.random() < self._habits.stalls:
                await asyncio.sleep(self._rng.uniform(*STALLS_S))
            self._dies()
            await self._commit(sequence, children)
        except (Failed, Unknown):
            self._kill_tasks()
            if self._rng.random() < 0.7:
                await self._abort(sequence)
            raise
        await self.driver.late.repeat_some(self.asking)

    async def _write(self, sequence: int) -> list[Child]:
        """The winner of each task; none of those that heard that the batch is decided."""
        begun = []
        for partitions in self.group.plan(sequence):
            count = 2 if self._rng.random() < self._habits.twice else 1
            begun.append([self._start(sequence, partitions) for _ in range(count)])
        winners = []
        for attempts, partitions in zip(begun, self.group.plan(sequence), strict=True):
            self._dies()
            winner = await self._winner(sequence, attempts, partitions)
            if winner is not None:
                winners.append(winner)
        return winners

    def _start(self, sequence: int, partitions: list[int]) -> asyncio.Task[Child | Exception | None]:
        one = Attempt(self.group.name, sequence, self.name, self.group.location, self.recorder.draw())
        self.recorder.history.attempts.append(one)
        calls = self.driver.calls_of(f"task/{one.token}")
        timeout_ms = self._rng.choice(self._habits.timeouts_ms)
        task = Task(self.group, one, partitions, self.recorder, calls, self._rng, timeout_ms)
        self.tasks.append(task)
        self.driver.late.begun(self.group, task)
        return self.driver.nursery.start(self._outcome(task), f"task {one.token}")

    async def _outcome(self, task: Task) -> Child | Exception | None:
        try:
            child = await task.run()
        except (Failed, Over) as error:
            return error
        if child is not None:
            self._children.append((task, child))
        return child

    async def _winner(
        self, sequence: int, attempts: list[asyncio.Task[Child | Exception | None]], partitions: list[int]
    ) -> Child | None:
        """The first of the attempts that is done, in their order; others may go on for a while. Raises Over, Failed."""
        for _ in range(MAX_ATTEMPTS):
            for attempt in attempts:
                found = await attempt
                if isinstance(found, Over):
                    raise found
                if not isinstance(found, Exception):
                    return found
            self.recorder.counts["joint tasks repeated"] += 1
            attempts = [self._start(sequence, partitions)]
        raise Failed(f"a task failed {MAX_ATTEMPTS} times")

    # --- its end ---

    async def _commit(self, sequence: int, children: list[Child]) -> None:
        refs = tuple(child.ref for child in children)
        if refs and self._rng.random() < self._habits.confused:
            await self._confused(sequence, refs)
        commit = self._new(sequence, refs, self.group.rows(sequence))
        request = commit_request(self.group, commit, refs, self._rng.choice((0, 0, 200, 5_000)))
        self.driver.late.asked(self.group, commit, request)
        if self._rng.random() < self._habits.dies:
            self.driver.nursery.start(self._send_only(commit, request), "a commit of a dead driver")
            await asyncio.sleep(self._rng.choice((0, 0.005, 0.05)))
            self.recorder.counts["joint drivers died in CommitJoint"] += 1
            raise Died
        aborting = None
        if self._rng.random() < self._habits.aborts:
            self.recorder.counts["joint aborts beside commits"] += 1
            aborting = self.driver.nursery.start(self._abort(sequence), "an abort beside a commit")
        response = await self.asking.commit(commit, request)
        if aborting is not None:
            await aborting
        self._judge(ErrorCode(response.error_code), response.error_message)
        if self._rng.random() < self._habits.aborts:
            await self._abort(sequence)

    def _new(self, sequence: int, refs: tuple[JointChildRef, ...], rows: int) -> Commit:
        tokens = frozenset(ref.token.decode() for ref in refs)
        commit = new_commit(self.group, sequence, self.name, tokens, rows, self.group.location)
        self.recorder.history.commits.append(commit)
        return commit

    async def _send_only(self, commit: Commit, request: object) -> None:
        calls = self.driver.calls_of("dead")
        try:
            await Asking(self.group, self.recorder, calls).commit(commit, request, attempts=1)  # type: ignore[arg-type]
        except Unknown:
            pass
        finally:
            await calls.close()

    @staticmethod
    def _judge(code: ErrorCode, text: str) -> None:
        """Raises Over, Failed."""
        if code in (ErrorCode.SUPERSEDED, ErrorCode.CHECKPOINT_ROLLED_BACK, ErrorCode.DECISION_MISSING):
            raise Over(code.name)
        if code != ErrorCode.NONE:
            raise Failed(f"{code.name}: {text}")

    async def _confused(self, sequence: int, refs: tuple[JointChildRef, ...]) -> None:
        """A CommitJoint that must be refused, so that it changes nothing."""
        first, *others = refs
        kind = self._rng.choice(("token", "epoch", "totals", "gap", "twice"))
        rows, of, overrides = self.group.rows(sequence), sequence, {}
        changed: tuple[JointChildRef, ...]
        if kind == "token":
            first = JointChildRef(slot=first.slot, producer_epoch=first.producer_epoch, token=b"another")
        elif kind == "epoch":
            first = JointChildRef(slot=first.slot, producer_epoch=first.producer_epoch + 1, token=first.token)
        elif kind == "totals" and self.group.committed >= 0:
            of, rows = self.group.committed, self.group.rows(self.group.committed) + 1
        elif self.group.kind == STREAM:
            of, overrides = sequence + 2, {"first_batch": sequence + 1} if self._rng.random() < 0.5 else {}
        else:
            of = sequence + 1  # of a versioned writer: these are children of another version
        changed = () if of == sequence + 2 else (first, *others)
        self.recorder.counts["joint commits that are wrong"] += 1
        commit = self._new(of, changed, rows)
        await self.asking.commit(commit, commit_request(self.group, commit, changed, 0, **overrides))

    async def _abort(self, sequence: int) -> None:
        run = self.name if self._rng.random() < 0.7 else ""
        abort = Abort(self.group.name, sequence, self.group.location, run)
        self.driver.late.aborted(self.group, abort)
        try:
            await self.asking.abort(abort)
        except Unknown:
            pass
        if run and self._rng.random() < self._habits.late_tasks:
            self.driver.nursery.start(self._begin_late(sequence), "a task behind its driver's abort")

    async def _begin_late(self, sequence: int) -> None:
        """A worker that Spark has not killed yet. A coordinator that comes new refuses it, too."""
        one = Attempt(self.group.name, sequence, self.name, self.group.location, self.recorder.draw())
        self.recorder.history.attempts.append(one)
        await asyncio.sleep(self._rng.uniform(0, LATE_TASK_S))
        calls = self.driver.calls_of(f"late/{one.token}")
        request = begin_request(self.group, one, max(self._habits.timeouts_ms))
        try:
            found = await Asking(self.group, self.recorder, calls).begin(one, request)
            self.recorder.counts[REFUSED_LATE] += found.error_code == ErrorCode.CHILD_NOT_OPEN
        except Unknown:
            pass
        finally:
            await calls.close()

    def _kill_tasks(self) -> None:
        for task in self.tasks:
            task.killed = True

    async def die(self) -> None:
        """Some tasks die with their driver. Others go on, and some that were done send more."""
        for task in self.tasks:
            if self._rng.random() >= self._habits.orphans:
                task.killed = True
            elif not task.ended:
                task.orphan = True
                self.recorder.counts["joint tasks of dead drivers"] += 1
        for task, child in self._children:
            if not task.killed:
                calls = self.driver.calls_of(f"orphan/{task.attempt.token}")
                sending = go_on_sending(task.attempt, child, self.recorder, calls, self._rng)
                self.driver.nursery.start(sending, "an orphan")
