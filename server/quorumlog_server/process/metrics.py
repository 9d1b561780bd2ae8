"""A node's metrics for Prometheus, loaded at the first scrape (health.py).

Values are read at each scrape; no request is slowed by counting.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from quorumlog_broker.node import Broker
from quorumlog_quorum.metadata.deleted_topics import MAX_DELETED_TOPICS
from quorumlog_server.process.http_page import Page
from quorumlog_server.process.node import Node
from quorumlog_server.process.offline import offline_directories, offline_replicas
from quorumlog_server.process.watchdog import LoopWatchdog

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

    def collect(self) -> Iterator[Metric]:
        yield _gauge("ready", "1 while the node serves.", self._node.ready)
        yield _gauge("loop_max_stall_ms", "Longest stall of the event loop.", self._watchdog.max_stall_ms)
        yield from self._of_disks()
        yield from self._of_recovery()
        yield from self._of_opening()
        yield from self._of_quorum()
        yield from self._of_controller()
        yield from self._of_snapshots()
        yield from self._of_broker()
        yield from self._of_log_resources()
        yield from self._of_listeners()

    def _of_disks(self) -> Iterator[GaugeMetricFamily]:
        directories, replicas = offline_directories(self._node), offline_replicas(self._node)
        yield _gauge(
            "offline_log_directories", "Log directories that have failed, or whose disk hangs.", len(directories)
        )
        yield _gauge(
            "unreadable_replicas", "Replicas that are offline because their log cannot be read.", len(replicas)
        )

    def _of_opening(self) -> Iterator[GaugeMetricFamily]:
        """While the directories and their logs are opened (KIP-831); no samples before and after that."""
        silent = GaugeMetricFamily(
            "quorumlog_log_dir_opening_ms", "For how long it has not answered the start.", labels=["path"]
        )
        for path, waited_ms in self._node.unanswered_directories.items():
            silent.add_metric([path], waited_ms)
        yield silent
        logs = GaugeMetricFamily("quorumlog_remaining_logs_to_recover", "Logs that are not open yet.", labels=["path"])
        segments = GaugeMetricFamily(
            "quorumlog_remaining_segments_to_recover", "To verify in the logs under way.", labels=["path"]
        )
        size = GaugeMetricFamily(
            "quorumlog_remaining_bytes_to_recover", "To verify in the logs under way.", labels=["path"]
        )
        broker = self._node.broker
        for one in () if broker is None else broker.data_plane.opening_progress.by_directory():
            logs.add_metric([one.path], one.logs_left)
            segments.add_metric([one.path], one.segments_left)
            size.add_metric([one.path], one.bytes_left)
        yield from (logs, segments, size)

    def _of_recovery(self) -> Iterator[GaugeMetricFamily]:
        """What this process found when it opened its logs."""
        driver, broker = self._node.driver, self._node.broker
        findings = [] if broker is None else broker.data_plane.recovery_findings.all
        found = [(one.report, one.lost_before) for one in findings]
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
        deleted = len(image.deleted)
        yield _gauge("metadata_deleted_topics", "Deleted topics that a broker may still hold files of.", deleted)
        yield _gauge(
            "metadata_deleted_topics_full",
            "1 while no further one is remembered: a broker that is away sets its files aside, and deletes none.",
            deleted >= MAX_DELETED_TOPICS,
        )
        if driver is not None:
            yield _gauge("raft_current_epoch", "Epoch of the quorum as known by this node.", driver.announcements.epoch)
            yield _gauge("raft_is_leader", "1 on the quorum's leader.", driver.is_leader)
            yield _gauge("raft_high_watermark", "End of the quorum's committed log, exclusive.", driver.high_watermark)
            start_offset = driver.core.log.start if driver.core is not None else 0
            yield _gauge("raft_log_start_offset", "Start of this node's metadata log.", start_offset)
            yield _gauge("raft_log_end_offset", "End of this node's metadata log, exclusive.", driver.end_offset)

    def _of_controller(self) -> Iterator[GaugeMetricFamily]:
        controller = self._node.controller
        if controller is not None:
            yield _gauge(
                "controller_unclean_elections",
                "Leaders that may lack acknowledged records, elected by this node since its start.",
                controller.unclean_elections,
            )
            yield _gauge(
                "controller_unclean_recoveries",
                "Partitions without a leader whose replicas are asked for their logs.",
                controller.unclean_recoveries,
            )

    def _of_snapshots(self) -> Iterator[GaugeMetricFamily]:
        """Of the metadata; none of them before the node has opened its log."""
        store = self._node.driver.snapshots if self._node.driver is not None else None
        if store is None:
            return
        latest, now_ms = store.latest, self._node.edges.clock.wall_ms()
        yield _gauge("metadata_snapshots", "Snapshots of the metadata on this node.", len(store.stored))
        yield _gauge("metadata_snapshots_damaged", "Snapshots found damaged, kept aside and not used.", store.damaged)
        if latest is not None:
            yield _gauge("metadata_snapshot_end_offset", "End of the latest one, exclusive.", latest.id.offset)
            yield _gauge("metadata_snapshot_bytes", "Size of the latest one.", latest.size)
            age_ms = max(0, now_ms - latest.last_contained_timestamp_ms)
            yield _gauge("metadata_snapshot_age_ms", "Age of the last record in the latest one.", age_ms)

    def _of_broker(self) -> Iterator[GaugeMetricFamily]:
        broker = self._node.broker
        if broker is not None:
            yield from self._of_directories(broker)
            yield from self._of_cleaner(broker)
            yield from self._of_index_checks(broker)
            yield _gauge("broker_epoch", "Epoch of this broker's registration.", broker.lifecycle.broker_epoch)
            yield _gauge(
                "broker_logs_set_aside",
                "Logs set aside since the start: they began past where they parted from the leader's.",
                broker.data_plane.follower.logs_set_aside,
            )
            yield _gauge(
                "retention_blocked_logs",
                "Logs that keep everything as a record is dated ahead, or none has a timestamp; the status says which.",
                len(broker.data_plane.blocked_retention),
            )
            yield _gauge(
                "partitions_with_late_transactions",
                "Partitions led here with a transaction that is open longer than it may be: it hangs.",
                broker.transactions.open_timeouts.late(broker.data_plane.registry.replicas.values()),
            )
            counts = [one.joint_counts for one in broker.transactions.coordinators.all]
            yield _gauge("joint_groups", "Writers of batches (Spark) coordinated here.", sum(one[0] for one in counts))
            yield _gauge(
                "joint_open_transactions",
                "Of their transactions, those that are open and not decided.",
                sum(one[1] for one in counts),
            )
            streams = broker.chunk_streams
            yield _gauge("fetch_chunk_streams", "Streams of chunks that are open: readers by gRPC.", streams.count)
            yield _gauge("fetch_chunks", "Chunks of records sent by such streams since the start.", streams.chunks)
            yield _gauge("fetch_chunk_bytes", "Bytes of records in these chunks.", streams.bytes)
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

    def _of_cleaner(self, broker: Broker) -> Iterator[GaugeMetricFamily]:
        cleaner, uncleanable = broker.data_plane.cleaner, broker.data_plane.compactions.uncleanable
        totals = cleaner.totals
        yield _gauge("cleaner_rounds", "Compactions since the start.", totals.rounds)
        yield _gauge("cleaner_failures", "Compactions that failed since the start.", totals.failures)
        yield _gauge("cleaner_read_bytes", "Bytes that compaction has read.", totals.bytes_read)
        yield _gauge("cleaner_written_bytes", "Bytes that compaction has written.", totals.bytes_written)
        yield _gauge("cleaner_freed_bytes", "Bytes by which compaction has made logs smaller.", totals.bytes_freed)
        yield _gauge("cleaner_keyless_records", "Records that it dropped because they had no key.", totals.keyless)
        yield _gauge(
            "cleaner_uncleanable_logs",
            "Logs whose last compaction failed; `quorumlog log explain-compaction` says why.",
            uncleanable.logs,
        )
        yield _gauge("cleaner_uncleanable_bytes", "Bytes of these logs.", uncleanable.bytes)
        looked = cleaner.looked
        if looked.at_ms is not None:
            since_ms = self._node.edges.clock.now_ms() - looked.at_ms
            yield _gauge("cleaner_look_age_ms", "Time since the cleaner last looked for a log to compact.", since_ms)
            dirtiest, overdue_ms = looked.largest_ratio, looked.longest_overdue_ms
            yield _gauge("cleaner_max_dirty_ratio", "Dirty share of the dirtiest log then, 0 to 1.", dirtiest)
            yield _gauge(
                "cleaner_max_compaction_delay_ms",
                "By how much a record was older then than max.compaction.lag.ms, and not yet compacted.",
                overdue_ms,
            )

    def _of_index_checks(self, broker: Broker) -> Iterator[GaugeMetricFamily]:
        """Of the check in the background (`quorumlog_broker/scrub/`)."""
        reports = broker.data_plane.index_checks.values()
        for name, doc, values in (
            ("passes", "Passes over all closed segments since the start.", [one.passes for one in reports]),
            (
                "last_pass_end_ms",
                "Wall clock at the end of the last one; 0: none yet.",
                [one.ended_ms for one in reports],
            ),
            ("read_bytes", "Bytes that were compared with their indexes.", [one.size_bytes for one in reports]),
            ("wrong_indexes", "Index files that were wrong and are built again.", [one.faults for one in reports]),
            ("damaged_batches", "Batches that are damaged, by the newest pass.", [len(one.damage) for one in reports]),
        ):
            family = GaugeMetricFamily(f"quorumlog_index_check_{name}", doc, labels=["path"])
            for report, value in zip(reports, values, strict=True):
                family.add_metric([report.path], value)
            yield family

    def _of_log_resources(self) -> Iterator[GaugeMetricFamily]:
        resources = self._node.edges.disk.resources
        yield _gauge("log_open_files", "Segment files that are open.", len(resources.open_files))
        yield _gauge("log_open_files_max", "log.open.files.max, as it is in force.", resources.open_files.limit)
        yield _gauge("log_index_bytes", "Bytes of loaded indexes.", resources.indexes.weight)

    def _of_listeners(self) -> Iterator[Metric]:
        logins = self._node.edges.logins
        yield _gauge(
            "unauthenticated_connections", "Connections of clients that are not logged in.", logins.strangers()
        )
        done = CounterMetricFamily(
            "quorumlog_authentications", "Logins since the start; of gRPC each call.", labels=["mechanism", "result"]
        )
        for (mechanism, failed), count in sorted(logins.counts.items()):
            done.add_metric([mechanism or "none", "failed" if failed else "done"], count)
        yield done
        expiry = GaugeMetricFamily(
            "quorumlog_tls_expiry_seconds", "Until the first certificate of its chain ends.", labels=["listener"]
        )
        failures = CounterMetricFamily(
            "quorumlog_tls_reload_failures", "Changed certificates that were not taken.", labels=["listener"]
        )
        now_ms = self._node.edges.clock.wall_ms()
        for name, certificates in self._node.edges.listener_keys.by_listener.items():
            ends_ms = certificates.generation.material.not_after_ms
            if ends_ms is not None:
                expiry.add_metric([name], (ends_ms - now_ms) / 1000)
            failures.add_metric([name], certificates.failures)
        yield from (expiry, failures)


def _gauge(name: str, doc: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"quorumlog_{name}", doc, value=float(value))
