"""A node's directories as its parts use them: a worker for the partitions of each path, and one for the quorum.

The metadata log has its own worker, so that its syncs do not queue behind the partitions' work. It still lies in a log
directory and shares its generation: if one of the two writers meets a disk failure, the other stops too.
"""

from __future__ import annotations

from broker.logdirs.log_directory import LogDirectory
from cli.server.config import NodeConfig
from cli.server.directories import NodeDirectories
from cli.server.edges import Edges
from quorum.metadata_log import METADATA_DIRECTORY, METADATA_PARTITION
from quorumlog.ids import ZERO_UUID
from storage.directory_life import LifeEvent
from storage.offset_files import RECOVERY_POINTS, OffsetFile
from storage.partition_directories import PartitionDirectories
from storage.worker import Worker
from storage.writer import DirectoryWriter


class DirectoryWorkers:
    """Created once per start of a node.

    quorum: the worker of the metadata log. quorum_points: its recovery points.
    """

    def __init__(self, config: NodeConfig, edges: Edges, directories: NodeDirectories) -> None:
        """Raises DiskError if the metadata directory fails; it must be usable."""
        self._config = config
        self._disk = edges.disk
        self._directories = directories
        self._lives = directories.lives
        self._partitions = {path: self._partitions_of(path) for path in config.directories}
        older_line = {METADATA_PARTITION: None}  # written by older versions
        self._partitions[config.metadata_log_dir].recovery_points.update(older_line)
        path = f"{config.metadata_log_dir}/{METADATA_DIRECTORY}"
        self.quorum_points = OffsetFile(edges.disk, f"{path}/{RECOVERY_POINTS}")
        self.quorum = edges.worker(DirectoryWriter(path, self._lives[config.metadata_log_dir].generation))
        self._workers: dict[str, Worker] = {
            path: edges.worker(DirectoryWriter(path, self._lives[path].generation))
            for path in (config.log_dirs if config.is_broker else ())
        }

    def _partitions_of(self, path: str) -> PartitionDirectories:
        clean = any(entry.path == path and entry.clean_shutdown is not None for entry in self._directories.opened)
        return PartitionDirectories(self._disk, path, clean)

    def for_replicas(self) -> list[LogDirectory]:
        """All of `log.dirs`. A failed one is among them: its partitions must not be made anew elsewhere."""
        ids = {entry.path: entry.meta.directory_id for entry in self._directories.opened}
        return [
            LogDirectory(
                directory_id=ids.get(path, ZERO_UUID),
                life=self._lives[path],
                generation=self._lives[path].generation,
                partitions=self._partitions[path],
                worker=self._workers[path],
            )
            for path in self._config.log_dirs
        ]

    def close(self) -> bool:
        """Finish the accepted work, then end. True if no directory has failed."""
        workers = [*self._workers.values(), self.quorum]
        for worker in workers:
            worker.close()
        for life in self._lives.values():
            life.step(LifeEvent.CLOSED, life.generation)
        return all(life.failure is None for life in self._lives.values())
