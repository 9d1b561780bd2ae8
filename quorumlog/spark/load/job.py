"""A load as a Spark job: one task for each range of the plan."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from quorumlog.client.errors import QuorumlogError
from quorumlog.spark.load.choosing import Choice
from quorumlog.spark.load.driving import drive
from quorumlog.spark.load.looking import Request, choose_now, read_options
from quorumlog.spark.load.protocol import Choose, Outcome, load
from quorumlog.spark.load.records import LoadedRange, Plan, PlannedRange
from quorumlog.spark.load.store import Store
from quorumlog.spark.load.table import LakeTable, table_of
from quorumlog.spark.load.work import Failed, Task

Runner = Callable[[Task, Sequence[PlannedRange]], Iterable[LoadedRange | Failed]]
Shown = Callable[[int, int], None]  # how many ranges are done, of how many

PROGRESS_S = 0.5


class LoadFailed(QuorumlogError):
    """A range could not be loaded. Nothing of this load is committed; the next one does it again, as it was planned."""


def run_load(request: Request, store: Store, runner: Runner) -> list[Outcome]:
    """Loads until nothing is pending: what an earlier loader has left undone first, then what is asked for.

    The last outcome is that of the request. Raises LoadFailed, and what choosing and the client raise.
    """
    if request.table:
        _table(request.table, store)
    store.prove()
    token = uuid4().hex
    outcomes: list[Outcome] = []
    while not outcomes or outcomes[-1].was_pending:
        steps = load(token, uuid4().hex, reads_again=bool(request.start))
        outcomes.append(
            drive(
                steps,
                store,
                choose=lambda asked: _choose(request, asked, store),
                work=lambda plan: _work(plan, request, store, runner),
                table=lambda plan: _table(plan.layout.table, store),
            )
        )
    return outcomes


def _choose(request: Request, asked: Choose, store: Store) -> Choice | None:
    choice = choose_now(request, asked)
    if choice is not None and choice.layout.table:
        _table(choice.layout.table, store).check(asked.last, choice)
    return choice


def _table(kind: str, store: Store) -> LakeTable:
    """Raises ConfigError if its library is not installed."""
    found = table_of(kind, store)
    found.need()
    return found


def _work(plan: Plan, request: Request, store: Store, runner: Runner) -> list[LoadedRange]:
    if plan.layout.table:
        _table(plan.layout.table, store)
    if not plan.ranges:
        return []
    topics = list(dict.fromkeys(one.topic for one in plan.ranges))
    options = read_options(request, plan.layout.isolation_level, topics)
    done = list(runner(Task(plan, store, options), plan.ranges))
    failed = [one for one in done if isinstance(one, Failed)]
    if failed:
        others = f" (and {len(failed) - 1} more ranges)" if len(failed) > 1 else ""
        raise LoadFailed(
            f"load {plan.number}: {failed[0].where}{others}: {failed[0].why}. Nothing of it is committed; "
            "run the command again: it does the same load first"
        )
    loaded = [one for one in done if isinstance(one, LoadedRange)]
    _check_seen(plan, loaded, store)
    return loaded


def _check_seen(plan: Plan, loaded: Sequence[LoadedRange], store: Store) -> None:
    """Raises LoadFailed where a worker has written into a folder that is not the driver's."""
    for one in loaded:
        for file in one.files:
            if store.size(file.path) is None:
                raise LoadFailed(
                    f"load {plan.number}: a worker wrote {file.path}, and it is not there for the driver: --to "
                    "must be a folder that all workers share, or an object store. Nothing of it is committed"
                )


def in_this_process(task: Task, ranges: Sequence[PlannedRange]) -> Iterator[LoadedRange | Failed]:
    """A Runner without Spark."""
    return map(task, ranges)


def in_spark(spark: Any, shown: Shown | None = None) -> Runner:
    """A Runner by this session: local, or of a cluster whose workers have quorumlog. It raises LoadFailed where Spark
    ends its tasks, as those of a worker that is killed again and again."""

    def run(task: Task, ranges: Sequence[PlannedRange]) -> list[LoadedRange | Failed]:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        context = spark.sparkContext
        try:
            with _told(context, len(ranges), shown):
                found: list[LoadedRange | Failed] = context.parallelize(list(ranges), len(ranges)).map(task).collect()
                return found
        except (Py4JError, PySparkException) as error:
            why = " ".join(str(error).split("\n")[:2])  # what was called, and the reason; then comes Java's stack
            raise LoadFailed(
                f"load {task.plan.number}: Spark gave its tasks up ({why}). Nothing of it is committed; look at its "
                "log, then run the command again: it does the same load first"
            ) from error

    return run


@contextmanager
def _told(context: Any, total: int, shown: Shown | None) -> Iterator[None]:
    """Tells how many tasks of this job are done, while it runs."""
    if shown is None:
        yield
        return
    group, ended = f"quorumlog-load-{uuid4().hex}", threading.Event()
    context.setJobGroup(group, "quorumlog spark load")
    tracker = context.statusTracker()

    def look() -> None:
        while not ended.wait(PROGRESS_S):
            jobs = [job for job in map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)) if job is not None]
            stages = [tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds]
            infos = [info for info in stages if info is not None]
            shown(sum(info.numCompletedTasks for info in infos), total)

    teller = threading.Thread(target=look, daemon=True)
    teller.start()
    try:
        yield
        shown(total, total)
    finally:
        ended.set()
        teller.join()
