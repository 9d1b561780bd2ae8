"""Reads, streams and loads of one topic: our source beside Spark's Kafka source, on a cluster of three nodes."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.measuring.loads import make_load
from bench.nodes.subject import Subject
from bench.spark.jobs import LANE, OURS, THEIRS, Job, Sessions, steadily_written
from bench.spark.part import Found, Setting, rotated
from bench.spark.rows import Pair, PipelineRound, Round, Session, check_answers, check_counts, pipeline_rows, rows
from bench.spark.tools import NEWEST
from bench.three.failover import start_cluster
from bench.three.throughput import produce_columns

RECORDS, QUICK_RECORDS = 3_000_000, 200_000
RECORD_BYTES = 100
PARTITIONS = 6
ROUNDS, QUICK_ROUNDS = 3, 1
READS, QUICK_READS = 5, 2  # of a session, the cold one included
RUNS, QUICK_RUNS = 3, 2  # of a stream or a load, likewise
TOPIC, STEADY_TOPIC = "spark", "spark-steady-"
Measured = tuple[list[Round], list[PipelineRound]]


def measure_reads(setting: Setting) -> Iterator[Found]:
    """For each version. Raises SessionFailed, WrongAnswer, WrongWay."""
    cluster, _ = start_cluster(setting.folder / "cluster")
    try:
        subject = Subject(cluster.nodes)
        records = asyncio.run(_load(subject, setting.record_count(RECORDS, QUICK_RECORDS)))
        for one in setting.tools:
            here = setting.folder / one.version
            here.mkdir()
            found = _rounds(Sessions(subject, one, here, RECORD_BYTES), setting, records)
            yield reads_found(one.version, found, records, judged=not setting.quick)
    finally:
        cluster.close()


def reads_found(version: str, measured: Measured, records: int, *, judged: bool) -> Found:
    """judged: whether the goals are stated."""
    reads, others = measured
    made = rows(reads, records, judged=judged)
    if others:
        made += pipeline_rows(others, records, judged=judged)
    return Found(
        name=version,
        heading=f"{records} records of {RECORD_BYTES} bytes, pyspark {version} on both sides",
        rows=made,
        samples={"rounds": [asdict(turn) for turn in reads], "pipeline": [asdict(turn) for turn in others]},
        settings={"read": records},
    )


def _rounds(sessions: Sessions, setting: Setting, records: int) -> Measured:
    """One version of Spark. Streams and loads with the newest only."""
    version, quick = sessions.tools.version, setting.quick
    rounds = setting.round_count(ROUNDS, QUICK_ROUNDS)
    filled = sessions.tools.install(sessions.folder / "filled", fill_cache=True)
    reads: list[Round] = []
    others: list[PipelineRound] = []
    for number in range(rounds):
        print(f"pyspark {version}, round {number + 1} of {rounds}", flush=True)
        reads.append(_round(sessions, filled, number, QUICK_READS if quick else READS))
        check_answers(reads[-1], records)
        if version == NEWEST:
            others.append(_pipeline_round(sessions, filled, number, QUICK_RUNS if quick else RUNS))
            check_counts(others[-1], records)
    return reads, others


def _round(sessions: Sessions, filled: Path, number: int, reads: int) -> Round:
    def session(name: str, installed: Path | None, **job: Any) -> Session:
        return sessions.run(f"{name}-{number}", Job(work="read", topic=TOPIC, runs=reads, **job), installed)

    def fresh() -> Session:
        place = sessions.folder / f"empty-{number}-installed"
        return session("empty", sessions.tools.install(place, fill_cache=False), kind=OURS)

    kinds: dict[str, Callable[[], Session]] = {
        "ours": lambda: session("ours", filled, kind=OURS),
        "theirs": lambda: session("theirs", None, kind=THEIRS),
        "empty": fresh,
        "quick": lambda: session("quick", filled, kind=OURS, is_quick=True),
        "lane": lambda: session("lane", filled, kind=OURS, is_quick=True, options=LANE),
    }
    return Round(**{kind: kinds[kind]() for kind in rotated(list(kinds), number)})


def _pipeline_round(sessions: Sessions, filled: Path, number: int, runs: int) -> PipelineRound:
    def session(work: str, kind: str, topic: str = TOPIC) -> Session:
        job = Job(work=work, kind=kind, topic=topic, runs=runs, is_quick=kind == OURS)
        found = sessions.run(f"{work}-{kind}-{number}", job, filled if kind == OURS else None)
        shutil.rmtree(sessions.folder / f"{work}-{kind}-{number}-written")
        return found

    def small(kind: str) -> Session:
        topic = f"{STEADY_TOPIC}{kind}-{number}"
        asyncio.run(sessions.subject.create(topic, PARTITIONS))
        with steadily_written(sessions.subject, topic):
            return session("steady", kind, topic)

    def pair(one: Callable[[str], Session]) -> Pair:
        found = {kind: one(kind) for kind in rotated([OURS, THEIRS], number)}
        return Pair(ours=found[OURS], theirs=found[THEIRS])

    return PipelineRound(
        stream=pair(lambda kind: session("stream", kind)),
        steady=pair(small),
        load=pair(lambda kind: session("load", kind)),
    )


async def _load(subject: Subject, wanted: int) -> int:
    """A topic with about `wanted` records. How many it holds."""
    load = make_load(RECORD_BYTES, wanted * RECORD_BYTES)
    await subject.create(TOPIC, PARTITIONS)
    await produce_columns(subject, TOPIC, load, PARTITIONS)
    return load.records + PARTITIONS  # produce_columns sends one to each partition first
