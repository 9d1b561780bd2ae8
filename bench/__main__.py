"""Benchmarks a cluster of three nodes on this machine, beside a floor and peers in the same run.

    ./dev bench kafka ...     beside Apache Kafka; see --help
    ./dev bench nats ...      beside NATS JetStream; see --help
    ./dev bench spark ...     Spark beside its own Kafka connector, and MirrorMaker 2; see --help
    ./dev bench [PART ...] [--quick] [--rounds N] [--json FILE] [--folder DIR]

Parts (default: all): machine, idle, start, throughput, memory, latency, failover, controller, metadata, quotas, turns,
codec, validation, access-rules, log, large-log, large-groups, compaction, snapshot, fencing, cluster, partitions,
describe, console.
MB are 10^6 bytes of values. Each figure is the min, median and max of interleaved rounds; a fencing is measured once.
On a busy machine only the shares are meaningful.
Missed goals are named. The exit code is 1 if a measurement failed, never because it was slow.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
from pathlib import Path
from typing import Any

from bench import access_rules, codec, decided_load, describe, large_groups, many_partitions, validation
from bench.console import scrape
from bench.log import closing, compaction, large_log, log_engine
from bench.measuring import machine, memory
from bench.measuring.loads import make_load
from bench.measuring.report import Report, Row, print_heading
from bench.measuring.start import compile_tree, exit_on_sigterm, new_folder
from bench.nodes.subject import Subject
from bench.quorum import cluster, controller, fencing, metadata, snapshot_start
from bench.three import failover, idle, latency, longest_turns, quotas, throughput

PARTS = (
    "machine",
    "idle",
    "start",
    "throughput",
    "memory",
    "latency",
    "failover",
    "controller",
    "metadata",
    "quotas",
    "turns",
    "codec",
    "validation",
    "access-rules",
    "log",
    "large-log",
    "large-groups",
    "compaction",
    "snapshot",
    "fencing",
    "cluster",
    "partitions",
    "describe",
    "console",
)
ON_A_CLUSTER = ("start", "throughput", "memory", "latency", "failover", "metadata", "quotas")
ALONE = (
    "Three parts run alone and have options of their own: kafka (beside Apache Kafka), nats (beside NATS JetStream), "
    "spark (beside its connector)."
)
PARTITIONS = 6
RECORD_BYTES = (1024, 100)
LOAD_BYTES, QUICK_LOAD_BYTES = 96_000_000, 24_000_000
ROUNDS, QUICK_ROUNDS = 5, 2
LATENCY_S, QUICK_LATENCY_S = 5.0, 2.0
FENCED_REPLICAS, QUICK_FENCED_REPLICAS = 100_000, 20_000


def main(argv: list[str]) -> int:
    compile_tree()
    if argv[:1] == ["kafka"]:
        from bench.kafka import command as kafka

        return kafka.main(argv[1:])
    if argv[:1] == ["nats"]:
        from bench.nats import command as nats

        return nats.main(argv[1:])
    if argv[:1] == ["spark"]:
        from bench.spark import command as spark

        return spark.main(argv[1:])
    options = _parse(argv)
    parts = options.parts or list(PARTS)
    if "codec" in parts and not codec.compiled_is_measured():
        print(f"aiokafka does not use {codec.COMPILED} here: install a wheel of aiokafka", file=sys.stderr)
        return 1
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    settings = {"parts": parts, "rounds": rounds, "quick": options.quick, "partitions": options.partitions}
    report = Report(settings=settings, machine=machine.facts())
    print(", ".join(f"{name} {value}" for name, value in report.machine.items()))
    folder = new_folder("bench", options.folder)
    try:
        _run(parts, report, folder, rounds, options)
    except BaseException:
        print(f"logs of the failed run are in {folder}", file=sys.stderr)
        raise
    shutil.rmtree(folder)
    _tell_missed(report)
    if options.json:
        report.write_json(options.json)
    return 0


def _parse(argv: list[str]) -> Any:
    parser = argparse.ArgumentParser(prog="dev bench", description=(__doc__ or "").splitlines()[0], epilog=ALONE)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="less data and fewer rounds, to check that it works")
    parser.add_argument("--rounds", type=int, help=f"default {ROUNDS}, quick {QUICK_ROUNDS}; plus one not counted")
    parser.add_argument("--partitions", type=int, default=PARTITIONS, help="partitions of the topic, logs of the floor")
    parser.add_argument("--trials", type=int, help=f"of each fault of a controller; default {controller.TRIALS}")
    parser.add_argument("--replicas", type=int, help=f"of the fenced broker; default {FENCED_REPLICAS}")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--folder", type=Path, help="folder of the logs, on the disk to be measured")
    options = parser.parse_args(argv)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    return options


def _run(parts: list[str], report: Report, folder: Path, rounds: int, options: Any) -> None:
    if "machine" in parts:
        print_heading("the machine")
        report.add(*machine.measure(folder, rounds))
    if "idle" in parts:
        _measure_rest(report, folder / "idle", options)
    if any(part in parts for part in ON_A_CLUSTER):
        _measure_cluster(parts, report, folder, rounds, options)
    if "controller" in parts:
        _measure_controller(report, folder / "controller", options)
    if "turns" in parts:
        print_heading("the longest turn of a leader's loop, processor time")
        report.add(*longest_turns.measure(folder / "turns", rounds))
        decided = decided_load.QUICK_COUNT if options.quick else decided_load.COUNT
        report.add(*decided_load.measure(decided, rounds))
    if "codec" in parts:
        print_heading("the codec beside aiokafka's compiled one")
        report.add(*_codec_rows(rounds))
    if "validation" in parts:
        print_heading("a leader's look at the records of 256-KiB batches, processor time")
        report.add(*validation.measure(rounds))
    if "access-rules" in parts:
        print_heading("decisions by 10,000 access rules, processor time of one core")
        report.add(*access_rules.measure(rounds))
    if "log" in parts:
        print_heading("the log engine beside bare system calls")
        report.add(*log_engine.measure(folder / "log", rounds, quick=options.quick))
    if "large-log" in parts:
        print_heading("a large log beside a small one, processor time")
        report.add(*large_log.measure(folder / "large", rounds, quick=options.quick))
    if "large-groups" in parts:
        print_heading("groups of thousands of members: the longest step of a coordinator's core, and its memory")
        count = large_groups.QUICK_MEMBERS if options.quick else large_groups.MEMBERS
        report.add(*large_groups.measure(count, rounds))
    if "compaction" in parts:
        print_heading("compaction, and appends beside it")
        report.add(*compaction.measure(folder / "compaction", rounds, quick=options.quick))
    if "snapshot" in parts:
        print_heading("a start from a snapshot of a large cluster, without the opening of logs")
        count = snapshot_start.QUICK_PARTITIONS if options.quick else snapshot_start.PARTITIONS
        report.add(*snapshot_start.measure(folder / "snapshot", count, rounds))
    if "fencing" in parts:
        print_heading("a broker with very many replicas, three controllers and brokers without logs")
        replicas = options.replicas or (QUICK_FENCED_REPLICAS if options.quick else FENCED_REPLICAS)
        report.add(*fencing.measure(folder / "fencing", replicas))
    if "cluster" in parts:
        print_heading("200,000 partitions" if not options.quick else "10,000 partitions")
        for row in cluster.measure(folder / "cluster", rounds, quick=options.quick):
            report.add(row)
            if options.json:
                report.write_json(options.json)
    if "partitions" in parts:
        print_heading("a node of very many partitions: its starts, and the turns of its loop")
        count = many_partitions.QUICK_PARTITIONS if options.quick else many_partitions.PARTITIONS
        report.add(*many_partitions.measure(folder / "partitions", count, rounds))
        report.add(*closing.measure(folder / "closing", count, rounds))
    if "describe" in parts:
        print_heading("the CLI's description of a topic of very many partitions")
        count = describe.QUICK_PARTITIONS if options.quick else describe.PARTITIONS
        report.add(*describe.measure(folder / "describe", count, rounds))
    if "console" in parts:
        from bench.console import commands, pages  # pages need the extra [ui]

        print_heading("what an operator looks at")
        report.add(*commands.measure(folder / "commands", rounds))
        count = scrape.QUICK_PARTITIONS if options.quick else scrape.PARTITIONS
        report.add(*scrape.measure(folder / "scrape", count, rounds))
        topics = pages.QUICK_TOPICS if options.quick else pages.TOPICS
        report.add(*pages.measure(folder / "pages", topics, rounds))


def _measure_rest(report: Report, folder: Path, options: Any) -> None:
    """A cluster of its own: one that has worked holds more."""
    print_heading("a cluster of three at rest, no client")
    cluster, _ = failover.start_cluster(folder)
    try:
        rest_s = idle.QUICK_REST_S if options.quick else idle.REST_S
        report.add(*asyncio.run(idle.measure(cluster.nodes, options.partitions, rest_s)))
    finally:
        cluster.close()


def _measure_cluster(parts: list[str], report: Report, folder: Path, rounds: int, options: Any) -> None:
    print_heading("a cluster of three, acks=all, durable")
    starts = []
    for number in range(rounds if "start" in parts else 1):
        cluster, seconds = failover.start_cluster(folder / f"cluster-{number}")
        starts.append(seconds)
        if len(starts) < rounds and "start" in parts:
            cluster.close()
    report.add(Row(name="from `up` to healthy", unit="s", rounds=starts))
    with_cluster = Subject(cluster.nodes)
    try:
        if "throughput" in parts:
            load_bytes = QUICK_LOAD_BYTES if options.quick else LOAD_BYTES
            loads = [make_load(size, load_bytes) for size in RECORD_BYTES]
            rows = throughput.measure(with_cluster, folder / "floor-throughput", loads, options.partitions, rounds)
            report.add(*asyncio.run(rows))
        if "memory" in parts:
            report.add(*memory.measure(cluster.nodes))
        if "latency" in parts:
            seconds = QUICK_LATENCY_S if options.quick else LATENCY_S
            report.add(*asyncio.run(latency.measure(with_cluster, folder / "floor-latency", rounds, seconds)))
        if "failover" in parts:
            report.add(*asyncio.run(failover.measure(cluster, rounds)))
        if "metadata" in parts:
            seconds = metadata.QUICK_SECONDS if options.quick else metadata.SECONDS
            report.add(*metadata.measure(cluster.nodes, folder / "etcd", rounds, seconds))
        if "quotas" in parts:
            report.add(*asyncio.run(quotas.measure(with_cluster, rounds, quick=options.quick)))
    finally:
        cluster.close()


def _measure_controller(report: Report, folder: Path, options: Any) -> None:
    """A cluster of its own, with hardly any data: only the quorum is measured."""
    print_heading("time without a controller, seen by a client that commits all the time")
    cluster, _ = failover.start_cluster(folder)
    try:
        trials = options.trials or (controller.QUICK_TRIALS if options.quick else controller.TRIALS)
        report.add(*asyncio.run(controller.measure(cluster, trials)))
    finally:
        cluster.close()


def _codec_rows(rounds: int) -> list[Row]:
    works = [codec.make_work(200_000, 100, 1024 * 1024, with_headers=with_headers) for with_headers in (False, True)]
    return [
        Row(
            name=f"{found['operation']}, of aiokafka's", unit="times", goal=found["goal"],
            rounds=[found["ratio_min"], found["ratio_median"], found["ratio_max"]],
        )
        for work in works
        for found in codec.run(work, rounds)
    ]  # fmt: skip


def _tell_missed(report: Report) -> None:
    missed = [row.name for row in report.rows if row.reached is False]
    print(f"\n{len(missed)} goals missed" + (": " + "; ".join(missed) if missed else ""))


if __name__ == "__main__":
    exit_on_sigterm()
    sys.exit(main(sys.argv[1:]))
