"""The cluster of the virtual day: three controllers and three brokers, with slow timers and small files."""

from __future__ import annotations

from jepsen.checkers.findings import NODE_CRASHED
from jepsen.sim.base_cluster import BaseCluster
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.message import Message, Verdict
from jepsen.sim.settings import BROKERS, DIRECTORIES, NODES, config_of
from jepsen.soak.counting_disk import CountingDisk
from quorumlog.ids import NO_NODE
from quorumlog_quorum.metadata.image import EMPTY, Image

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
OPEN_FILES_MAX, INDEX_BYTES_MAX = 16, 64 << 10  # log.open.files.max, log.index.bytes.max
SNAPSHOT_BYTES, METADATA_SEGMENT_BYTES, METADATA_KEPT_BYTES = 30_000, 20_000, 60_000
METADATA_CHECK_MS = 10 * MINUTE_MS
RETENTION_CHECK_MS, DELETE_DELAY_MS = 10 * MINUTE_MS, MINUTE_MS
PRODUCER_EXPIRY_MS, PRODUCER_CHECK_MS = 5 * MINUTE_MS, MINUTE_MS  # shorter than most lives of a node
SETTINGS = {
    "log.dirs": ",".join(DIRECTORIES),
    # Timers: an idle second must cost next to nothing.
    "broker.session.timeout.ms": str(60 * SECOND_MS),
    "broker.heartbeat.interval.ms": str(15 * SECOND_MS),
    "controller.quorum.fetch.timeout.ms": str(40 * SECOND_MS),
    "controller.quorum.election.timeout.ms": str(2 * SECOND_MS),
    "metadata.max.idle.interval.ms": "0",
    "replica.fetch.wait.max.ms": str(25 * SECOND_MS),
    "replica.lag.time.max.ms": str(60 * SECOND_MS),
    "replica.high.watermark.checkpoint.interval.ms": str(5 * MINUTE_MS),
    "log.flush.offset.checkpoint.interval.ms": str(10 * MINUTE_MS),
    "log.cleaner.backoff.ms": str(5 * MINUTE_MS),
    "log.retention.check.interval.ms": str(RETENTION_CHECK_MS),
    "log.index.check.interval.ms": str(6 * 60 * MINUTE_MS),
    "producer.id.expiration.ms": str(PRODUCER_EXPIRY_MS),
    "producer.id.expiration.check.interval.ms": str(PRODUCER_CHECK_MS),
    # Sizes: a day must fill what a year fills.
    "metadata.log.segment.bytes": str(METADATA_SEGMENT_BYTES),
    "metadata.log.max.record.bytes.between.snapshots": str(SNAPSHOT_BYTES),
    "metadata.max.retention.bytes": str(METADATA_KEPT_BYTES),
    "metadata.retention.check.interval.ms": str(METADATA_CHECK_MS),
    "controller.max.slice.work": "1000",
    "broker.max.slice.work": "100",
}


class DayCluster(BaseCluster):
    def __init__(self, seed: int) -> None:
        super().__init__(seed, None)
        self.lane = bool(self.scheduler.rng("wire").randrange(2))
        self.machines = {
            host: Machine(
                self.scheduler,
                self.network,
                host,
                lane=self.lane,
                config=config_of(host, self.lane, SETTINGS),
                on_touch=_ignore,
                on_disk=_ignore_call,
                on_death=self._on_death,
                disk=CountingDisk,
            )
            for host in NODES
        }
        for machine in self.machines.values():
            machine.disk.bounds = OPEN_FILES_MAX, INDEX_BYTES_MAX
            machine.disk.kill()  # the first process has these bounds

    @property
    def image(self) -> Image:
        nodes = [machine.node for machine in self.machines.values() if machine.node is not None]
        return max((node.loader.image for node in nodes), key=lambda image: image.offset, default=EMPTY)

    def is_healthy(self) -> bool:
        """Every node is ready, and every replica in sync."""
        if any(not one.alive or one.node is None or not one.node.ready for one in self.machines.values()):
            return False
        image = self.image
        if len(image.brokers) < len(BROKERS) or any(broker.fenced for broker in image.brokers.values()):
            return False
        return all(
            partition.leader != NO_NODE and len(partition.isr) == len(partition.replicas)
            for topic in image.sorted_topics()
            for _, partition in topic.sorted_partitions()
        )

    def _on_message(self, message: Message) -> Verdict:
        return Verdict.PASS if self.intercept is None else self.intercept(message)

    def _on_death(self, machine: Machine, why: str) -> None:
        self.findings.broken(NODE_CRASHED, f"{machine.host}: {why}")


def _ignore(_: Machine) -> None:
    """Invariants of single steps are the simulation's."""


def _ignore_call(_machine: Machine, _kind: str, _path: str) -> None:
    """Likewise."""
