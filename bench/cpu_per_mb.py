"""Two trees beside each other: the processor time of their nodes per MB, under the same load of Kafka's Java producer.

    python -m bench.cpu_per_mb --tree A --tree B [--load defaults|large|small] [--rounds N] [--durability replicated]

Each tree's cluster of three runs in the tree's own environment (.venv, of `./dev setup`). Both are up all the time and
loaded alternately by one warm client; the first WARM_UP rounds are not counted. Processor time per MB is steadier than
a rate on a machine with other work, but other work changes it, too: compare over many rounds, and give one tree twice
to see the noise. Ratios are the second tree's over the first's: below 1, the second tree needs less.
Needs a JDK of 17 or newer and mvn.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.kafka.clients import new_topic
from bench.kafka.java_load import LOADS, Cost, JavaLoad, run_load
from bench.kafka.warm_producer import WarmProducer
from bench.measuring import machine
from bench.measuring.processor_time import NOTHING, Spent, spent_by_threads
from bench.measuring.rounds import in_turn
from bench.measuring.start import exit_on_sigterm, new_folder
from bench.nodes.tree_cluster import TreeCluster
from bench.peers.kafka_tools import Unavailable, get_kafka

PARTITIONS = 6
WARM_UP, ROUNDS = 2, 5
THREADS = 6  # printed
HEAD = f"{'round':>5} {'tree':>4} {'MB/s':>7} {'ms/MB':>7} {'user':>7} {'system':>7} {'client':>7}"


def main(argv: list[str]) -> int:
    options = _parse(argv)
    try:
        kafka = get_kafka()
    except Unavailable as reason:
        print(f"not measured: {reason}", file=sys.stderr)
        return 1
    config = {"durability": options.durability} if options.durability else {}
    folder = new_folder("trees", options.folder)
    print(", ".join(f"{name} {value}" for name, value in machine.facts().items()))
    with ExitStack() as running:
        clusters = []
        for number, tree in enumerate(options.tree, 1):
            cluster = TreeCluster(tree, folder / f"tree-{number}")
            running.callback(cluster.close)
            clusters.append(cluster)
            print(f"tree {number}: {cluster.tree}")
        client = running.enter_context(WarmProducer(kafka))
        load = LOADS[options.load]
        _compare(client, clusters, load, config, options.rounds, options.mb or load.measured_mb)
    shutil.rmtree(folder)
    return 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.cpu_per_mb", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tree", type=Path, action="append", required=True, help="twice: the trees to compare")
    parser.add_argument("--load", choices=list(LOADS), default="defaults", help="; ".join(
        f"{key}: {load.name}" for key, load in LOADS.items()))  # fmt: skip
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}, plus {WARM_UP} that are not counted"
    )
    parser.add_argument(
        "--mb",
        type=float,
        help="measured in each round; default: "
        + ", ".join(f"{key} {load.measured_mb:g}" for key, load in LOADS.items()),
    )
    parser.add_argument("--durability", help="the topic's; default: the cluster's default")
    parser.add_argument("--folder", type=Path, help="folder of the logs, on the disk to be measured")
    options = parser.parse_args(argv)
    if len(options.tree) != 2:
        parser.error("give --tree exactly twice")
    return options


def _compare(
    client: WarmProducer,
    clusters: Sequence[TreeCluster],
    load: JavaLoad,
    config: Mapping[str, str],
    rounds: int,
    mb: float,
) -> None:
    costs: list[list[Cost]] = [[] for _ in clusters]
    before: list[dict[str, Spent]] = [{} for _ in clusters]
    print(f"\n{load.name}, {dict(config) or 'default durability'}\n{HEAD}")
    for turn in range(rounds + WARM_UP):
        for number, cluster in in_turn(clusters, turn):
            with new_topic(cluster.bootstrap_servers, PARTITIONS, config) as topic:
                found = run_load(client, cluster.bootstrap_servers, topic, load, cluster.pids(), mb)
            counted = turn - WARM_UP + 1
            print(_line(str(counted) if counted > 0 else "warm", number + 1, found), flush=True)
            if counted > 0:
                costs[number].append(found)
            else:
                before[number] = spent_by_threads(cluster.pids())
    print()
    for number, found_costs in enumerate(costs):
        print(_line("med", number + 1, medians(found_costs)))
    print(f"\nsecond tree / first, of the medians: {ratio_text(*costs)}\n")
    for number, cluster in enumerate(clusters):
        print(f"tree {number + 1}, seconds by thread, start and end of each run included: "
              f"{threads_text(before[number], spent_by_threads(cluster.pids()))}")  # fmt: skip


def medians(costs: Sequence[Cost]) -> Cost:
    """Of each field alone, so that user and system time need not add up to the median of their sum."""
    return Cost(*(statistics.median(values) for values in zip(*costs, strict=True)))


def ratio_text(first: Sequence[Cost], second: Sequence[Cost]) -> str:
    """Ratios of the medians, then those of the rounds."""

    def ratio(name: str) -> float:
        ours, theirs = ([float(getattr(cost, name)) for cost in costs] for costs in (second, first))
        return statistics.median(ours) / statistics.median(theirs)

    of_rounds = [two.ms_per_mb / one.ms_per_mb for one, two in zip(first, second, strict=True)]
    around, least = (
        statistics.median(of_rounds),
        min(cost.ms_per_mb for cost in second) / min(cost.ms_per_mb for cost in first),
    )
    return (
        f"ms/MB {ratio('ms_per_mb'):.3f}, user {ratio('user_ms_per_mb'):.3f}, system {ratio('system_ms_per_mb'):.3f}, "
        f"MB/s {ratio('mb_per_s'):.3f}; ms/MB within a round {min(of_rounds):.3f} / {around:.3f} / "
        f"{max(of_rounds):.3f}, of the least disturbed rounds {least:.3f}"
    )


def threads_text(before: Mapping[str, Spent], after: Mapping[str, Spent]) -> str:
    """The THREADS names that used most, and all others together."""
    used = {name: spent.since(before.get(name, NOTHING)) for name, spent in after.items()}
    names = sorted(used, key=lambda name: -used[name].total_s)
    parts = [f"{name} {used[name].user_s:.1f} user {used[name].system_s:.1f} system" for name in names[:THREADS]]
    rest = sum(used[name].total_s for name in names[THREADS:])
    return "; ".join([*parts, *([f"others {rest:.1f}"] if names[THREADS:] else [])])


def _line(turn: str, tree: int, found: Cost) -> str:
    return (
        f"{turn:>5} {tree:>4} {found.mb_per_s:7.1f} {found.ms_per_mb:7.2f} {found.user_ms_per_mb:7.2f} "
        f"{found.system_ms_per_mb:7.2f} {found.client_ms_per_mb:7.2f}"
    )


if __name__ == "__main__":
    exit_on_sigterm()
    sys.exit(main(sys.argv[1:]))
