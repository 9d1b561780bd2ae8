"""What the dashboards show: each series of the catalogue in one place, and the first look at a cluster by hand.

A panel's title is what an operator asks. How a series becomes a panel follows from its kind: a counter as its rate, a
histogram as its median and its 99th percentile, a gauge as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from quorumlog_server.metrics import (
    connections,
    controller,
    disk,
    groups,
    process,
    quorum,
    replicas,
    requests,
    rights,
    traffic,
)
from quorumlog_server.metrics.series import Kind, Rest, Series

OF_JOB = 'job="$job"'
OF_NODES = f'{OF_JOB},instance=~"$instance"'
RATE = "$__rate_interval"
MOST = 20  # lines of a panel whose labels are names that clients choose
NAMED_BY_CLIENTS = ("topic", "partition", "group", "user", "client", "software", "version")
AGGREGATES = {Rest.SUM: "sum", Rest.LARGEST: "max", Rest.LEAST: "min"}
QUANTILES = (("0.5", "median"), ("0.99", "p99"))


@dataclass(frozen=True, slots=True)
class Query:
    """legend: of Grafana, with labels in braces."""

    expression: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """unit: of Grafana; empty: a number. says: the rest of what is asked. good: of one number: the value that is green;
    None: a course in time."""

    title: str
    queries: tuple[Query, ...]
    unit: str = ""
    says: str = ""
    good: float | None = None


@dataclass(frozen=True, slots=True)
class Dashboard:
    """name: of its file and in its address. rows: a title each, and what is below."""

    name: str
    title: str
    rows: tuple[tuple[str, tuple[Panel, ...]], ...]


def panel_of(series: Series) -> Panel:
    title, says = _asked(series.asks)
    return Panel(title, tuple(_queries(series)), _unit(series), says)


def _asked(asks: str) -> tuple[str, str]:
    """The first sentence and the rest."""
    ends = [place for mark in ("? ", ". ") if (place := asks.find(mark)) > 0]
    return (asks, "") if not ends else (asks[: min(ends) + 1], asks[min(ends) + 2 :])


def _queries(series: Series) -> Iterator[Query]:
    labels = _told_apart_by(series)
    by, name = ", ".join(labels), series.full_name
    legend = " ".join(f"{{{{{label}}}}}" for label in labels)
    selector = f"{{{OF_NODES}}}"
    if series.kind is Kind.HISTOGRAM:
        for quantile, word in QUANTILES:
            rate = f"sum by (le, {by}) (rate({name}_bucket{selector}[{RATE}]))"
            yield Query(f"histogram_quantile({quantile}, {rate})", f"{word} {legend}")
    elif series.kind is Kind.COUNTER:
        yield Query(_bounded(labels, f"sum by ({by}) (rate({name}{selector}[{RATE}]))"), legend)
    else:
        yield Query(_bounded(labels, f"{AGGREGATES[series.rest]} by ({by}) ({name}{selector})"), legend)


def _told_apart_by(series: Series) -> tuple[str, ...]:
    """Names of clients are the same on every node; all else belongs to one."""
    return series.labels if set(series.labels) & set(NAMED_BY_CLIENTS) else ("instance", *series.labels)


def _bounded(labels: tuple[str, ...], expression: str) -> str:
    return f"topk({MOST}, {expression})" if set(labels) & set(NAMED_BY_CLIENTS) else expression


def _unit(series: Series) -> str:
    if series.kind is Kind.COUNTER:
        return {"bytes": "Bps", "seconds": "percentunit"}.get(series.unit, "ops")
    return {"bytes": "bytes", "seconds": "s"}.get(series.unit, "")


def _one(title: str, expression: str, *, good: float, says: str = "") -> Panel:
    return Panel(title, (Query(expression, ""),), "", says, good)


def _active(series: Series) -> str:
    """Of the active controller: the others tell the past while they start."""
    return f"max({series.full_name}{{{OF_JOB}}} * on (job, instance) {controller.ACTIVE.full_name}{{{OF_JOB}}})"


def _summed(series: Series, by: str = "sum") -> str:
    return f"{by}({series.full_name}{{{OF_JOB}}})"


def _first_look() -> tuple[Panel, ...]:
    return (
        _one("Active controllers", _summed(controller.ACTIVE), good=1),
        _one("Partitions without a leader", _active(controller.OFFLINE), good=0),
        _one("Partitions below min.insync.replicas", _summed(replicas.UNDER_MIN_ISR), good=0),
        _one("Partitions that lack a replica in sync", _summed(replicas.UNDER_REPLICATED), good=0),
        _one("Fenced brokers", _active(controller.BROKERS_FENCED), good=0),
        _one("Offline log directories", _summed(disk.OFFLINE), good=0),
        _one("Directories that refuse producers", _summed(disk.SHORT), good=0),
        _one("Partitions with a hanging transaction", _summed(replicas.LATE_TRANSACTIONS), good=0),
    )


OVERVIEW_SERIES: Final = (
    traffic.BYTES_IN, traffic.BYTES_OUT, traffic.RECORDS_IN, requests.SECONDS, requests.BUSY, disk.FREE,
    groups.LAG, groups.LAG_SECONDS, process.RSS, process.CPU,
)  # fmt: skip


def _of_topics(series: Series) -> bool:
    return "topic" in series.labels and "group" not in series.labels


def _row(title: str, all_of: tuple[Series, ...], keep: Callable[[Series], bool] = lambda _: True) -> _Row:
    return title, tuple(panel_of(one) for one in all_of if keep(one))


_Row = tuple[str, tuple[Panel, ...]]


def dashboards() -> tuple[Dashboard, ...]:
    """All of them, the first look first."""

    def not_of_topics(series: Series) -> bool:
        return not _of_topics(series)

    return (
        Dashboard("overview", "overview", (("Is it well?", _first_look()), _row("What does it do?", OVERVIEW_SERIES))),
        Dashboard(
            "brokers",
            "brokers",
            (
                _row("Process", process.SERIES),
                _row("Replicas", replicas.SERIES, not_of_topics),
                _row("Traffic", traffic.SERIES, not_of_topics),
                _row("Disk", disk.SERIES, not_of_topics),
            ),
        ),
        Dashboard(
            "topics",
            "topics",
            (_row("Traffic", traffic.SERIES, _of_topics), _row("Disk", disk.SERIES, _of_topics)),
        ),
        Dashboard("groups", "groups and transactions", (_row("Groups and transactions", groups.SERIES),)),
        Dashboard(
            "quorum", "quorum", (_row("Quorum and metadata", quorum.SERIES), _row("Controller", controller.SERIES))
        ),
        Dashboard(
            "requests",
            "requests and clients",
            (
                _row("Requests", requests.SERIES),
                _row("Connections", connections.SERIES),
                _row("Rights and quotas", rights.SERIES),
            ),
        ),
    )
