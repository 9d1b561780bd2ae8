"""Spark beside its own Kafka source: the same query of the same topic on our cluster, cold and warm.

    ./dev bench spark [--quick] [--rounds N] [--records N] [--json FILE] [--folder DIR]

Three nodes hold a topic of six partitions with records of 100 bytes. A round is five sessions, each in a fresh
process: our source with Numba's cache in place, Spark's Kafka source, our source with an empty cache, as right after
an installation, our source with our daemon for Spark's Python processes, and the same by Kafka's protocol
(`transport=lane`) and not by gRPC, as the others of ours read; the brokers count which one it was. Each round begins
with another one. A session reads the topic several times; the first read is the cold one, and counts from `spark.read`
in a session that is ready, because starting Java is equal on both sides. All run under the same pyspark, in an
environment that is made once (out/spark). Needs Java 17 or newer and mvn; without them, or without the packages, it
says so and exits with 0. A quick run states no goals: it reads too little to judge them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from bench import machine
from bench.failover import start_cluster
from bench.folders import new_folder
from bench.kafka_tools import Unavailable
from bench.loads import make_load
from bench.report import Report, print_heading
from bench.spark_rows import Round, Session, check_answers, check_way, parse_session, rows
from bench.spark_tools import VERSION, SparkTools, get_spark
from bench.subject import Subject
from bench.throughput import produce_columns

SESSION = Path(__file__).with_name("spark_session.py")
RECORDS, QUICK_RECORDS = 3_000_000, 200_000
RECORD_BYTES = 100
PARTITIONS = 6
ROUNDS, QUICK_ROUNDS = 3, 1
READS, QUICK_READS = 5, 2  # of a session, the cold one included
SESSION_TIMEOUT_S = 900.0
OURS, THEIRS = "quorumlog", "kafka"  # the formats
DAEMON = "quorumlog.spark.daemon"
NOTHING: Mapping[str, str] = {}
LANE = {"transport": "lane"}  # the option of a read
SENT_BYTES = "quorumlog_fetch_chunk_bytes"  # of records by gRPC; the brokers' metric


class SessionFailed(Exception):
    """A session ended with an error, or not in time. The message names its log."""


def main(argv: list[str]) -> int:
    options = _parse(argv)
    try:
        tools = get_spark()
    except Unavailable as reason:
        print(f"not measured with Spark: {reason}")
        return 0
    count = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    wanted = options.records or (QUICK_RECORDS if options.quick else RECORDS)
    report = Report(settings={"rounds": count, "records": wanted, "quick": options.quick}, machine=machine.facts())
    print(", ".join(f"{name} {value}" for name, value in report.machine.items()))
    folder = new_folder("spark", options.folder)
    try:
        measured, records = _measure(tools, folder, count, wanted, QUICK_READS if options.quick else READS)
    except BaseException:
        print(f"logs of the failed run are in {folder}", file=sys.stderr)
        raise
    shutil.rmtree(folder)
    versions = sorted({session.version for turn in measured for session in turn.all})
    report.settings |= {"pyspark": versions, "connector": VERSION, "read": records}
    report.samples = {"rounds": [asdict(turn) for turn in measured]}
    print_heading(f"{records} records of {RECORD_BYTES} bytes, pyspark {', '.join(versions)} on both sides")
    report.add(*rows(measured, records, judged=not options.quick))
    missed = [row.name for row in report.rows if row.reached is False]
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
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    parser.add_argument("--folder", type=Path, help="folder of the logs, on the disk to be measured")
    return parser.parse_args(argv)


def _measure(tools: SparkTools, folder: Path, rounds: int, wanted: int, reads: int) -> tuple[list[Round], int]:
    """The rounds, and how many records the topic held."""
    cluster, _ = start_cluster(folder / "cluster")
    try:
        servers = cluster.bootstrap_servers
        topic, records = asyncio.run(_load(Subject(cluster.nodes), wanted))
        filled = tools.install(folder / "filled", fill_cache=True)

        def session(
            name: str, kind: str, installed: Path | None,
            settings: Mapping[str, str] = NOTHING, way: Mapping[str, str] = NOTHING,
        ) -> Session:  # fmt: skip
            classpath = f"{tools.jars}/*" if kind == THEIRS else ""
            more, options = json.dumps(dict(settings)), json.dumps(dict(way))
            command = [str(tools.python), str(SESSION), kind, servers, topic, str(reads), classpath, more, options]
            sent_before = cluster.nodes.metric(SENT_BYTES)
            found = _run(command, tools.environment(installed), folder / f"{name}.log")
            by_grpc = records * RECORD_BYTES * reads if kind == OURS and way is not LANE else 0
            check_way(name, cluster.nodes.metric(SENT_BYTES) - sent_before, by_grpc)
            used = f", processor time {found.used_s[0]:.1f} and {found.warm_used_s:.1f} s" if found.used_s[0] else ""
            print(f"{name}: first read {found.reads_s[0]:.2f} s, later {found.warm_s:.2f} s{used}", flush=True)
            return found

        def fresh(name: str) -> Session:
            return session(name, OURS, tools.install(folder / f"{name}-installed", fill_cache=False))

        kinds: dict[str, Callable[[str], Session]] = {
            "ours": lambda name: session(name, OURS, filled),
            "theirs": lambda name: session(name, THEIRS, None),
            "empty": fresh,
            "daemon": lambda name: session(name, OURS, filled, {"spark.python.daemon.module": DAEMON}),
            "lane": lambda name: session(name, OURS, filled, {"spark.python.daemon.module": DAEMON}, LANE),
        }
        measured = []
        for number in range(rounds):
            print(f"round {number + 1} of {rounds}", flush=True)
            found = {kind: kinds[kind](f"{kind}-{number}") for kind in rotated(list(kinds), number)}
            measured.append(Round(**found))
            check_answers(measured[-1], records)
        return measured, records
    finally:
        cluster.close()


def rotated(names: Sequence[str], by: int) -> list[str]:
    """Each kind of session is the first one of a round as often as any other: what is read first is the slowest."""
    start = by % len(names)
    return [*names[start:], *names[:start]]


async def _load(subject: Subject, wanted: int) -> tuple[str, int]:
    """A topic with about `wanted` records. Its name, and how many it holds."""
    load = make_load(RECORD_BYTES, wanted * RECORD_BYTES)
    topic = "spark"
    await subject.create(topic, PARTITIONS)
    await produce_columns(subject, topic, load, PARTITIONS)
    return topic, load.records + PARTITIONS  # produce_columns sends one to each partition first


def _run(command: list[str], environment: dict[str, str], log: Path) -> Session:
    """Raises SessionFailed."""
    with log.open("w") as errors:
        try:
            done = subprocess.run(
                command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=SESSION_TIMEOUT_S,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise SessionFailed(f"not done after {SESSION_TIMEOUT_S:g} s; its log is {log}") from None
    if done.returncode != 0:
        raise SessionFailed(f"it ended with {done.returncode}; its log is {log}")
    return parse_session(done.stdout)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
