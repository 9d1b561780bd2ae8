"""Replicas of this node, and what this broker leads.

How many partitions are in which state is counted from the image of the metadata that the scrape finds, so it costs the
loop nothing, and what counts as what is Kafka's (quorumlog_quorum/metadata/partition_counts.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorumlog_quorum.metadata.partition_counts import led_counts
from quorumlog_server.metrics.reading import Reading, Source
from quorumlog_server.metrics.series import Kind, Series
from quorumlog_server.process.offline import offline_replicas

if TYPE_CHECKING:
    from quorumlog_broker.node import Broker

_MANAGER = "kafka.server:type=ReplicaManager,name="
_FETCHERS = "kafka.server:type=ReplicaFetcherManager,name="


def _gauge(name: str, asks: str, mbean: str = "") -> Series:
    return Series(name, Kind.GAUGE, "", (), asks, mbean)


def _total(name: str, asks: str, mbean: str = "") -> Series:
    return Series(name, Kind.COUNTER, "", (), asks, mbean)


PARTITIONS = _gauge("partitions", "Of how many partitions has this broker a replica?", f"{_MANAGER}PartitionCount")
LEADERS = _gauge("leaders", "How many partitions does this broker lead?", f"{_MANAGER}LeaderCount")
UNDER_REPLICATED = _gauge(
    "partitions_under_replicated",
    "How many partitions led here lack a replica in the ISR? One that is only being added is not missed.",
    f"{_MANAGER}UnderReplicatedPartitions",
)
UNDER_MIN_ISR = _gauge(
    "partitions_under_min_isr",
    "How many partitions led here take no records with acks=all, because the ISR is below min.insync.replicas?",
    f"{_MANAGER}UnderMinIsrPartitionCount",
)
AT_MIN_ISR = _gauge(
    "partitions_at_min_isr",
    "How many partitions led here would take none if one replica more were lost?",
    f"{_MANAGER}AtMinIsrPartitionCount",
)
OFFLINE = _gauge(
    "partitions_offline",
    "How many replicas of this broker are offline, because their directory or log is?",
    f"{_MANAGER}OfflineReplicaCount",
)
REASSIGNING = _gauge(
    "partitions_reassigning", "How many partitions led here are being moved?", f"{_MANAGER}ReassigningPartitions"
)
SHRINKS = _total(
    "isr_shrinks_total",
    "How often did this broker, as the leader, have a replica taken out of an ISR, because it does not keep up? Those "
    "of a fenced broker are taken out by the controller, and not counted here.",
    f"{_MANAGER}IsrShrinksPerSec",
)
EXPANDS = _total(
    "isr_expands_total", "How often did it have one taken in, because it has caught up?", f"{_MANAGER}IsrExpandsPerSec"
)
ISR_FAILED = _total(
    "isr_updates_failed_total",
    "How often did the controller not agree to a change of an ISR?",
    f"{_MANAGER}FailedIsrUpdatesPerSec",
)
MAX_LAG = _gauge(
    "fetcher_max_lag",
    "How many offsets is the slowest replica of this broker behind its leader's high watermark?",
    f"{_FETCHERS}MaxLag,clientId=Replica",
)
FETCHER_FAILED = _gauge(
    "fetcher_failed_partitions",
    "How many partitions that others lead are not fetched, because they failed here?",
    f"{_FETCHERS}FailedPartitionsCount,clientId=Replica",
)
PRODUCER_IDS = _gauge(
    "producer_ids", "How many producers do the logs remember, each partition for itself?", f"{_MANAGER}ProducerIdCount"
)
SESSIONS = _gauge(
    "fetch_sessions",
    "How many fetch sessions does this broker keep?",
    "kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions",
)
UNREADABLE = _gauge("unreadable_replicas", "How many replicas cannot be read from their log?")
SET_ASIDE = _total("logs_set_aside_total", "How many logs began past where they parted from the leader's?")
LATE_TRANSACTIONS = _gauge(
    "late_transactions",
    "In how many partitions led here does a transaction hang?",
    f"{_MANAGER}PartitionsWithLateTransactionsCount",
)
FENCED = _gauge("fenced", "Does the controller fence this broker?")
EPOCH = _gauge("broker_epoch", "Which registration of this broker counts?")

SERIES: Final = (
    PARTITIONS, LEADERS, UNDER_REPLICATED, UNDER_MIN_ISR, AT_MIN_ISR, OFFLINE, REASSIGNING, SHRINKS, EXPANDS,
    ISR_FAILED, MAX_LAG, FETCHER_FAILED, PRODUCER_IDS, SESSIONS, UNREADABLE, SET_ASIDE, LATE_TRANSACTIONS, FENCED,
    EPOCH,
)  # fmt: skip


def collect(source: Source, out: Reading) -> None:
    broker = source.node.broker
    out.add(UNREADABLE, len(offline_replicas(source.node)))
    if broker is None:
        return
    _collect_partitions(source, out)
    _collect_replicas(broker, out)
    plane = broker.data_plane
    out.add(SHRINKS, plane.isr_counts.shrinks)
    out.add(EXPANDS, plane.isr_counts.expands)
    out.add(ISR_FAILED, plane.isr_counts.failed)
    out.add(MAX_LAG, plane.fetchers.max_lag())
    out.add(SESSIONS, len(plane.fetch_sessions))
    out.add(SET_ASIDE, plane.follower.logs_set_aside)
    timeouts = broker.transactions.open_timeouts
    found = timeouts.long_open(out.each(plane.registry.replicas.values()))
    out.add(LATE_TRANSACTIONS, out.on_loop(lambda: timeouts.late_of(found)))
    out.add(FENCED, broker.lifecycle.fenced)
    out.add(EPOCH, broker.lifecycle.broker_epoch)


def _collect_partitions(source: Source, out: Reading) -> None:
    """By the metadata."""
    counts = led_counts(source.node.loader.image, source.node.config.node_id, out.pace.step)
    out.add(PARTITIONS, counts.replicas)
    out.add(LEADERS, counts.leaders)
    out.add(UNDER_REPLICATED, counts.under_replicated)
    out.add(UNDER_MIN_ISR, counts.under_min_isr)
    out.add(AT_MIN_ISR, counts.at_min_isr)
    out.add(REASSIGNING, counts.reassigning)


def _collect_replicas(broker: Broker, out: Reading) -> None:
    """By what this process knows of its own."""
    offline = failed = producers = 0
    for one in out.each(broker.data_plane.registry.replicas.values()):
        offline += not one.is_usable
        failed += one.core.failed and one.core.leader != one.core.node_id
        if one.log is not None and one.log.producers is not None:
            producers += len(one.log.producers.states.entries)
    out.add(OFFLINE, offline)
    out.add(FETCHER_FAILED, failed)
    out.add(PRODUCER_IDS, producers)
