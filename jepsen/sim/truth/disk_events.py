"""Counts what happened to the logs on all disks, so that a run shows which ways of the log engine it took."""

from __future__ import annotations

from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import METADATA_LOG
from quorumlog_storage.directory.offset_files import RECOVERY_POINTS
from quorumlog_storage.files.names import LOG_SUFFIX, SNAPSHOT_SUFFIX

SEGMENTS, REMOVED, CUT = "segments", "segments removed", "segments cut"
METADATA_SEGMENTS, METADATA_REMOVED = "metadata segments", "metadata segments removed"
POINTS, SNAPSHOTS = "recovery points", "producer snapshots"
DISK_EVENTS = (SEGMENTS, REMOVED, CUT, METADATA_SEGMENTS, METADATA_REMOVED, POINTS, SNAPSHOTS)


class DiskEvents:
    """counts: by DISK_EVENTS. A segment counts when its first batch is written, if it is not at offset 0."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(DISK_EVENTS, 0)
        self._sizes: dict[tuple[str, str], int] = {}  # in bytes, of segments that were written; by host and path

    def on_disk(self, machine: Machine, kind: str, path: str) -> None:
        if path.endswith(LOG_SUFFIX):
            self._on_segment(machine, kind, path)
        elif kind == "rename" and RECOVERY_POINTS in path:
            self.counts[POINTS] += 1
        elif kind == "pwritev" and path.endswith(SNAPSHOT_SUFFIX):
            self.counts[SNAPSHOTS] += 1

    def _on_segment(self, machine: Machine, kind: str, path: str) -> None:
        metadata, key = path.startswith(METADATA_LOG), (machine.host, path)
        if kind == "pwritev":
            if key not in self._sizes and not _is_first(path):
                self.counts[METADATA_SEGMENTS if metadata else SEGMENTS] += 1
            self._sizes[key] = machine.disk.size_of(path)
        elif kind == "unlink":
            self._sizes.pop(key, None)
            self.counts[METADATA_REMOVED if metadata else REMOVED] += 1
        elif kind == "truncate" and machine.disk.size_of(path) < self._sizes.get(key, 0):
            self._sizes[key] = machine.disk.size_of(path)
            self.counts[CUT] += 1


def _is_first(path: str) -> bool:
    return int(path.rpartition("/")[2].removesuffix(LOG_SUFFIX)) == 0
