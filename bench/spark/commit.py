"""The commit of a batch of eight tasks in real Spark on three nodes, and what a reader of committed records sees.

A session writes a stream of small batches exactly once, each by eight tasks with rows for all six partitions. Of each
batch: the time of `commit`, from Spark's call on until all markers are written, with its calls (`spark_timed.py`), and
the window in which a reader of committed records, a client of ours, has the batch's first rows and not yet its last.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.measuring.report import Row, percentile
from bench.nodes.subject import Subject
from bench.spark.jobs import OURS, Job, Sessions
from bench.spark.part import Found, Setting
from bench.spark.rows import Session, WrongAnswer
from bench.three.failover import start_cluster

TASKS = 8
PARTITIONS = 6
ROWS = 480  # of a batch: ten for each task and partition
ROUNDS, QUICK_ROUNDS = 3, 1
BATCHES, QUICK_BATCHES = 100, 10  # of a session, the first one included
GOAL_MS = 150.0  # of the median
READ_MS = 100
LAST_S = 30.0  # how long the reader waits for the last batch's rows
TIMED = Path(__file__).with_name("spark_timed.py")
TIMES = "times"  # the file, in the session's folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A line of spark_timed.py."""

    batch: int
    taken_ms: float
    attempts: int
    calls: Sequence[tuple[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRound:
    """commits: without the session's first one, which connects. windows_ms: of as many batches as were seen whole."""

    session: Session
    commits: Sequence[Commit]
    windows_ms: Sequence[float]


@dataclass(slots=True)
class Sighting:
    """Of one batch, by a reader of committed records: when rows of it came first and last, in seconds."""

    first_s: float
    last_s: float
    rows: int = 0


@dataclass(slots=True)
class Sightings:
    by_batch: dict[int, Sighting] = field(default_factory=dict)

    def saw(self, values: Sequence[int], now_s: float) -> None:
        """values: numbers of rows, which count from 0 on, a batch after the other."""
        for batch, rows in Counter(value // ROWS for value in values).items():
            seen = self.by_batch.setdefault(batch, Sighting(now_s, now_s))
            seen.last_s = now_s
            seen.rows += rows

    def has(self, batch: int) -> bool:
        return batch in self.by_batch and self.by_batch[batch].rows == ROWS

    def windows_ms(self) -> list[float]:
        """Raises WrongAnswer if a batch has more rows than were written."""
        for batch, seen in self.by_batch.items():
            if seen.rows > ROWS:
                raise WrongAnswer(f"batch {batch}: {seen.rows} rows were seen, and {ROWS} were written")
        return [1_000 * (one.last_s - one.first_s) for one in self.by_batch.values() if one.rows == ROWS]


def measure_commit(setting: Setting) -> Iterator[Found]:
    """Raises SessionFailed, WrongAnswer."""
    tools = setting.newest
    if tools is None:
        return
    rounds = setting.round_count(ROUNDS, QUICK_ROUNDS)
    batches = QUICK_BATCHES if setting.quick else BATCHES
    cluster, _ = start_cluster(setting.folder / "commit-cluster")
    try:
        here = setting.folder / "commit"
        here.mkdir()
        sessions = Sessions(Subject(cluster.nodes), tools, here, 0)
        filled = tools.install(here / "filled", fill_cache=True)
        shutil.copy(TIMED, filled)
        found = []
        for number in range(rounds):
            print(f"commit, round {number + 1} of {rounds}", flush=True)
            found.append(_round(sessions, filled, number, batches))
    finally:
        cluster.close()
    yield commit_found(tools.version, found, judged=not setting.quick)


def _round(sessions: Sessions, filled: Path, number: int, batches: int) -> CommitRound:
    name = f"commit-{number}"
    asyncio.run(sessions.subject.create(name, PARTITIONS))
    written = sessions.folder / f"{name}-written"
    written.mkdir()
    times = {"timesFile": str(written / TIMES)}
    job = Job(work="commits", kind=OURS, topic=name, runs=batches, rows=ROWS, is_quick=True, options=times)
    with watched(sessions.subject, name, batches - 1) as sightings:
        session = sessions.run(name, job, filled)
    commits = read_commits((written / TIMES).read_text())
    asyncio.run(sessions.subject.delete(name))
    shutil.rmtree(written)
    return CommitRound(session=session, commits=commits[1:], windows_ms=sightings.windows_ms())


def read_commits(text: str) -> list[Commit]:
    """Raises WrongAnswer unless each commit is one of all tasks."""
    found = [Commit(**json.loads(line)) for line in text.splitlines()]
    for one in found:
        if one.attempts != TASKS:
            raise WrongAnswer(f"batch {one.batch} was written by {one.attempts} tasks, not by {TASKS}")
    return found


@contextmanager
def watched(subject: Subject, topic: str, last: int) -> Iterator[Sightings]:
    """A thread of this process reads the topic as a reader of committed records. At the end it waits for the rows of
    batch `last`. Raises WrongAnswer if they do not come."""
    sightings, ended = Sightings(), threading.Event()

    async def read() -> None:
        async with subject.consumer(isolation_level="read_committed") as consumer:
            await consumer.assign_topic(topic, "earliest")
            deadline_s = None
            while not (ended.is_set() and sightings.has(last)):
                records = await consumer.poll(2 * ROWS, READ_MS)
                now_s = time.perf_counter()
                sightings.saw([int(record.value or b"") for record in records], now_s)
                if ended.is_set():
                    deadline_s = deadline_s or now_s + LAST_S
                    if now_s > deadline_s:
                        return

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(lambda: asyncio.run(read()))
        try:
            yield sightings
        finally:
            ended.set()
        reader.result()
    if not sightings.has(last):
        raise WrongAnswer(f"a reader of committed records has not seen all of batch {last} after {LAST_S:g} s")


def commit_found(version: str, rounds: Sequence[CommitRound], *, judged: bool) -> Found:
    """judged: whether the goal is stated."""
    taken = [[one.taken_ms for one in turn.commits] for turn in rounds]
    windows = [turn.windows_ms for turn in rounds]
    median = statistics.median
    made = [
        Row(name="commit, p50", unit="ms", rounds=[median(one) for one in taken], goal=GOAL_MS if judged else None,
            at_least=False),
        Row(name="commit, p90", unit="ms", rounds=[percentile(one, 90) for one in taken]),
        *(Row(name=f"  {name}", unit="", rounds=(), note=note) for name, note in calls_of(rounds).items()),
        Row(name="from the first marker seen to the last, p50", unit="ms", rounds=[median(one) for one in windows]),
        Row(name="from the first marker seen to the last, p99", unit="ms",
            rounds=[percentile(one, 99) for one in windows]),
        Row(name="the whole batch, median", unit="s", rounds=[turn.session.warm_s for turn in rounds]),
    ]  # fmt: skip
    heading = f"commit: {TASKS} tasks, {ROWS} rows, {PARTITIONS} partitions, three nodes, pyspark {version}"
    return Found(name="commit", heading=heading, rows=made, samples=[asdict(turn) for turn in rounds])


def calls_of(rounds: Sequence[CommitRound]) -> Mapping[str, str]:
    """By request: how many of it a commit makes, and what one of them takes."""
    commits = [one for turn in rounds for one in turn.commits]
    found: dict[str, list[float]] = {}
    for one in commits:
        for name, taken_ms in one.calls:
            found.setdefault(name, []).append(taken_ms)
    return {
        name: f"{len(times) / len(commits):.2f} calls a commit, each p50 {statistics.median(times):.1f} ms, "
        f"p90 {percentile(times, 90):.1f} ms"
        for name, times in sorted(found.items())
    }
