"""Spark beside its own Kafka connector and MirrorMaker 2: the same work on our cluster, round by round.

    ./dev bench spark [--only PART ...] [--quick] [--rounds N] [--records N] [--versions V ...] [--json FILE]
                      [--folder DIR]

read: three nodes hold a topic of six partitions with records of 100 bytes. A round of reads is five sessions, each in
a fresh process: our source with Numba's cache in place, Spark's Kafka source, our source with an empty cache, as right
after an installation, our source after `quorumlog.spark.quick_start()`, and the same by Kafka's protocol
(`transport=lane`) and not by gRPC, as the others of ours read; the brokers count which one it was. Each round begins
with another one. A session reads the topic several times; the first read is the cold one, and counts from `spark.read`
in a session that is ready, because starting Java is equal on both sides. With the newest version a round has six more
sessions, ours after `quick_start`: a stream with Trigger.AvailableNow counts the topic by partition, a stream of 1,000
records a second runs batch after batch, and the topic is loaded into Parquet files, by `quorumlog spark load` and by
Spark's source and sink.

sink: rows of Parquet files into a topic, as a batch and as a stream, exactly once, at least once, and by Spark's sink.

commit: the commit of a batch of eight tasks, with its calls, and what a reader of committed records sees of it.

mirror: a topic from one node to another, by `quorumlog spark mirror` and by MirrorMaker 2.

All sides run under the same pyspark, in an environment that is made once (out/spark). Needs Java 17 or newer and mvn;
without them, or without the packages, it says so and exits with 0. A quick run states no goals: it does too little to
judge them. Only reads are measured with an older version.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from bench.measuring import machine
from bench.measuring.report import Report, print_heading
from bench.measuring.start import new_folder
from bench.peers.kafka_tools import Unavailable
from bench.spark.commit import measure_commit
from bench.spark.mirror import measure_mirror
from bench.spark.part import Part, Setting
from bench.spark.reads import measure_reads
from bench.spark.sink import measure_sink
from bench.spark.tools import NEWEST, OLDEST, get_spark

PARTS: Mapping[str, Part] = {
    "read": measure_reads, "sink": measure_sink, "commit": measure_commit, "mirror": measure_mirror
}  # fmt: skip


def main(argv: list[str]) -> int:
    options = _parse(argv)
    parts = options.only or list(PARTS)
    versions = options.versions if "read" in parts else [NEWEST]
    try:
        tools = [get_spark(version) for version in versions]
    except Unavailable as reason:
        print(f"not measured with Spark: {reason}")
        return 0
    given = {name: getattr(options, name) for name in ("rounds", "records", "quick")}
    settings = {"parts": parts, **given, "pyspark": versions}
    report = Report(settings=settings, machine=machine.facts())
    print(", ".join(f"{name} {value}" for name, value in report.machine.items()))
    folder = new_folder("spark", options.folder)
    setting = Setting(
        tools=tools, folder=folder, rounds=options.rounds, records=options.records, quick=options.quick
    )  # fmt: skip
    try:
        missed = _measure(parts, setting, report, options.json)
    except BaseException:
        print(f"logs of the failed run are in {folder}", file=sys.stderr)
        raise
    shutil.rmtree(folder)
    told = f"{len(missed)} goals missed" + (": " + "; ".join(missed) if missed else "")
    print("\na quick run judges no goals" if options.quick else f"\n{told}")
    return 0


def _measure(parts: list[str], setting: Setting, report: Report, file: Path | None) -> list[str]:
    """The missed goals. file: gets what is found, after each part."""
    missed = []
    for part in parts:
        for found in PARTS[part](setting):
            report.samples[found.name] = found.samples
            report.settings |= found.settings
            print_heading(found.heading)
            report.add(*found.rows)
            missed += [f"{found.name}: {row.name}" for row in found.rows if row.reached is False]
            if file:
                report.write_json(file)
    return missed


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev bench spark", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--only", nargs="+", choices=list(PARTS), metavar="PART", help=f"{', '.join(PARTS)}; default all"
    )
    parser.add_argument("--quick", action="store_true", help="little of it and one round, to check that it works")
    parser.add_argument("--rounds", type=int, help="default 3, quick 1")
    parser.add_argument(
        "--records", type=int, help="of a topic or a write, about as many; default 3,000,000, of a mirror 1,000,000"
    )
    parser.add_argument(
        "--versions", nargs="+", default=[NEWEST, OLDEST], metavar="VERSION",
        help=f"of pyspark, for reads; default {NEWEST} {OLDEST}; all else runs with {NEWEST} only",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    parser.add_argument("--folder", type=Path, help="folder of the logs, on the disk to be measured")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
