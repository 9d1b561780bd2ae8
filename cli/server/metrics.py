"""A node's metrics for Prometheus, loaded at the first scrape (health.py).

Values are read at each scrape; no request is slowed by counting. Names: CLI.md 2.9.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from broker.node import Broker
from cli.server.http_admin import Page
from cli.server.node import Node
from cli.server.offline import offline_directories, offline_replicas
from cli.server.watchdog import LoopWatchdog

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def page(node: Node, watchdog: LoopWatchdog) -> Page:
    registry = CollectorRegistry()
    registry.register(NodeCollector(node, watchdog))
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    return Page(200, generate_latest(registry), CONTENT_TYPE)


class NodeCollector(Collector):
    """The metrics of one scrape."""

    def __init__(self, node: Node, watchdog: LoopWatchdog) -> None:
        self._node = node
        self._watchdog = watchdog

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield _gauge("ready", "1 while the node serves.", self._node.ready)
        yield _gauge("loop_max_stall_ms", "Longest stall of the event loop.", self._watchdog.max_stall_ms)
        yield from self._of_disks()
        yield from self._of_recovery()
        yield from self._of_quorum()
        yield from self._of_broker()
        yield from self._of_log_resources()

    def _of_disks(self) -> Iterator[GaugeMetricFamily]:
        directories, replicas = offline_directories(self._node), offline_replicas(self._node)
        yield _gauge(
            "offline_log_directories", "Log directories that have failed, or whose disk hangs.", len(directories)
        )
        yield _gauge(
            "unreadable_replicas", "Replicas that are offline because their log cannot be read.", len(replicas)
        )

    def _of_recovery(self) -> Iterator[GaugeMetricFamily]:
        """What this process found when it opened its logs."""
        driver, broker = self._node.driver, self._node.broker
        found = [] if broker is None else [(one.report, one.lost_before) for one in broker.data_plane.findings.all]
        if driver is not None and driver.opened is not None:
            found.append((driver.opened.log.recovery, driver.opened.lost_before))
        cut = [report.cut_bytes for report, _ in found if report.cut_bytes]
        lost = [lost_before for _, lost_before in found if lost_before]
        yield _gauge("recovery_cut_logs", "Logs whose end was cut when they were opened.", len(cut))
        yield _gauge("recovery_cut_bytes", "Bytes that were cut then, and are kept in .cut files.", sum(cut))
        yield _gauge("recovery_damaged_logs", "Logs that had lost synced records when they were opened.", len(lost))

    def _of_quorum(self) -> Iterator[GaugeMetricFamily]:
        driver, image = self._node.driver, self._node.loader.image
        yield _gauge("metadata_last_applied_offset", "End of the applied metadata, exclusive.", image.offset)
        yield _gauge("metadata_topics", "Topics in the applied metadata.", len(image.topics))
        yield _gauge("metadata_brokers", "Registered brokers in the applied metadata.", len(image.brokers))
        if driver is not None:
            yield _gauge("raft_current_epoch", "Epoch of the quorum as known by this node.", driver.epoch)
            yield _gauge("raft_is_leader", "1 on the quorum's leader.", driver.is_leader)
            yield _gauge("raft_high_watermark", "End of the quorum's committed log, exclusive.", driver.high_watermark)
            yield _gauge("raft_log_end_offset", "End of this node's metadata log, exclusive.", driver.end_offset)

    def _of_broker(self) -> Iterator[GaugeMetricFamily]:
        broker = self._node.broker
        if broker is not None:
            yield from self._of_directories(broker)
            yield _gauge("broker_epoch", "Epoch of this broker's registration.", broker.lifecycle.broker_epoch)
            yield _gauge(
                "broker_logs_set_aside",
                "Logs set aside since the start: they began past where they parted from the leader's.",
                broker.data_plane.follower.logs_set_aside,
            )
            yield _gauge("broker_fenced", "1 while the controller fences this broker.", broker.lifecycle.fenced)
            yield _gauge(
                "broker_leader_count", "Partitions that this broker leads.", broker.data_plane.registry.leader_count()
            )

    def _of_directories(self, broker: Broker) -> Iterator[GaugeMetricFamily]:
        free = GaugeMetricFamily("quorumlog_log_dir_free_bytes", "Free space, as last measured.", labels=["path"])
        reserve = GaugeMetricFamily(
            "quorumlog_log_dir_reserve_bytes", "Free space below which producers are refused.", labels=["path"]
        )
        short = GaugeMetricFamily(
            "quorumlog_log_dir_short_of_space", "1 while producers are refused for lack of free space.", labels=["path"]
        )
        for queue in broker.data_plane.store.queues.values():
            path, space = [queue.directory.path], queue.space
            free.add_metric(path, space.left_bytes)
            reserve.add_metric(path, space.reserve_bytes)
            short.add_metric(path, space.is_short)
        yield from (free, reserve, short)

    def _of_log_resources(self) -> Iterator[GaugeMetricFamily]:
        resources = self._node.edges.disk.resources
        yield _gauge("log_open_files", "Segment files that are open.", len(resources.open_files))
        yield _gauge("log_open_files_max", "log.open.files.max, as it is in force.", resources.open_files.limit)
        yield _gauge("log_index_bytes", "Bytes of loaded indexes.", resources.indexes.weight)


def _gauge(name: str, doc: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"quorumlog_{name}", doc, value=float(value))
