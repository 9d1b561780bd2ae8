"""A cluster of thousands of partitions beside Kafka: created, a broker killed, one restarted, and bytes reassigned.

Each round is the life of one new cluster, Kafka's and ours in turn; only one of them exists at a time. Three nodes,
replication 3. Times end when the metadata of every live broker says so, asked by raw sockets (`raw/partitions.py`):

- created: from the request that creates all topics until every partition has a leader and a whole ISR, and each leader
  has told the end of its log, so that it serves; then until every partition has taken a record that its whole ISR
  acknowledged, which ours has synced on three disks by then and Kafka has not;
- killed: from kill -9 of a broker until every partition has a live leader, and until every partition has taken a
  record; then from its start until it is back in all ISRs;
- restarted: from SIGTERM to a broker, its start right after its end, until it is back in all ISRs;
- reassigned: reassignment.py.

The broker that is hit does not lead the quorum: a fail-over of the controller is measured by itself (`controller`).
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.kafka.lives import memory_mb, start_peer
from bench.kafka.reassignment import FIGURES as REASSIGNMENT_FIGURES
from bench.kafka.reassignment import P50, P99, RATE, REST_P99, reassign
from bench.kafka.table import Samples, figure_beside
from bench.measuring.report import Row
from bench.peers.kafka_tools import Kafka
from bench.peers.peer import NODES, Peer, controller_of
from bench.raw.partitions import Watcher
from quorumlog.ids import NodeId
from quorumlog.messages.cluster import CreatableTopic, PartitionMetadata

CREATED_SEEN, CREATED, CREATED_WRITTEN = "partitions created, seen", "partitions created", "partitions created, written"
MEMORY = "partitions memory"
KILLED, KILLED_WRITTEN, KILLED_BACK = "partitions killed", "partitions killed, written", "partitions killed, back"
RESTARTED = "partitions restarted"
START = "partitions start"
PHASE_TIMEOUT_S = 600.0  # a cluster that takes longer for one phase has failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """moved_mb: of record values that are reassigned, 10^6 bytes, of one replica.

    settle_s: between phases, so that none pays for the one before it.
    """

    partitions: int = 5_000
    per_topic: int = 1_000
    moved_mb: float = 2_000.0
    settle_s: float = 10.0

    @property
    def topics(self) -> dict[str, int]:
        """Their numbers of partitions."""
        return {
            f"many-{number}": min(self.per_topic, self.partitions - first)
            for number, first in enumerate(range(0, self.partitions, self.per_topic))
        }


def measure(kafka: Kafka, make: Callable[[], Peer], work: Work, figures: Samples) -> None:
    """One life of one cluster. make: a new one. It ends with the first phase that fails; its logs are then kept."""
    peer = make()
    try:
        life = _Life(kafka, peer, work, figures)
        if not all(_attempt(figures, names, phase) for names, phase in life.phases):
            return
    finally:
        peer.close()
    shutil.rmtree(peer.root)


def _attempt(figures: Samples, names: Sequence[str], phase: Callable[[], None]) -> bool:
    """False: it failed now. A phase that failed in an earlier life is left out."""
    known = len(figures.failed)
    figures.attempt(names, phase)
    return len(figures.failed) == known


class _Life:
    """The phases, in this order. Each begins with all replicas in sync."""

    def __init__(self, kafka: Kafka, peer: Peer, work: Work, figures: Samples) -> None:
        self._kafka, self._peer, self._work, self._figures = kafka, peer, work, figures
        self.phases: Sequence[tuple[Sequence[str], Callable[[], None]]] = (
            ((START,), self._start),
            ((CREATED_SEEN, CREATED, CREATED_WRITTEN, MEMORY), self._create_all),
            ((KILLED, KILLED_WRITTEN, KILLED_BACK), self._kill_one),
            ((RESTARTED,), self._restart_one),
            (REASSIGNMENT_FIGURES, self._reassign),
        )

    def _start(self) -> None:
        self._figures.add(START, start_peer(self._peer))

    def _create_all(self) -> None:
        asyncio.run(self._create())
        for megabytes in memory_mb(self._peer):
            self._figures.add(MEMORY, megabytes)
        time.sleep(self._work.settle_s)

    def _kill_one(self) -> None:
        victim = self._choose()
        asyncio.run(self._kill(victim))
        time.sleep(self._work.settle_s)

    def _restart_one(self) -> None:
        asyncio.run(self._restart(self._choose()))
        time.sleep(self._work.settle_s)

    def _reassign(self) -> None:
        reassign(self._kafka, self._peer, self._work.moved_mb, self._work.settle_s, self._figures)

    async def _create(self) -> None:
        topics = self._work.topics
        watcher = Watcher(self._peer.bootstrap_servers)
        async with asyncio.timeout(PHASE_TIMEOUT_S):
            began = time.perf_counter()
            await watcher.create(
                CreatableTopic(name=name, num_partitions=count, replication_factor=NODES)
                for name, count in topics.items()
            )
            await watcher.until_seen(watcher.nodes, topics, is_whole)
            self._add(CREATED_SEEN, began)
            await watcher.until_led(watcher.nodes, topics)
            self._add(CREATED, began)
            await watcher.write_to_all(watcher.nodes, topics)
            self._add(CREATED_WRITTEN, began)
        watcher.close()

    async def _kill(self, victim: NodeId) -> None:
        topics = self._work.topics
        watcher = Watcher(self._peer.bootstrap_servers)
        live = without(watcher.nodes, victim)
        async with asyncio.timeout(PHASE_TIMEOUT_S):
            await watcher.until_seen(live, topics, is_whole)  # connects, too
            began = time.perf_counter()
            self._peer.kill(victim)
            await watcher.until_seen(live, topics, is_led_without(victim))
            self._add(KILLED, began)
            await watcher.write_to_all(live, topics)
            self._add(KILLED_WRITTEN, began)
            began = time.perf_counter()
            self._peer.restart(victim)
            await watcher.until_seen(watcher.nodes, topics, is_whole)
            self._add(KILLED_BACK, began)
            await watcher.write_to_all(watcher.nodes, topics)  # the ISRs that were seen are true
        watcher.close()

    async def _restart(self, victim: NodeId) -> None:
        topics = self._work.topics
        watcher = Watcher(self._peer.bootstrap_servers)
        async with asyncio.timeout(PHASE_TIMEOUT_S):
            await watcher.until_seen(watcher.nodes, topics, is_whole)
            began = time.perf_counter()
            await asyncio.to_thread(self._peer.end, victim)
            print(f"{self._peer.name}: node {victim} has ended after {time.perf_counter() - began:.2f} s", flush=True)
            self._peer.restart(victim)
            await watcher.until_seen(watcher.nodes, topics, is_whole)
            self._add(RESTARTED, began)
            await watcher.write_to_all(watcher.nodes, topics)
        watcher.close()

    def _choose(self) -> NodeId:
        """The first node that does not lead the quorum."""
        return without(range(1, NODES + 1), controller_of(self._kafka, self._peer))[0]

    def _add(self, figure: str, began: float) -> None:
        seconds = time.perf_counter() - began
        print(f"{self._peer.name}: {figure}: {seconds:.2f} s", flush=True)
        self._figures.add(figure, seconds)


def without(nodes: Iterable[NodeId], one: NodeId) -> Sequence[NodeId]:
    return [node for node in nodes if node != one]


def is_whole(partition: PartitionMetadata) -> bool:
    """It has a leader, and all its replicas are in sync."""
    return partition.leader_id >= 0 and len(partition.isr) == len(partition.replicas)


def is_led_without(victim: NodeId) -> Callable[[PartitionMetadata], bool]:
    """Whether a partition has a leader that is not this node."""
    return lambda partition: partition.leader_id not in (-1, victim)


CREATED_GOAL, KILLED_GOAL, RESTARTED_GOAL, MOVED_GOAL, MOVED_P99_GOAL = 0.3, 0.3, 0.5, 1.0, 1.0
# Name, unit, figure, goal, and whether more is better.
ROWS: tuple[tuple[str, str, str, float | None, bool], ...] = (
    ("partitions created until all are led, ISRs whole", "s", CREATED, CREATED_GOAL, False),
    ("  until all brokers' metadata say so", "s", CREATED_SEEN, None, False),
    ("  until each has taken a record, acks=all", "s", CREATED_WRITTEN, None, False),
    ("  resident memory of a node", "MB", MEMORY, None, False),
    ("kill -9 of a broker until all have a live leader", "s", KILLED, KILLED_GOAL, False),
    ("  until each has taken a record, acks=all", "s", KILLED_WRITTEN, None, False),
    ("  from its start until back in all ISRs", "s", KILLED_BACK, None, False),
    ("controlled restart until back in all ISRs", "s", RESTARTED, RESTARTED_GOAL, False),
    ("reassignment", "MB/s", RATE, MOVED_GOAL, True),
    ("  producers' p50 meanwhile", "ms", P50, None, False),
    ("  producers' p99 meanwhile", "ms", P99, MOVED_P99_GOAL, False),
    ("  producers' p99 before it", "ms", REST_P99, None, False),
)


def partition_rows(theirs: Samples, ours: Samples) -> list[Row]:
    return [
        row
        for name, unit, figure, goal, more in ROWS
        for row in figure_beside(name, unit, figure, goal, theirs, ours, at_least=more)
    ]
