"""What the nodes of the virtual day hold at a sample, and what they may hold by their settings and by what was written.

A sample is taken where nothing is late: every node runs for a while, and every replica is in sync.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from jepsen.sim.invariants.replica_watch import data_plane_of
from jepsen.sim.machine.machine import Machine
from jepsen.sim.machine.page_cache import DirectoryNode, FileNode
from jepsen.sim.settings import METADATA_LOG
from jepsen.soak.cluster.cluster import (
    METADATA_KEPT_BYTES,
    METADATA_SEGMENT_BYTES,
    OPEN_FILES_MAX,
    SNAPSHOT_BYTES,
    DayCluster,
)
from jepsen.soak.cluster.topics import Part
from jepsen.soak.counting_disk import CountingDisk
from jepsen.soak.gauges import Gauges
from quorumlog_broker.data_plane import DataPlane
from quorumlog_storage.files.names import DELETED_SUFFIX

FILES_A_SEGMENT, FILES_A_LOG, FILES_A_NODE = 5, 6, 40
OPEN_FILES_BESIDE = 8  # of the metadata log, its snapshots and its state; of what was written and is not synced
SEGMENTS_BY_TIME = 4 * 2 + 4  # in the hours that a topic is kept: one each half an hour, and those on their way
CALLS_A_FILE, CALLS_A_NODE = 10, 1_500


class Sampler:
    """seen: what was on its way out at the sample before, by host."""

    def __init__(self, gauges: Gauges) -> None:
        self._gauges = gauges
        self._seen: dict[str, dict[str, int]] = {}

    def sample(self, hours: float, cluster: DayCluster, parts: Sequence[Part], now_ms: int) -> None:
        for machine in cluster.machines.values():
            assert machine.loop is not None
            machine.loop.forget_done_tasks()
        gc.collect()  # the descriptors of deleted files close with the last object that refers to them
        machines = list(cluster.machines.values())
        self._disks(hours, machines, parts, now_ms)
        self._logs(hours, machines, parts, now_ms)
        self._metadata(hours, machines)
        sample = self._gauges.sample
        sample(hours, "tasks of a node", max(len(one.loop._tasks) for one in machines if one.loop), slack=15)
        sample(hours, "connections", cluster.network.open_sessions, slack=10)
        sample(hours, "memory blocks of the whole soak", sys.getallocatedblocks(), slack=40_000)

    def started(self, hours: float, machine: Machine, calls: int, took_ms: int) -> None:
        """calls: of its disk, until it was ready."""
        bound = CALLS_A_NODE + CALLS_A_FILE * files_of(machine)
        self._gauges.sample(hours, "disk calls of a start", calls, bound, slack=500)
        self._gauges.sample(hours, "milliseconds of a start", took_ms, slack=2_000)

    def _disks(self, hours: float, machines: Sequence[Machine], parts: Sequence[Part], now_ms: int) -> None:
        files_max = FILES_A_NODE + sum(
            FILES_A_LOG + FILES_A_SEGMENT * (SEGMENTS_BY_TIME + part.bytes_max(now_ms) / 3_000) for part in parts
        )
        self._gauges.sample(hours, "files of a node", max(map(files_of, machines)), files_max, slack=60)
        held = [machine.disk.open_files for machine in machines if isinstance(machine.disk, CountingDisk)]
        self._gauges.sample(hours, "open files of a node", max(held), OPEN_FILES_MAX + OPEN_FILES_BESIDE, slack=4)
        stale = 0
        for machine in machines:
            leaving = dict(_leaving(machine))
            before = self._seen.get(machine.host, {})
            stale += sum(before.get(path) == number for path, number in leaving.items())
            self._seen[machine.host] = leaving
        self._gauges.sample(hours, "left over since the last sample", stale, 0)

    def _logs(self, hours: float, machines: Sequence[Machine], parts: Sequence[Part], now_ms: int) -> None:
        held: Counter[str] = Counter()
        producers = 0
        for plane in filter(None, map(data_plane_of, machines)):
            held.update(_bytes_by_topic(plane))
            for replica in plane.registry.replicas.values():
                log = replica.log
                if log is not None and log.producers is not None:
                    producers = max(producers, len(log.producers.states.entries))
        replicas = len([machine for machine in machines if machine.config.is_broker])
        for name in sorted({part.kind.name for part in parts}):
            bound = sum(part.bytes_max(now_ms) for part in parts if part.kind.name == name) * replicas
            self._gauges.sample(hours, f"bytes of {name}", held[name], bound, is_level=False)  # topics are made anew
        self._gauges.sample(hours, "producers of a log", producers, slack=10)

    def _metadata(self, hours: float, machines: Sequence[Machine]) -> None:
        sizes = [
            sum(len(node.current) for name, node in _directory(machine, METADATA_LOG) if isinstance(node, FileNode))
            for machine in machines
        ]
        bound = METADATA_KEPT_BYTES + 2 * METADATA_SEGMENT_BYTES + 3 * SNAPSHOT_BYTES
        self._gauges.sample(hours, "metadata log and snapshots", max(sizes), bound, unit=" bytes", slack=5_000)


def files_of(machine: Machine) -> int:
    return _count(machine.disk.root)


def _count(directory: DirectoryNode) -> int:
    return sum(_count(node) if isinstance(node, DirectoryNode) else 1 for node in directory.current.values())


def _directory(machine: Machine, path: str) -> Iterable[tuple[str, FileNode | DirectoryNode]]:
    node: FileNode | DirectoryNode | None = machine.disk.root
    for name in path.strip("/").split("/"):
        node = node.current.get(name) if isinstance(node, DirectoryNode) else None
    return list(node.current.items()) if isinstance(node, DirectoryNode) else []


def _leaving(machine: Machine) -> Iterable[tuple[str, int]]:
    """Paths that have left a log or a directory, and wait to be freed; copies of moves, too."""
    for root in machine.config.directories:
        for name, node in _directory(machine, root):
            if name.endswith(("-delete", "-future", "-stray")):
                yield f"{root}/{name}", node.number
            elif isinstance(node, DirectoryNode):
                for file, inner in node.current.items():
                    if file.endswith((DELETED_SUFFIX, ".cleaned", ".swap", ".tmp")):
                        yield f"{root}/{name}/{file}", inner.number


def _bytes_by_topic(plane: DataPlane) -> Counter[str]:
    sizes: Counter[str] = Counter()
    for replica in plane.registry.replicas.values():
        if replica.log is not None:
            sizes[replica.topic] += replica.log.size_bytes
    return sizes
