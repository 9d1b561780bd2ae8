"""Spark beside its own Kafka source: the same queries of the same topic on our cluster, cold and warm.

    ./dev bench spark [--quick] [--rounds N] [--records N] [--versions V ...] [--json FILE] [--folder DIR]

Three nodes hold a topic of six partitions with records of 100 bytes. A round of reads is five sessions, each in a fresh
process: our source with Numba's cache in place, Spark's Kafka source, our source with an empty cache, as right after
an installation, our source after `quorumlog.spark.quick_start()`, and the same by Kafka's protocol
(`transport=lane`) and not by gRPC, as the others of ours read; the brokers count which one it was. Each round begins
with another one. A session reads the topic several times; the first read is the cold one, and counts from `spark.read`
in a session that is ready, because starting Java is equal on both sides.

With the newest version a round has ten more sessions, ours after `quick_start`: a stream with Trigger.AvailableNow
counts the topic by partition, a stream of 1,000 records a second runs batch after batch, the topic is loaded into
Parquet files, by `quorumlog spark load` and by Spark's source and sink, and as many rows of Parquet files are written
into topics of their own, as a batch and as a stream, at least once on both sides.

Both sides run under the same pyspark, in an environment that is made once (out/spark). Needs Java 17 or newer and mvn;
without them, or without the packages, it says so and exits with 0. A quick run states no goals: it reads too little to
judge them.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import machine
from bench.failover import start_cluster
from bench.folders import new_folder
from bench.kafka_tools import Unavailable
from bench.loads import make_load
from bench.report import Report, print_heading
from bench.spark_jobs import AT_LEAST_ONCE, LANE, OURS, THEIRS, Job, Sessions, steadily_written
from bench.spark_pipeline_rows import Pair, PipelineRound, check_counts, check_written, pipeline_rows
from bench.spark_rows import Round, Session, check_answers, rows
from bench.spark_tools import NEWEST, OLDEST, SparkTools, get_spark
from bench.subject import Subject
from bench.throughput import produce_columns

RECORDS, QUICK_RECORDS = 3_000_000, 200_000
RECORD_BYTES = 100
PARTITIONS = 6
ROUNDS, QUICK_ROUNDS = 3, 1
READS, QUICK_READS = 5, 2  # of a session, the cold one included
RUNS, QUICK_RUNS = 3, 2  # of a stream or a load, likewise
TOPIC, STEADY_TOPIC, SINK_TOPIC = "spark", "spark-steady-", "spark-"
Measured = tuple[list[Round], list[PipelineRound]]


def main(argv: list[str]) -> int:
    options = _parse(argv)
    try:
        tools = [get_spark(version) for version in options.versions]
    except Unavailable as reason:
        print(f"not measured with Spark: {reason}")
        return 0
    count = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    wanted = options.records or (QUICK_RECORDS if options.quick else RECORDS)
    settings = {"rounds": count, "records": wanted, "quick": options.quick, "pyspark": options.versions}
    report = Report(settings=settings, machine=machine.facts())
    print(", ".join(f"{name} {value}" for name, value in report.machine.items()))
    folder = new_folder("spark", options.folder)
    try:
        found, records = _measure(tools, folder, count, wanted, quick=options.quick)
    except BaseException:
        print(f"logs of the failed run are in {folder}", file=sys.stderr)
        raise
    shutil.rmtree(folder)
    report.settings["read"] = records
    missed = []
    for version, (reads, others) in found.items():
        report.samples[version] = {
            "rounds": [asdict(turn) for turn in reads], "pipeline": [asdict(turn) for turn in others]
        }  # fmt: skip
        print_heading(f"{records} records of {RECORD_BYTES} bytes, pyspark {version} on both sides")
        made = rows(reads, records, judged=not options.quick)
        if others:
            made += pipeline_rows(others, records, judged=not options.quick)
        report.add(*made)
        missed += [f"{version}: {row.name}" for row in made if row.reached is False]
    told = f"{len(missed)} goals missed" + (": " + "; ".join(missed) if missed else "")
    print("\na quick run judges no goals" if options.quick else f"\n{told}")
    if options.json:
        report.write_json(options.json)
    return 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev bench spark", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few records and one round, to check that it works")
    parser.add_argument("--rounds", type=int, help=f"default {ROUNDS}, quick {QUICK_ROUNDS}")
    parser.add_argument("--records", type=int, help=f"about as many; default {RECORDS}, quick {QUICK_RECORDS}")
    parser.add_argument(
        "--versions", nargs="+", default=[NEWEST, OLDEST], metavar="VERSION",
        help=f"of pyspark; default {NEWEST} {OLDEST}; streams and loads run with {NEWEST} only",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    parser.add_argument("--folder", type=Path, help="folder of the logs, on the disk to be measured")
    return parser.parse_args(argv)


def _measure(
    tools: Sequence[SparkTools], folder: Path, rounds: int, wanted: int, *, quick: bool
) -> tuple[Mapping[str, Measured], int]:
    """By version, and how many records the topic held."""
    cluster, _ = start_cluster(folder / "cluster")
    try:
        subject = Subject(cluster.nodes)
        records = asyncio.run(_load(subject, wanted))
        found = {}
        for one in tools:
            here = folder / one.version
            here.mkdir()
            found[one.version] = _rounds(Sessions(subject, one, here, RECORD_BYTES), rounds, records, quick=quick)
        return found, records
    finally:
        cluster.close()


def _rounds(sessions: Sessions, rounds: int, records: int, *, quick: bool) -> Measured:
    """One version of Spark. Streams and loads with the newest only."""
    version = sessions.tools.version
    filled = sessions.tools.install(sessions.folder / "filled", fill_cache=True)
    reads: list[Round] = []
    others: list[PipelineRound] = []
    for number in range(rounds):
        print(f"pyspark {version}, round {number + 1} of {rounds}", flush=True)
        reads.append(_round(sessions, filled, number, QUICK_READS if quick else READS))
        check_answers(reads[-1], records)
        if version == NEWEST:
            others.append(_pipeline_round(sessions, filled, number, QUICK_RUNS if quick else RUNS, records))
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


def _pipeline_round(sessions: Sessions, filled: Path, number: int, runs: int, records: int) -> PipelineRound:
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

    def written(work: str, kind: str) -> Session:
        topic = f"{SINK_TOPIC}{work}-{kind}-{number}"
        asyncio.run(sessions.subject.create(topic, PARTITIONS))
        options = AT_LEAST_ONCE if kind == OURS else {}
        job = Job(work=work, kind=kind, topic=topic, runs=runs, is_quick=kind == OURS, options=options, rows=records)
        found = sessions.run(f"{work}-{kind}-{number}", job, filled if kind == OURS else None)
        check_written(work, asyncio.run(sessions.subject.ends(topic)), runs * records)
        asyncio.run(sessions.subject.delete(topic))
        shutil.rmtree(sessions.folder / f"{work}-{kind}-{number}-written")
        return found

    def pair(one: Callable[[str], Session]) -> Pair:
        found = {kind: one(kind) for kind in rotated([OURS, THEIRS], number)}
        return Pair(ours=found[OURS], theirs=found[THEIRS])

    return PipelineRound(
        stream=pair(lambda kind: session("stream", kind)),
        steady=pair(small),
        load=pair(lambda kind: session("load", kind)),
        sink=pair(lambda kind: written("sink", kind)),
        sink_stream=pair(lambda kind: written("sink_stream", kind)),
    )


def rotated(names: Sequence[str], by: int) -> list[str]:
    """Each kind of session is the first one of a round as often as any other: what is read first is the slowest."""
    start = by % len(names)
    return [*names[start:], *names[:start]]


async def _load(subject: Subject, wanted: int) -> int:
    """A topic with about `wanted` records. How many it holds."""
    load = make_load(RECORD_BYTES, wanted * RECORD_BYTES)
    await subject.create(TOPIC, PARTITIONS)
    await produce_columns(subject, TOPIC, load, PARTITIONS)
    return load.records + PARTITIONS  # produce_columns sends one to each partition first


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
