"""The rows of groups beside Kafka. The goals were set in advance."""

from __future__ import annotations

from bench.kafka_group_lives import FAILOVER, LOAD
from bench.kafka_groups import FLUSH, GROUPS, PARTITIONS, commits, flushed
from bench.kafka_samples import Samples
from bench.kafka_table import figure_beside, or_why, ratios
from bench.report import Row

COMMITS_GOAL = {1: 0.5, 100: 1.0}  # by partitions a call
FLUSHED_GOAL = 1.0
FAILOVER_GOAL, LATENCY_GOAL, P99_GOAL, JOIN_GOAL, DEATH_GOAL, LOAD_GOAL = 0.1, 1.5, 1.0, 1.0, 1.0, 1.0


def group_rows(theirs: Samples, ours: Samples) -> list[Row]:
    rows = [
        row
        for groups in GROUPS
        for partitions in PARTITIONS
        for row in figure_beside(
            f"commits, {groups} groups, {partitions} partitions a call", "1/s", commits(groups, partitions),
            COMMITS_GOAL[partitions], theirs, ours, at_least=True,
        )
    ]  # fmt: skip
    for groups in GROUPS:
        for partitions in PARTITIONS:
            name = f"commits, {groups} groups, {partitions} partitions a call, beside {FLUSH}=1"
            rows += _beside_flushed(name, commits(groups, partitions), theirs, ours)
    rows += figure_beside("commit at 500/s, p50", "ms", "commit p50", LATENCY_GOAL, theirs, ours)
    rows += figure_beside("commit at 500/s, p99", "ms", "commit p99", P99_GOAL, theirs, ours)
    for figure in theirs.starting_with("join "):
        _, members, protocol = figure.split()
        name = f"{members} members join until all are stable, {protocol}"
        rows += figure_beside(name, "s", figure, JOIN_GOAL, theirs, ours)
    for figure in theirs.starting_with("death "):
        _, members, protocol = figure.split()
        name = f"one of {members} dies until all is owned again, {protocol}"
        rows += figure_beside(name, "s", figure, DEATH_GOAL, theirs, ours)
    rows += figure_beside(
        "kill -9 of the coordinator to next accepted commit", "s", FAILOVER, FAILOVER_GOAL, theirs, ours
    )
    rows += figure_beside("kill -9 of the coordinator until a large log is loaded", "s", LOAD, LOAD_GOAL, theirs, ours)
    return rows


def _beside_flushed(name: str, figure: str, theirs: Samples, ours: Samples) -> list[Row]:
    """Ours as it is, beside Kafka's once each commit of it is on disk, too."""

    def make() -> list[Row]:
        found, own = theirs[flushed(figure)], ours[figure]
        shares = ratios(found, own)
        return [
            Row(name=f"Kafka: {name}", unit="1/s", rounds=found),
            Row(name=name, unit="1/s", rounds=own, shares=shares, of="Kafka's", goal=FLUSHED_GOAL),
        ]

    return or_why(name, make)
