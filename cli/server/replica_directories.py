"""A node's directories as its parts use them: a worker for the partitions of each path, and one for the quorum.

The metadata log has its own worker, so that its syncs do not queue behind the partitions' work. It still lies in a log
directory and shares its state: if one of the two workers meets a disk failure, the other stops too.
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
    """Created once per start of a node.

    quorum: the worker of the metadata log. quorum_points: its recovery points.
    """

    def __init__(self, config: NodeConfig, edges: Edges, directories: NodeDirectories) -> None:
        """Raises DiskError if the metadata directory fails; it must be usable."""
        self._config = config
        self._edges = edges
        self._directories = directories
        self._points = {path: RecoveryPoints(edges.disk, path) for path in config.directories}
        self._points[config.metadata_log_dir].forget(METADATA_PARTITION)  # written by older versions
        standings = {path: Standing(path) for path in config.directories}
        path = f"{config.metadata_log_dir}/{METADATA_DIRECTORY}"
        self.quorum_points = RecoveryPoints(edges.disk, path)
        self.quorum = edges.worker(DirectoryWriter(path, self.quorum_points, standings[config.metadata_log_dir]))
        self._workers: dict[str, Worker] = {
            path: edges.worker(DirectoryWriter(path, self._points[path], standings[path]))
            for path in (config.log_dirs if config.is_broker else ())
        }

    def for_replicas(self) -> list[LogDirectory]:
        """The directories of `log.dirs`, also failed ones: a partition in a missing directory must not be created
        again."""
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
        """Finish the accepted work, then end. True if no directory has failed."""
        workers = [*self._workers.values(), self.quorum]
        for worker in workers:
            worker.close()
        return all(worker.offline is None for worker in workers)
