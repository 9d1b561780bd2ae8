"""Rows of Parquet files into a topic: our sink, exactly once and at least once, beside Spark's, on the same cluster.

Each session writes all rows several times, as a batch (`df.write`) or as a stream (Trigger.AvailableNow), into a topic
of its own. The topic must hold each row once when it has ended, as a reader of committed records sees it.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.measuring.report import Row
from bench.nodes.subject import Subject
from bench.spark.jobs import AT_LEAST_ONCE, OURS, THEIRS, Job, Sessions
from bench.spark.part import Found, Setting, rotated
from bench.spark.rows import Session, WrongAnswer
from bench.three.failover import start_cluster

ROWS, QUICK_ROWS = 3_000_000, 200_000  # of each run
ROW_BYTES = 100
PARTITIONS = 6
ROUNDS, QUICK_ROUNDS = 3, 1
RUNS, QUICK_RUNS = 3, 2  # of a session, the first one included
LEAST_GOAL, ONCE_GOAL = 2.0, 1.2  # times the rate of Spark's sink, at least
OF = "Spark's sink"
KINDS: Mapping[str, tuple[str, Mapping[str, str]]] = {  # format and options
    "once": (OURS, {}),
    "least": (OURS, AT_LEAST_ONCE),
    "theirs": (THEIRS, {}),
}
WORKS: Mapping[str, str] = {"sink": "sink", "sink_stream": "stream into the sink"}  # of a session, and the rows' name


@dataclass(frozen=True, slots=True, kw_only=True)
class Sinks:
    """Sessions of one round: ours exactly once, ours at least once, Spark's sink, which writes at least once."""

    once: Session
    least: Session
    theirs: Session


SinkRound = Mapping[str, Sinks]  # by work


def measure_sink(setting: Setting) -> Iterator[Found]:
    """Raises SessionFailed, WrongAnswer."""
    tools = setting.newest
    if tools is None:
        return
    rounds, rows = setting.round_count(ROUNDS, QUICK_ROUNDS), setting.record_count(ROWS, QUICK_ROWS)
    cluster, _ = start_cluster(setting.folder / "sink-cluster")
    try:
        here = setting.folder / "sink"
        here.mkdir()
        sessions = Sessions(Subject(cluster.nodes), tools, here, ROW_BYTES)
        filled = tools.install(here / "filled", fill_cache=True)
        found = []
        for number in range(rounds):
            print(f"sink, round {number + 1} of {rounds}", flush=True)
            found.append(_round(sessions, filled, number, QUICK_RUNS if setting.quick else RUNS, rows))
    finally:
        cluster.close()
    yield sink_found(tools.version, found, rows, judged=not setting.quick)


def _round(sessions: Sessions, filled: Path, number: int, runs: int, rows: int) -> SinkRound:
    def session(work: str, kind: str) -> Session:
        name = f"{work}-{kind}-{number}"
        asyncio.run(sessions.subject.create(name, PARTITIONS))
        format_, options = KINDS[kind]
        job = Job(work=work, kind=format_, topic=name, runs=runs, is_quick=format_ == OURS, options=options, rows=rows)
        found = sessions.run(name, job, filled if format_ == OURS else None)
        check_written(name, asyncio.run(sessions.subject.committed(name)), runs * rows)
        asyncio.run(sessions.subject.delete(name))
        shutil.rmtree(sessions.folder / f"{name}-written")
        return found

    return {work: Sinks(**{kind: session(work, kind) for kind in rotated(list(KINDS), number)}) for work in WORKS}


def check_written(name: str, found: int, wanted: int) -> None:
    """found: records in a sink's topic. Raises WrongAnswer unless each row is there once."""
    if found != wanted:
        raise WrongAnswer(f"{name}: the topic has {found} records, and {wanted} rows were written")


def sink_found(version: str, rounds: Sequence[SinkRound], rows: int, *, judged: bool) -> Found:
    """judged: whether the goals are stated."""
    return Found(
        name="sink",
        heading=f"sink: {rows} rows of {ROW_BYTES} bytes, pyspark {version} on both sides",
        rows=[row for work in WORKS for row in _rows(work, rounds, rows, judged=judged)],
        samples=[{work: asdict(sinks) for work, sinks in turn.items()} for turn in rounds],
    )


def _rows(work: str, rounds: Sequence[SinkRound], rows: int, *, judged: bool) -> list[Row]:
    """The first run of a session states no goal: it begins with Java's start-up on both sides."""
    name, turns = WORKS[work], [turn[work] for turn in rounds]
    goals = {"least": LEAST_GOAL, "once": ONCE_GOAL} if judged else {}
    made = _beside(f"{name}, first", "rows/s", turns, lambda one: rows / one.reads_s[0], {})
    made += _beside(f"{name}, later", "rows/s", turns, lambda one: rows / one.warm_s, goals)
    if all(session.used_s[0] for turn in turns for session in (turn.once, turn.least, turn.theirs)):
        made += _beside(f"{name}, processor time of a later run", "s", turns, lambda one: one.warm_used_s, {})
    return made


def _beside(
    name: str, unit: str, turns: Sequence[Sinks], value: Callable[[Session], float], goals: Mapping[str, float]
) -> list[Row]:
    """goals: by kind."""
    theirs = [value(turn.theirs) for turn in turns]
    made = [Row(name=f"Spark's: {name}", unit=unit, rounds=theirs)]
    for kind, title in (("least", "at least once"), ("once", "exactly once")):
        ours = [value(getattr(turn, kind)) for turn in turns]
        shares = [mine / other for mine, other in zip(ours, theirs, strict=True)]
        made.append(
            Row(name=f"{title}: {name}", unit=unit, rounds=ours, shares=shares, of=OF, goal=goals.get(kind))
        )  # fmt: skip
    return made
