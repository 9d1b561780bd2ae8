"""A load as a Spark job: one task for each range of the plan.

What a load asks of the cluster: the partitions with their ends, and the offsets of a time.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from quorumlog.client.blocking_admin import Admin
from quorumlog.client.errors import ConfigError, QuorumlogError
from quorumlog.ids import Offset, TopicPartition
from quorumlog.spark.load.choosing import Choice, Wanted, choose
from quorumlog.spark.load.driving import drive
from quorumlog.spark.load.folder import Layout, LoadedRange, Plan, PlannedRange
from quorumlog.spark.load.protocol import Choose, Outcome, load
from quorumlog.spark.load.store import Store
from quorumlog.spark.load.table import LakeTable, table_of
from quorumlog.spark.load.work import Failed, Task
from quorumlog.spark.read.cluster import make_admin, place_of, read_spans
from quorumlog.spark.read.options import ReadOptions, parse_read_options
from quorumlog.spark.read.places import TimePlace, parse_time
from quorumlog.spark.read.planning import LogSpan
from quorumlog.spark.stream.planning import by_partition

CLIENT_ID = "spark-quorumlog-load"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A load as the user asks for it. client: options of quorumlog.client, by their underscored names.

    start, until: empty, an offset for all partitions, or a time in ISO 8601. Where no record is at or after a time, it
    is the end. partition_by, isolation_level, table: None: as in the folder.
    """

    topics: tuple[str, ...]
    client: Mapping[str, Any]
    start: str = ""
    until: str = ""
    rows_per_file: int = Layout().rows_per_file
    partition_by: str | None = None
    isolation_level: str | None = None
    table: str | None = None
    skip_lost: bool = False

    def __post_init__(self) -> None:
        """Raises ConfigError for a start and an end that can have nothing between them."""
        start, until = self.start, self.until
        if not start or not until or _is_offset(start) != _is_offset(until):
            return
        begin, end = (_number(option, text) for option, text in (("--from", start), ("--until", until)))
        if begin >= end:
            raise ConfigError(f"--from {start} --until {until}: nothing is between them; give an --until behind --from")


def read_options(request: Request, isolation_level: str, topics: Sequence[str]) -> ReadOptions:
    """As the connector's. Raises ConfigError."""
    given = {f"kafka.{name.replace('_', '.')}": _text(value) for name, value in request.client.items()}
    return parse_read_options(
        {
            "groupIdPrefix": CLIENT_ID,
            **given,
            "subscribe": ",".join(topics),
            "isolationLevel": isolation_level,
            "failOnDataLoss": "false" if request.skip_lost else "true",
        }
    )


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def choose_now(request: Request, asked: Choose) -> Choice | None:
    """Raises what choosing raises, and what the client raises."""
    isolation_level = request.isolation_level or (asked.last.layout if asked.last else Layout()).isolation_level
    options = read_options(request, isolation_level, request.topics)
    with make_admin(options) as admin:
        spans = read_spans(admin, options)
        wanted = Wanted(
            starts=_offsets(admin, "--from", request.start, spans, options),
            ends=_offsets(admin, "--until", request.until, spans, options),
            rows_per_file=request.rows_per_file,
            partition_by=request.partition_by,
            isolation_level=isolation_level,
            table=request.table,
            skip_lost=request.skip_lost,
        )
        cluster_id = admin.describe_cluster().cluster_id
    return choose(asked.last, asked.covered, by_partition(spans), wanted, cluster_id)


def _is_offset(text: str) -> bool:
    return re.fullmatch(r"\d{1,19}", text, re.ASCII) is not None


def _number(option: str, text: str) -> int:
    """An offset, or a time in ms. Raises ConfigError."""
    return int(text) if _is_offset(text) else parse_time(option, text)


def _offsets(
    admin: Admin, option: str, text: str, spans: list[LogSpan], options: ReadOptions
) -> Mapping[TopicPartition, Offset] | None:
    if not text:
        return None
    if _is_offset(text):
        return {(span.topic, span.partition): Offset(int(text)) for span in spans}
    if text.isdigit():
        raise ConfigError(f"{option} {text}: offsets have at most 19 digits")
    place = TimePlace(option=option, times_ms=parse_time(option, text), latest_if_none=True)
    found = place_of(admin, place, spans, options)
    assert not isinstance(found, int) or not spans, "of partitions, a time gives an offset for each"
    return {} if isinstance(found, int) else {key: Offset(offset) for key, offset in found.items()}


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
