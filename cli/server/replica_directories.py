"""The directories of a node as its parts want them: one worker for each path, shared by quorum and broker."""

from __future__ import annotations

from typing import cast

from broker.log_directory import LogDirectory
from cli.server.config import NodeConfig
from cli.server.directories import NodeDirectories
from cli.server.edges import Edges
from quorumlog.ids import ZERO_UUID
from storage.checkpoint import RecoveryPoints
from storage.disk import Disk, DiskError, FileMissing
from storage.worker import Worker


class DirectoryWorkers:
    """`workers` and `recovery_points` by path, in the order of the configuration. Made once per start of a node."""

    def __init__(self, config: NodeConfig, edges: Edges, directories: NodeDirectories) -> None:
        self._config = config
        self._edges = edges
        self._directories = directories
        self.recovery_points = {path: _recovery_points(edges.disk, path) for path in config.directories}
        self.workers: dict[str, Worker] = {
            path: edges.worker(path, self.recovery_points[path]) for path in config.directories
        }

    def for_replicas(self) -> list[LogDirectory]:
        """Those of `log.dirs`, the failed ones too: while one is missing, what lies in it must not be made anew."""
        opened = {entry.path: entry for entry in self._directories.opened}
        directories = []
        for path in self._config.log_dirs:
            entry = opened.get(path)
            directories.append(
                LogDirectory(
                    directory_id=entry.meta.directory_id if entry else ZERO_UUID,
                    path=path,
                    disk=self._edges.disk,
                    worker=self.workers[path],
                    recovery_points=self.recovery_points[path],
                    clean=entry is not None and entry.clean_shutdown is not None,
                    online=entry is not None,
                )
            )
        return directories

    def close(self) -> None:
        """Performs what was accepted, then ends."""
        for worker in self.workers.values():
            worker.close()


class _NoFiles:
    """Stands for a disk that cannot be read: nothing is there."""

    def read_bytes(self, path: str) -> bytes:
        raise FileMissing(path, "read")


def _recovery_points(disk: Disk, path: str) -> RecoveryPoints:
    try:
        return RecoveryPoints(disk, path)
    except DiskError:
        return RecoveryPoints(cast(Disk, _NoFiles()), path)
