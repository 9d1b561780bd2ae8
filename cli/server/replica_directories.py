"""A node's directories as its parts use them: a worker for the partitions of each path, and one for the quorum.

The metadata log has its own worker, so that its syncs do not queue behind the partitions' work. It still lies in a log
directory and shares its generation: if one of the two writers meets a disk failure, the other stops too.
"""

from __future__ import annotations

from broker.logdirs.log_directory import LogDirectory
from cli.server.config import NodeConfig
from cli.server.directories import NodeDirectories
from cli.server.edges import Edges
from quorum.metadata_log import METADATA_DIRECTORY
from quorumlog.ids import ZERO_UUID
from storage.directory_life import LifeEvent
from storage.partition_directories import PartitionDirectories
from storage.worker import Worker
from storage.writer import DirectoryWriter


class DirectoryWorkers:
    """Created once per start of a node.

    quorum: the worker of the metadata log. older_points: where earlier releases noted the metadata log's recovery
    point; the partitions' worker of that directory uses the file as soon as the quorum is open.
    """

    def __init__(self, config: NodeConfig, edges: Edges, directories: NodeDirectories) -> None:
        self._config = config
        self._disk = edges.disk
        self._directories = directories
        self._lives = directories.lives
        self._partitions = {path: self._partitions_of(path) for path in config.directories}
        self.older_points = self._partitions[config.metadata_log_dir].recovery_points
        path = f"{config.metadata_log_dir}/{METADATA_DIRECTORY}"
        self.quorum = edges.worker(DirectoryWriter(path, self._lives[config.metadata_log_dir].generation))
        self._workers: dict[str, Worker] = {
            path: edges.worker(DirectoryWriter(path, self._lives[path].generation))
            for path in (config.log_dirs if config.is_broker else ())
        }

    def _partitions_of(self, path: str) -> PartitionDirectories:
        clean = any(entry.path == path and entry.clean_shutdown is not None for entry in self._directories.opened)
        return PartitionDirectories(self._disk, path, clean)

    def for_replicas(self) -> list[LogDirectory]:
        """All of `log.dirs`. A failed one is among them: its partitions must not be created again elsewhere."""
        return [
            LogDirectory(
                directory_id=self._directories.ids.get(path, ZERO_UUID),
                life=self._lives[path],
                generation=self._lives[path].generation,
                partitions=self._partitions[path],
                worker=self._workers[path],
            )
            for path in self._config.log_dirs
        ]

    @property
    def all(self) -> list[Worker]:
        return [*self._workers.values(), self.quorum]

    def of_directory(self, path: str) -> list[Worker]:
        """Those that write in the directory `path`."""
        of_partitions = [worker for own, worker in self._workers.items() if own == path]
        return [*of_partitions, self.quorum] if path == self._config.metadata_log_dir else of_partitions

    @property
    def any_stalled(self) -> bool:
        return any(life.generation.is_stalled for life in self._lives.values())

    def close(self) -> bool:
        """Finish the accepted work, then end; where a disk hangs, end without. True if no directory has failed."""
        for worker in self.all:
            worker.close()
        for life in self._lives.values():
            life.step(LifeEvent.CLOSED, life.generation)
        return all(life.failure is None for life in self._lives.values())
