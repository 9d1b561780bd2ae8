"""Groups and transactions that this broker coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorumlog_server.metrics.reading import Reading, Source
from quorumlog_server.metrics.series import Kind, Rest, Series

if TYPE_CHECKING:
    from quorumlog_broker.node import Broker

_GROUPS = "kafka.server:type=group-coordinator-metrics"
_TRANSACTIONS = "kafka.server:type=transaction-coordinator-metrics"

STATES = Series(
    "groups", Kind.GAUGE, "", ("state",), "How many groups are in which state?", f"{_GROUPS}: group-count by state"
)
OFFSET_COMMITS = Series(
    "offset_commits_total",
    Kind.COUNTER,
    "",
    (),
    "For how many partitions have groups committed offsets?",
    f"{_GROUPS}: offset-commit-count",
)
REBALANCES = Series(
    "rebalances_total",
    Kind.COUNTER,
    "",
    (),
    "How often did a group with members begin a generation, or an epoch?",
    f"{_GROUPS}: group-completed-rebalance-count, consumer-group-rebalance-count",
)
LAG = Series(
    "group_lag",
    Kind.GAUGE,
    "",
    ("group", "topic"),
    "How many records can a group read that it has not committed? Markers, aborted and compacted records do not count, "
    "nor do topics that none of its members reads. Counted at most 5 s ago while somebody scrapes, at least every "
    "5 minutes; not before the second scrape.",
)
LAG_SECONDS = Series(
    "group_lag_seconds",
    Kind.GAUGE,
    "seconds",
    ("group", "topic"),
    "How old is the oldest of these records? 0: there is none.",
    rest=Rest.LARGEST,
)
LAG_ESTIMATED = Series(
    "group_lag_estimated",
    Kind.GAUGE,
    "",
    (),
    "For how many of these is the lag at most what is shown? A leader has not read so much of its log yet.",
)
LAG_LEFT_OUT = Series(
    "group_lag_left_out", Kind.GAUGE, "", (), "How many offsets were too many to be counted for group_lag?"
)
LOAD = Series(
    "coordinator_load_seconds",
    Kind.HISTOGRAM,
    "seconds",
    (),
    "How long does it take to load groups or transactional ids, before their coordinator answers?",
    f"{_GROUPS}: partition-load-time-max, and of {_TRANSACTIONS}",
    buckets="load",
)
TRANSACTIONS_OPEN = Series(
    "transactions_open", Kind.GAUGE, "", (), "How many transactions are open that are coordinated here?"
)
TRANSACTIONS = Series(
    "transactions_total",
    Kind.COUNTER,
    "",
    ("result",),
    "How many transactions were committed, and how many aborted, by a producer or by their time-out?",
)
JOINT = Series("joint_groups", Kind.GAUGE, "", (), "How many writers of batches (Spark) are coordinated here?")
JOINT_OPEN = Series(
    "joint_open_transactions", Kind.GAUGE, "", (), "How many of their transactions are open and not decided?"
)

SERIES: Final = (
    STATES, OFFSET_COMMITS, REBALANCES, LAG, LAG_SECONDS, LAG_ESTIMATED, LAG_LEFT_OUT, LOAD, TRANSACTIONS_OPEN,
    TRANSACTIONS, JOINT, JOINT_OPEN,
)  # fmt: skip


def collect(source: Source, out: Reading) -> None:
    broker = source.node.broker
    if broker is None:
        return
    _collect_groups(broker, out)
    _collect_lags(broker, source.wall_ms, out)
    coordinators = broker.transactions.coordinators
    out.add_histogram(LOAD, broker.groups.loads)
    out.add_histogram(LOAD, coordinators.loads)
    out.add(TRANSACTIONS_OPEN, sum([one.open_count for one in out.each(coordinators.all)]))
    out.add(TRANSACTIONS, coordinators.counts.committed, "committed")
    out.add(TRANSACTIONS, coordinators.counts.aborted, "aborted")
    counts = [one.joint_counts for one in out.each(coordinators.all)]
    out.add(JOINT, sum(one[0] for one in counts))
    out.add(JOINT_OPEN, sum(one[1] for one in counts))


def _collect_groups(broker: Broker, out: Reading) -> None:
    out.add(STATES, 0, "Stable")  # so that a rule finds it where there is no group
    for coordinator in out.each(broker.groups.all):
        for state, count in coordinator.states().items():
            out.add(STATES, count, state)
    out.add(OFFSET_COMMITS, broker.groups.counts.offset_commits)
    out.add(REBALANCES, broker.groups.counts.rebalances)


def _collect_lags(broker: Broker, wall_ms: int, out: Reading) -> None:
    lags = out.on_loop(broker.group_lags.look)
    for (group, topic), lag in lags.items():
        out.add(LAG, lag.records, group, topic)
        out.add(LAG_SECONDS, 0 if lag.first_ms is None else max(0, wall_ms - lag.first_ms) / 1000, group, topic)
    out.add(LAG_ESTIMATED, sum(lag.is_estimate for lag in lags.values()))
    out.add(LAG_LEFT_OUT, broker.group_lags.left_out)
