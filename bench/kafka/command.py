"""Beside Apache Kafka: the same loads on a Kafka cluster and on ours, on the same disk.

    ./dev bench kafka [PART ...] [--quick] [--rounds N] [--json FILE] [--folder DIR]

Parts (default: all): start, produce, consume, latency, memory, failover: first on Kafka, then on ours; promises: both
clusters up, rounds interleaved; recovery: all nodes of one cluster killed, then those of the other; cleaner: the two
cleaners on the same log; groups: commits, joins and fail-over, both clusters up, and loads of their log; transactions:
produce, commits, committed reads and end to end, both clusters up; partitions: the life of a cluster that has thousands
of them, first Kafka's, then ours; security: TLS, logins and access rules, both clusters up.
Needs Java 17 or newer (a JDK) and mvn; without them it says so and exits with 0. Kafka runs
with its own default heap and settings; both sides have replication 3 and min.insync.replicas 2. Unless a row says
otherwise, Kafka acknowledges from the page cache, ours once it is on disk. Each figure is the min, median and max of
the rounds. A ratio (ours / Kafka's) is of the medians; its min and max are the worst and the best ratio that the rounds
allow. Goals are judged only if both clusters got warm; --quick does not warm them and judges none.
A failed figure is printed, and its row gives the reason; the run goes on and exits with 1. The --json file is rewritten
after every sample.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.kafka import cleaner as kafka_cleaner
from bench.kafka import groups as kafka_group_lives
from bench.kafka import groups as kafka_groups
from bench.kafka import partitions as kafka_partitions
from bench.kafka import promises as kafka_promises
from bench.kafka import recovery as kafka_recovery
from bench.kafka import security as kafka_security
from bench.kafka import transactions as kafka_transactions
from bench.kafka.figures import Size, measure
from bench.kafka.rows import PARTS, rows
from bench.kafka.table import Samples, without_goals
from bench.measuring import machine
from bench.measuring.report import Report, print_heading
from bench.measuring.start import new_folder
from bench.peers.kafka_peer import KafkaPeer
from bench.peers.kafka_tools import VERSION, Kafka, Unavailable, get_kafka
from bench.peers.peer import OurPeer, Peer
from bench.peers.secured import our_secured, their_secured

ROUNDS, QUICK_ROUNDS = 3, 1
TOGETHER = (
    "promises",
    "recovery",
    "cleaner",
    "groups",
    "transactions",
    "partitions",
    "security",
)  # both clusters in turns


def main(argv: list[str]) -> int:
    options = _parse(argv)
    try:
        kafka = get_kafka()
    except Unavailable as reason:
        print(f"not measured beside Kafka: {reason}")
        return 0
    size = Size.quick(options.rounds or QUICK_ROUNDS) if options.quick else Size(rounds=options.rounds or ROUNDS)
    parts = options.parts or list(PARTS)
    report = Report(settings={"parts": parts, "kafka": VERSION, "size": size.as_json()}, machine=machine.facts())
    print(", ".join(f"{name} {value}" for name, value in report.machine.items()))
    folder = new_folder("kafka", options.folder)
    theirs, ours = _measure_both(kafka, folder, size, parts, report, options.json)
    print_heading(f"ours beside Kafka {VERSION}")
    found = rows(parts, theirs, ours)
    report.add(*(without_goals(found) if options.quick else found))
    if options.quick:
        print(
            "\nno goals: --quick does not warm the clusters, and a cold Kafka is several times slower than a warm one"
        )
    else:
        missed = [row.name for row in report.rows if row.reached is False]
        print(f"\n{len(missed)} goals missed" + (": " + "; ".join(missed) if missed else ""))
    if options.json:
        report.write_json(options.json)
    failed = [f"{of.name}: {figure}" for of in (theirs, ours) for figure in of.failed]
    if failed:
        print(f"{len(failed)} figures failed: {'; '.join(failed)}; logs are in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev bench kafka", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument(
        "--quick", action="store_true", help="little data and one round, to check that it works; no goals"
    )
    parser.add_argument("--rounds", type=int, help=f"default {ROUNDS}, quick {QUICK_ROUNDS}")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--folder", type=Path, help="folder of the logs, on the disk to be measured")
    options = parser.parse_args(argv)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    return options


def _measure_both(
    kafka: Kafka, folder: Path, size: Size, parts: list[str], report: Report, json: Path | None
) -> tuple[Samples, Samples]:
    """All samples are in the file, even if the run fails."""

    def make_theirs(number: int | str) -> Peer:
        return KafkaPeer(kafka, folder / f"kafka-{number}")

    def make_ours(number: int | str) -> Peer:
        return OurPeer(folder / f"ours-{number}")

    def write() -> None:
        report.samples = {of.name: of.as_json() for of in (theirs, ours)}
        if json:
            report.write_json(json)

    theirs, ours = Samples("Kafka", write), Samples("quorumlog", write)
    if one_by_one := [part for part in parts if part not in TOGETHER]:
        measure(kafka, make_theirs, size, one_by_one, folder, theirs)
        measure(kafka, make_ours, size, one_by_one, folder, ours)
    if "promises" in parts:
        kafka_promises.measure(
            kafka, partial(make_theirs, "promises"), partial(make_ours, "promises"), size, theirs, ours
        )
    if "recovery" in parts:
        for turn in range(size.recovery_rounds):
            for make, figures in ((make_theirs, theirs), (make_ours, ours)):
                kafka_recovery.measure(kafka, partial(make, f"recovery-{turn}"), size.recovery_mb, figures)
    if "cleaner" in parts:
        kafka_cleaner.measure(kafka, folder / "cleaner", size.cleaner_records, size.rounds, theirs, ours)
    if "groups" in parts:
        both = ((_groups_of(theirs.name, kafka, folder), theirs), (_groups_of(ours.name, kafka, folder), ours))
        started = [(partial(make_one, "groups"), figures) for make_one, figures in both]
        kafka_groups.measure(started, size.rounds, size.group_s, size.group_members)
        for make_one, figures in both:
            kafka_group_lives.measure_load(partial(make_one, "load"), *size.group_load, figures)
    if "transactions" in parts:
        started = [(partial(make_theirs, "transactions"), theirs), (partial(make_ours, "transactions"), ours)]
        kafka_transactions.measure(kafka, started, size.transactions, size.rounds)
    if "partitions" in parts:
        for turn in range(size.rounds):
            for make, figures in ((make_theirs, theirs), (make_ours, ours)):
                print(f"{figures.name}: partitions, round {turn + 1} of {size.rounds}", flush=True)
                kafka_partitions.measure(kafka, partial(make, f"partitions-{turn}"), size.partitions, figures)
    if "security" in parts:
        secured = [
            (partial(their_secured, kafka, folder / "kafka-security"), theirs),
            (partial(our_secured, folder / "ours-security"), ours),
        ]
        kafka_security.measure(secured, size.security, size.rounds)
    return theirs, ours


def _groups_of(name: str, kafka: Kafka, folder: Path) -> Callable[[str], Peer]:
    """Clusters whose groups have one coordinator, and wait for nobody."""
    settings = {key: str(value) for key, value in kafka_groups.SETTINGS.items()}
    if name == OurPeer.name:
        return lambda what: OurPeer(folder / f"ours-{what}", settings)
    return lambda what: KafkaPeer(kafka, folder / f"kafka-{what}", changes=settings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
