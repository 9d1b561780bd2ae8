"""The directories of a node as its parts want them: a worker for the partitions of each path, and one for the quorum.

The metadata log has a worker of its own, so that no queue of partitions' work stands before its syncs. It lies in a log
directory all the same, and shares that one's fate: who of the two meets a disk's failure first stops the other.
"""

from __future__ import annotations

from broker.logdirs.log_directory import LogDirectory
from cli.server.config import NodeConfig
from cli.server.directories import NodeDirectories
from cli.server.edges import Edges
from quorum.metadata_log import METADATA_DIRECTORY, METADATA_PARTITION
from quorumlog.ids import ZERO_UUID
from storage.checkpoint import RecoveryPoints
from storage.worker import Worker
from storage.writer import DirectoryWriter, Standing


class DirectoryWorkers:
    """Made once per start of a node.

    quorum: of the metadata log's own directory; quorum_points: its writer's recovery points.
    """

    def __init__(self, config: NodeConfig, edges: Edges, directories: NodeDirectories) -> None:
        """Raises DiskError of the metadata directory, which must be in order."""
        self._config = config
        self._edges = edges
        self._directories = directories
        self._points = {path: RecoveryPoints(edges.disk, path) for path in config.directories}
        self._points[config.metadata_log_dir].forget(METADATA_PARTITION)  # of when it was written with the partitions
        standings = {path: Standing(path) for path in config.directories}
        path = f"{config.metadata_log_dir}/{METADATA_DIRECTORY}"
        self.quorum_points = RecoveryPoints(edges.disk, path)
        self.quorum = edges.worker(DirectoryWriter(path, self.quorum_points, standings[config.metadata_log_dir]))
        self._workers: dict[str, Worker] = {
            path: edges.worker(DirectoryWriter(path, self._points[path], standings[path]))
            for path in (config.log_dirs if config.is_broker else ())
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
                    worker=self._workers[path],
                    recovery_points=self._points[path],
                    clean=entry is not None and entry.clean_shutdown is not None,
                    online=entry is not None,
                )
            )
        return directories

    def close(self) -> bool:
        """Performs what was accepted, then ends. True: no directory failed up to here."""
        workers = [*self._workers.values(), self.quorum]
        for worker in workers:
            worker.close()
        return all(worker.offline is None for worker in workers)
