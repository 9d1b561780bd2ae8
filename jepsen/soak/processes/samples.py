"""What the kernel, the disk and `/metrics` say of the nodes of a local cluster, and what that may be at most.

Linux tells descriptors and memory of a process in `/proc`; elsewhere those curves are missing.
"""

from __future__ import annotations

import os
import urllib.request
from pathlib import Path

from jepsen.soak.gauges import Gauges
from jepsen.soak.processes.settings import DELETED_TOPICS_MAX, INDEX_BYTES_MAX, OPEN_FILES_MAX, SNAPSHOTS_MAX
from quorumlog.testing.layout import NodeFiles
from quorumlog.testing.nodes import LocalNodes, NodeState
from quorumlog_storage.files.names import DELETED_SUFFIX

PROC = Path("/proc")
METADATA_LOG = "__cluster_metadata-0"
METRICS_TIMEOUT_S = 5.0
DESCRIPTORS_BESIDE = 140  # of log files: sockets of peers and clients, listeners, locks, the interpreter's own
RSS_MAX_MIB = 400
METRICS = {  # with bounds
    "quorumlog_log_open_files": OPEN_FILES_MAX + 12,  # those with unsynced bytes stay open beside
    "quorumlog_log_index_bytes": INDEX_BYTES_MAX,
    "quorumlog_snapshots": SNAPSHOTS_MAX,
    "quorumlog_metadata_deleted_topics": DELETED_TOPICS_MAX,
    "quorumlog_cleaner_uncleanable": 0,
    "quorumlog_retention_blocked_logs": 0,
}


class Samples:
    """answers: of /metrics."""

    def __init__(self, gauges: Gauges, metadata_bytes_max: int) -> None:
        self._gauges, self._metadata_bytes_max = gauges, metadata_bytes_max
        self._seen: dict[str, int] = {}
        self.answers = 0

    def take(self, minutes: float, nodes: LocalNodes, bytes_max: float, files_max: float) -> None:
        """bytes_max, files_max: of all logs of one node."""
        running = [nodes.layout.node(node_id) for node_id in nodes.in_state(NodeState.RUNNING)]
        sample = self._gauges.sample
        held = [_held(node.data) for node in running]
        sample(minutes, "files of a node", max(files for files, _, _ in held), files_max, slack=60)
        sample(minutes, "bytes of logs of a node", max(size for _, size, _ in held), bytes_max, slack=200_000)
        sample(minutes, "metadata log and snapshots", max(size for _, _, size in held), self._metadata_bytes_max,
               unit=" bytes", slack=30_000)  # fmt: skip
        pids = [process.pid for node in running if (process := nodes.process(node.node_id)) is not None]
        if PROC.is_dir():
            bound = OPEN_FILES_MAX + DESCRIPTORS_BESIDE
            sample(minutes, "descriptors of a process", max(map(_descriptors, pids)), bound, slack=20)
            sample(minutes, "descriptors of deleted files", max(map(_deleted, pids)), OPEN_FILES_MAX, slack=20)
            sample(
                minutes, "resident memory of a process", max(map(_rss_mib, pids)), RSS_MAX_MIB, unit=" MiB", slack=25
            )
            sample(minutes, "threads of a process", max(map(_threads, pids)), slack=8)
        leaving = {path: number for node in running for path, number in leftovers(node.data).items()}
        sample(minutes, "left over since the last sample", sum(self._seen.get(p) == n for p, n in leaving.items()), 0)
        self._seen = leaving
        told = [values for values in map(_metrics, running) if values]
        self.answers += len(told)
        for name, bound in METRICS.items():
            values = [one[name] for one in told if name in one]
            if values:
                sample(minutes, name, max(values), bound)

    def started(self, minutes: float, seconds: float, bound_s: float) -> None:
        self._gauges.sample(minutes, "seconds of a start", seconds, bound_s, slack=5)


def _held(data: Path) -> tuple[int, int, int]:
    """(files, bytes of partitions, bytes of the metadata log and its snapshots); what goes meanwhile does not count."""
    files = size = metadata = 0
    for folder, _, names in os.walk(data):
        for name in names:
            try:
                found = os.stat(f"{folder}/{name}").st_size
            except FileNotFoundError:
                continue
            files += 1
            if folder.endswith(METADATA_LOG):
                metadata += found
            elif name.endswith(".log"):
                size += found
    return files, size, metadata


def leftovers(data: Path) -> dict[str, int]:
    """What waits to be freed: inode by path."""
    found: dict[str, int] = {}
    for path in (*data.glob(f"*/*{DELETED_SUFFIX}"), *data.glob("*-delete"), *data.glob("*-stray")):
        try:
            found[str(path)] = path.stat().st_ino
        except FileNotFoundError:
            continue
    return found


def _links(pid: int) -> list[str]:
    links = []
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                links.append(os.readlink(f"/proc/{pid}/fd/{name}"))
            except OSError:
                continue
    except OSError:
        return []  # the process has ended
    return links


def _descriptors(pid: int) -> int:
    return len(_links(pid))


def _deleted(pid: int) -> int:
    return sum(".log" in link and link.endswith("(deleted)") for link in _links(pid))


def _status(pid: int, key: str) -> int:
    try:
        for line in (PROC / str(pid) / "status").read_text().splitlines():
            if line.startswith(f"{key}:"):
                return int(line.split()[1])
    except OSError:
        pass  # the process has ended
    return 0


def _rss_mib(pid: int) -> float:
    return _status(pid, "VmRSS") / 1024


def _threads(pid: int) -> int:
    return _status(pid, "Threads")


def _metrics(node: NodeFiles) -> dict[str, float]:
    """The values without labels that the node tells of itself; none where it does not answer."""
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{node.ports.admin}/metrics", timeout=METRICS_TIMEOUT_S
        ) as answer:
            text = answer.read().decode()
    except OSError:
        return {}
    lines = [line.split(" ") for line in text.splitlines() if line.startswith("quorumlog_") and "{" not in line]
    return {line[0]: float(line[1]) for line in lines if len(line) == 2}
