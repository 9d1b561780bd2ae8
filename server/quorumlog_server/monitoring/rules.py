"""The rules of alerts, one table: by which series each is seen, from where on, and what to do.

A cluster is a job of Prometheus: what concerns a cluster is taken by `job`, what concerns a node by `instance`. Of what
controllers tell about the cluster, that of the active one counts: the others tell the past while they start.

Windows assume a scrape at least every 15 s (`scraping.py` has 10): an increase needs two of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from quorumlog.explaining.thresholds import Thresholds
from quorumlog_quorum.controller.engine.controller_counts import UNCLEAN
from quorumlog_server.directories.disk_watch import SLOW_MS
from quorumlog_server.metrics import connections, controller, disk, groups, process, quorum, replicas, requests, traffic
from quorumlog_server.metrics.series import Series

DAY_S = 86_400
SEEN = "1h"  # for how long a cluster of which no node is scraped any more is missed by name
FOR_A_MINUTE_MS = 60_000
LOST_WINDOW_MS = 600_000  # how long a fenced broker counts as lost; the rule of fenced ones goes on


class Severity(StrEnum):
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """expression: in PromQL. for_ms: how long it holds before the alert fires. says: what is wrong, with labels as
    Prometheus fills them in. do: the command that says more, or mends it. causes: of `quorumlog check`, that find the
    same; none: it has no such cause.
    """

    name: str
    expression: str
    for_ms: int = 0
    severity: Severity = Severity.WARNING
    says: str
    do: str
    causes: tuple[str, ...] = ()


def rules_of(limits: Thresholds) -> tuple[Rule, ...]:
    """Those of the quorum first, as an operator reads them."""
    return (
        *_quorum(limits),
        *_partitions(limits),
        *_brokers(limits),
        *_disks(limits),
        *_clients(limits),
        *_groups(limits),
    )


def _of_cluster(series: Series) -> str:
    """What the active controller tells; 0 of the others."""
    return f"max by (job) ({series.full_name} * on (job, instance) {controller.ACTIVE.full_name})"


def _of_node(series: Series, *labels: str, by: str = "max") -> str:
    return f"{by} by ({', '.join(('job', 'instance', *labels))}) ({series.full_name})"


def _grown(series: Series, window_ms: int, *labels: str, selector: str = "") -> str:
    names = ", ".join(("job", *labels))
    return f"sum by ({names}) (increase({series.full_name}{selector}[{duration(window_ms)}]))"


def _longer(histogram: Series, limit_ms: int, window_ms: int, *labels: str) -> str:
    """How many took longer: limit_ms is the end of a bucket."""
    window, names = duration(window_ms), ", ".join(("job", "instance", *labels))
    every = f"sum by ({names}) (increase({histogram.full_name}_count[{window}]))"
    short = f'sum by ({names}) (increase({histogram.full_name}_bucket{{le="{limit_ms / 1000}"}}[{window}]))'
    return f"{every} - {short}"


def duration(ms: int) -> str:
    """As Prometheus writes it."""
    for unit, unit_ms in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)):
        if ms and ms % unit_ms == 0:
            return f"{ms // unit_ms}{unit}"
    return f"{ms}ms" if ms else "0s"


def _quorum(limits: Thresholds) -> Iterator[Rule]:
    active = controller.ACTIVE.full_name
    yield Rule(
        name="QuorumlogNoController",
        expression=f"sum by (job) ({active}) != 1 or absent({active}) "
        f"or group by (job) (last_over_time({active}[{SEEN}])) unless on (job) group by (job) ({active})",
        for_ms=limits.no_controller_ms,
        severity=Severity.CRITICAL,
        says="The cluster has no active controller, or Prometheus does not see it: no change of the metadata is done.",
        do="quorumlog explain quorum",
        causes=("quorum.no-leader", "quorum.no-majority", "cluster.unreachable"),
    )
    yield Rule(
        name="QuorumlogQuorumChurn",
        expression=f"max by (job) (changes({quorum.EPOCH.full_name}[{duration(limits.epochs_ms)}])) > {limits.epochs}",
        says="The quorum had {{ $value }} new epochs within " + duration(limits.epochs_ms) + ".",
        do="quorumlog quorum history",
        causes=("quorum.epochs-churn",),
    )
    yield Rule(
        name="QuorumlogVoterLagging",
        expression=f"max by (job, node) ({quorum.FOLLOWER_LAG.full_name}) > {limits.voter_lag}",
        for_ms=FOR_A_MINUTE_MS,
        says="Node {{ $labels.node }} has not fetched {{ $value }} records of the metadata.",
        do="quorumlog explain quorum",
        causes=("quorum.voter-lagging", "quorum.voter-silent"),
    )
    yield Rule(
        name="QuorumlogMetadataLag",
        expression=f"{_of_node(quorum.APPLY_LAG)} > {limits.metadata_lag_ms / 1000:g}",
        for_ms=limits.no_controller_ms,
        says="{{ $labels.instance }} goes by metadata that are {{ $value | humanizeDuration }} old.",
        do="quorumlog explain quorum",
        causes=("quorum.voter-silent", "quorum.no-leader"),
    )
    yield Rule(
        name="QuorumlogMetadataErrors",
        expression=f"{_grown(controller.ERRORS, limits.unclean_ms, 'instance')} > 0",
        severity=Severity.CRITICAL,
        says="{{ $labels.instance }} could not read or apply the metadata, and has left the quorum.",
        do="quorumlog metadata snapshot verify -c server.properties",
    )


def _partitions(limits: Thresholds) -> Iterator[Rule]:
    under = f"sum by (job) ({replicas.UNDER_REPLICATED.full_name}) > 0"
    yield Rule(
        name="QuorumlogOfflinePartitions",
        expression=f"{_of_cluster(controller.OFFLINE)} > 0",
        severity=Severity.CRITICAL,
        says="{{ $value }} partitions have no leader: they are neither written nor read.",
        do="quorumlog check segment",
        causes=(
            "leader.all-replicas-dead",
            "leader.eligible-replicas-dead",
            "leader.directory-offline",
            "leader.unclean-needed",
        ),
    )
    yield Rule(
        name="QuorumlogUnderMinIsr",
        expression=f"sum by (job) ({replicas.UNDER_MIN_ISR.full_name}) > 0",
        for_ms=limits.under_min_isr_ms,
        severity=Severity.CRITICAL,
        says="{{ $value }} partitions take no records with acks=all: too few replicas are in sync.",
        do="quorumlog check segment",
        causes=("isr.below-minimum",),
    )
    yield Rule(
        name="QuorumlogUnderReplicated",
        expression=under,
        for_ms=limits.under_replicated_ms,
        says="{{ $value }} partitions lack a replica in sync.",
        do="quorumlog partition list --state under-replicated",
        causes=("replica.broker-away", "replica.directory-offline", "replica.throttled"),
    )
    fenced, uptime = f"{_of_cluster(controller.BROKERS_FENCED)} > 0", process.UPTIME.full_name
    yield Rule(
        name="QuorumlogFollowerBehind",
        expression=f"{under} unless on (job) {fenced} "
        f"unless on (job) min by (job) ({uptime}) < {limits.starting_ms // 1000}",
        for_ms=limits.follower_ms,
        says="{{ $value }} partitions lack a replica in sync, though every broker serves: a follower does not keep up.",
        do="quorumlog partition list --state under-replicated",
        causes=("replica.lagging", "replica.slow-disk", "replica.throttled"),
    )
    yield Rule(
        name="QuorumlogUncleanElection",
        expression=f"{_grown(controller.ELECTIONS, limits.unclean_ms, selector=_UNCLEAN)} > 0",
        severity=Severity.CRITICAL,
        says="A leader outside the in-sync replicas was elected: acknowledged records may be lost.",
        do="quorumlog check segment",
        causes=("leader.unclean-election",),
    )
    yield Rule(
        name="QuorumlogFetcherFailed",
        expression=f"{_of_node(replicas.FETCHER_FAILED)} > 0",
        for_ms=FOR_A_MINUTE_MS,
        says="{{ $labels.instance }} does not copy {{ $value }} partitions any more, because they failed.",
        do="quorumlog check segment",
        causes=("replica.lagging",),
    )


_UNCLEAN = f'{{kind="{UNCLEAN}"}}'


def _brokers(limits: Thresholds) -> Iterator[Rule]:
    fenced = f"{_of_cluster(controller.BROKERS_FENCED)} > 0"
    yield Rule(
        name="QuorumlogBrokerLost",
        expression=f"{fenced} and on (job) {_grown(controller.LOST, LOST_WINDOW_MS)} > 0",
        severity=Severity.CRITICAL,
        says="{{ $value }} brokers are fenced, and one of them was not shut down: it is dead, hung, or cut off.",
        do="quorumlog broker list",
        causes=("broker.lost",),
    )
    yield Rule(
        name="QuorumlogBrokerFenced",
        expression=fenced,
        for_ms=limits.fenced_ms,
        says="{{ $value }} registered brokers lead nothing.",
        do="quorumlog broker list",
        causes=("broker.shut-down", "broker.lost", "broker.fenced", "broker.starting"),
    )
    yield Rule(
        name="QuorumlogLoopStall",
        expression=f"{_longer(requests.STALLS, limits.stall_ms, limits.recent_ms)} > 0",
        says="{{ $labels.instance }} did nothing else for longer than " + f"{limits.stall_ms / 1000:g} s.",
        do="quorumlog check perf",
        causes=("node.stalled",),
    )


def _disks(limits: Thresholds) -> Iterator[Rule]:
    free, total = disk.FREE.full_name, disk.TOTAL.full_name
    yield Rule(
        name="QuorumlogDirectoryOffline",
        expression=f"{_of_node(disk.OFFLINE)} > 0",
        severity=Severity.CRITICAL,
        says="{{ $value }} log directories of {{ $labels.instance }} have failed, or hang.",
        do="quorumlog log-dirs list",
        causes=("directory.offline",),
    )
    yield Rule(
        name="QuorumlogDirectoryFull",
        expression=f"{_of_node(disk.SHORT, 'dir')} > 0",
        severity=Severity.CRITICAL,
        says="{{ $labels.instance }} refuses producers: {{ $labels.dir }} has less room than its reserve.",
        do="quorumlog log-dirs list",
        causes=("directory.full",),
    )
    yield Rule(
        name="QuorumlogDirectoryNearlyFull",
        expression=f"min by (job, instance, dir) (100 * {free} / {total}) < {limits.free_percent:g}",
        says="{{ $labels.dir }} of {{ $labels.instance }} has {{ $value | humanize }} % left.",
        do="quorumlog log-dirs list",
        causes=("directory.nearly-full",),
    )
    yield Rule(
        name="QuorumlogDiskSlow",
        expression=f"{_longer(disk.FLUSH, SLOW_MS, limits.recent_ms, 'dir')} > 0",
        says="{{ $labels.dir }} of {{ $labels.instance }} took longer than " + f"{SLOW_MS} ms to make records durable.",
        do="quorumlog check disk",
        causes=("disk.slow", "replica.slow-disk"),
    )
    yield Rule(
        name="QuorumlogDamagedRecords",
        expression=f"{_of_node(disk.CHECK_DAMAGED, 'dir')} > 0",
        severity=Severity.CRITICAL,
        says="{{ $value }} batches in {{ $labels.dir }} of {{ $labels.instance }} are damaged.",
        do="quorumlog log verify DIR",
        causes=("directory.damaged",),
    )
    yield Rule(
        name="QuorumlogUncleanableLogs",
        expression=f"{_of_node(disk.UNCLEANABLE)} > 0",
        for_ms=limits.under_replicated_ms,
        says="{{ $labels.instance }} cannot compact {{ $value }} logs: they grow.",
        do="quorumlog log explain-compaction TOPIC-PARTITION",
    )


def _clients(limits: Thresholds) -> Iterator[Rule]:
    left = _of_node(connections.TLS_EXPIRY, "listener", by="min")
    yield Rule(
        name="QuorumlogCertificateExpired",
        expression=f"{left} <= 0",
        severity=Severity.CRITICAL,
        says="The certificate of listener {{ $labels.listener }} of {{ $labels.instance }} has expired.",
        do="quorumlog tls renew certs",
        causes=("certificate.expired",),
    )
    yield Rule(
        name="QuorumlogCertificateExpires",
        expression=f"0 < ({left} < {limits.certificate_days * DAY_S})",
        says="The certificate of listener {{ $labels.listener }} of {{ $labels.instance }} ends in "
        "{{ $value | humanizeDuration }}.",
        do="quorumlog tls renew certs",
        causes=("certificate.expires",),
    )
    yield Rule(
        name="QuorumlogCertificateRefused",
        expression=f"{_of_node(connections.TLS_TROUBLE, 'listener')} > 0",
        says="{{ $labels.instance }} does not take the changed certificate of listener {{ $labels.listener }}: the old "
        "one goes on until it expires.",
        do="quorumlog check segment",
        causes=("certificate.not-taken",),
    )
    rate = f'rate({connections.AUTHENTICATIONS.full_name}{{result="failed"}}[{_LOGINS}])'
    yield Rule(
        name="QuorumlogLoginsFail",
        expression=f"sum by (job) ({rate}) > {limits.failed_logins:g}",
        says="{{ $value | humanize }} logins a second fail.",
        do="quorumlog check segment",
        causes=("logins.fail",),
    )
    records = f"rate({traffic.PARTITION_RECORDS_IN.full_name}[{duration(limits.recent_ms)}])"
    of_partition = f"sum by (job, topic, partition) ({records})"
    yield Rule(
        name="QuorumlogHotPartition",
        expression=f"{of_partition} > {limits.hot_records:g} "
        f"and {of_partition} / on (job, topic) group_left sum by (job, topic) ({records}) > {limits.hot_share:g} "
        f"and on (job, topic) count by (job, topic) ({of_partition}) >= 3",
        says="{{ $labels.topic }}-{{ $labels.partition }} takes most of its topic's records: {{ $value | humanize }} a "
        "second. Seen with metrics.detail=high only.",
        do="quorumlog explain topic/{{ $labels.topic }}",
        causes=("partition.hot",),
    )


_LOGINS = "30s"  # two scrapes are in it for certain; over a minute a burst would be told twice as late


def _groups(limits: Thresholds) -> Iterator[Rule]:
    lag, seconds = groups.LAG.full_name, groups.LAG_SECONDS.full_name
    yield Rule(
        name="QuorumlogGroupStuck",
        expression=_stuck(seconds, limits),
        says="Group {{ $labels.group }} commits nothing of {{ $labels.topic }}: its oldest record waits for "
        "{{ $value | humanizeDuration }}.",
        do="quorumlog explain group/GROUP",
        causes=("group.commits-nothing", "group.member-does-not-rejoin", "group.no-coordinator"),
    )
    yield Rule(
        name="QuorumlogGroupLag",
        expression=f"sum by (job, group) ({lag}) > {limits.lag}",
        for_ms=limits.group_lag_ms,
        says="Group {{ $labels.group }} is {{ $value | humanize }} records behind.",
        do="quorumlog group lag GROUP --time --eta",
        causes=("group.lag", "group.lag-grows"),
    )
    yield Rule(
        name="QuorumlogTransactionHangs",
        expression=f"sum by (job) ({replicas.LATE_TRANSACTIONS.full_name}) > 0",
        says="In {{ $value }} partitions a transaction hangs: readers of committed records stop before it.",
        do="quorumlog transaction find-hanging --broker-id ID",
        causes=("transaction.hanging", "transaction.late"),
    )


def _stuck(seconds: str, limits: Thresholds) -> str:
    """The oldest record that is not committed stays the same: for long, or for a while if it waits for much longer
    than any did before. A group that commits each half minute is not stuck in between."""
    of_topic = "max by (job, group, topic)"
    waits = f"{of_topic} ({seconds})"
    before = f"{of_topic} (max_over_time({seconds}[{_BEFORE}] offset {_LONG}))"
    return (
        f"{waits} > {2 * limits.stuck_ms / 1000:g} and ({_same(seconds, _LONG)} "
        f"or ({_same(seconds, _A_WHILE)} unless {waits} < {_MUCH_LONGER} * {before}))"
    )


def _same(seconds: str, window: str) -> str:
    oldest = f"(min by (job, group, topic) (timestamp({seconds}) - {seconds}))[{window}:1s]"
    return f"max_over_time({oldest}) - min_over_time({oldest}) < {_SAME_S}"


_A_WHILE, _LONG = "15s", "40s"  # not shorter than a pause of scrapes may be
_BEFORE, _MUCH_LONGER = "10m", 1.5
_SAME_S = 2  # a scrape's time and that of its figures are not taken at one moment
