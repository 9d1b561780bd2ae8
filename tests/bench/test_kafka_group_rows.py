"""The rows of groups beside Kafka: ratios, goals, and figures that could not be measured."""

from __future__ import annotations

from bench.kafka.groups import (
    CLASSIC,
    CONSUMER,
    FAILOVER,
    GROUPS,
    LOAD,
    PARTITIONS,
    commits,
    deaths,
    flushed,
    group_rows,
    joins,
)
from bench.kafka.table import Samples


def measured(name: str, rate: float, ms: float) -> Samples:
    found = Samples(name)
    for groups in GROUPS:
        for partitions in PARTITIONS:
            found.add(commits(groups, partitions), rate)
            if name == "Kafka":
                found.add(flushed(commits(groups, partitions)), rate / 2)
    for figure in ("commit p50", "commit p99", joins(3), joins(3, CONSUMER), deaths(500, CLASSIC), FAILOVER):
        found.add(figure, ms)
    return found


def test_rates_are_to_be_higher_and_times_lower() -> None:
    rows = {row.name: row for row in group_rows(measured("Kafka", 1_000.0, 10.0), measured("quorumlog", 600.0, 8.0))}
    assert rows["commits, 1 groups, 1 partitions a call"].reached is True
    assert rows["commits, 64 groups, 100 partitions a call"].reached is False
    assert rows["commits, 64 groups, 100 partitions a call, beside flush.messages=1"].reached is True
    assert rows["3 members join until all are stable, classic"].reached is True
    assert rows["3 members join until all are stable, consumer"].reached is True
    assert rows["one of 500 dies until all is owned again, classic"].reached is True
    assert rows["kill -9 of the coordinator to next accepted commit"].reached is False
    assert list(rows["commit at 500/s, p99"].shares) == [0.8, 0.8, 0.8]


def test_what_was_not_measured_says_why() -> None:
    theirs, ours = measured("Kafka", 1.0, 1.0), measured("quorumlog", 1.0, 1.0)

    def fail() -> None:
        raise OSError("no disk")

    ours.attempt([LOAD], fail)
    theirs.add(LOAD, 1.0)
    row = group_rows(theirs, ours)[-1]
    assert row.failed is not None and "no disk" in row.failed
