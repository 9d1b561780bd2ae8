"""The controller on this node."""

from __future__ import annotations

from typing import Final

from quorumlog_quorum.controller.engine.controller_counts import PREFERRED, UNCLEAN, USUAL
from quorumlog_quorum.metadata.partition_counts import controller_counts
from quorumlog_server.metrics.reading import Reading, Source
from quorumlog_server.metrics.series import Kind, Series

_CONTROLLER = "kafka.controller:type=KafkaController,name="

ACTIVE = Series(
    "active_controller",
    Kind.GAUGE,
    "",
    (),
    "Is this node the active controller? The sum over all nodes is 1.",
    "kafka.controller:type=KafkaController,name=ActiveControllerCount",
)
OFFLINE = Series(
    "offline_partitions",
    Kind.GAUGE,
    "",
    (),
    "How many partitions have no leader? Each controller tells all: take the largest.",
    f"{_CONTROLLER}OfflinePartitionsCount",
)
IMBALANCE = Series(
    "preferred_imbalance",
    Kind.GAUGE,
    "",
    (),
    "How many partitions does another than the first of their replicas lead, or none?",
    f"{_CONTROLLER}PreferredReplicaImbalanceCount",
)
BROKERS_ACTIVE = Series(
    "brokers_active", Kind.GAUGE, "", (), "How many brokers may lead?", f"{_CONTROLLER}ActiveBrokerCount"
)
BROKERS_FENCED = Series(
    "brokers_fenced",
    Kind.GAUGE,
    "",
    (),
    "How many registered brokers are fenced?",
    f"{_CONTROLLER}FencedBrokerCount",
)
EVENTS = Series(
    "event_seconds",
    Kind.HISTOGRAM,
    "seconds",
    (),
    "How long does an operation of the controller wait and run, until its last record is appended?",
    "kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs, EventQueueProcessingTimeMs",
    buckets="event",
)
TIMED_OUT = Series(
    "heartbeats_timed_out_total",
    Kind.COUNTER,
    "",
    (),
    "How often did this node fence a broker because it said nothing?",
    f"{_CONTROLLER}TimedOutBrokerHeartbeatCount",
)
LOST = Series(
    "brokers_lost_total",
    Kind.COUNTER,
    "",
    (),
    "How often did this node fence a broker that was not shut down: silent, or its process was dead?",
)
ERRORS = Series(
    "metadata_errors_total",
    Kind.COUNTER,
    "",
    (),
    "How often did the metadata end this node's part in the quorum, because they could not be read or applied?",
    f"{_CONTROLLER}MetadataErrorCount",
)
ELECTIONS = Series(
    "elections_total",
    Kind.COUNTER,
    "",
    ("kind",),
    "How many leaders did this node elect? Those of kind unclean may lack acknowledged records; of kind preferred, the "
    "first replica leads again.",
    "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec, "
    "kafka.controller:type=KafkaController,name=ElectionFromEligibleLeaderReplicasPerSec",
)
UNCLEAN_RECOVERIES = Series(
    "unclean_recoveries", Kind.GAUGE, "", (), "How many partitions without a leader have their replicas asked?"
)

SERIES: Final = (
    ACTIVE, OFFLINE, IMBALANCE, BROKERS_ACTIVE, BROKERS_FENCED, EVENTS, TIMED_OUT, LOST, ERRORS, ELECTIONS,
    UNCLEAN_RECOVERIES,
)  # fmt: skip


def collect(source: Source, out: Reading) -> None:
    controller, driver = source.node.controller, source.node.driver
    out.add(ACTIVE, driver is not None and driver.is_leader)
    out.add(ERRORS, 0 if driver is None else driver.errors)
    if controller is not None:
        _collect_cluster(source, out)
        counts = controller.counts
        for kind in (USUAL, PREFERRED, UNCLEAN):
            out.add(ELECTIONS, counts.elections[kind], kind)
        out.add_histogram(EVENTS, counts.events)
        out.add(TIMED_OUT, counts.heartbeats_timed_out)
        out.add(LOST, counts.brokers_lost)
        out.add(UNCLEAN_RECOVERIES, controller.unclean_recoveries)


def _collect_cluster(source: Source, out: Reading) -> None:
    """By the metadata that this controller has applied."""
    image = source.node.loader.image
    counts = controller_counts(image, out.pace.step)
    out.add(OFFLINE, counts.offline)
    out.add(IMBALANCE, counts.not_preferred)
    brokers = list(image.brokers.values())
    out.add(BROKERS_ACTIVE, sum(one.active for one in brokers))
    out.add(BROKERS_FENCED, sum(one.fenced for one in brokers))
