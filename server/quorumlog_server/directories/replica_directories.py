"""A node's directories as its parts use them: a worker for the partitions of each path, and one for the quorum.

The metadata log has its own worker, so that its syncs do not queue behind the partitions' work. It still lies in a log
directory and shares its generation: if one of the two writers meets a disk failure, the other stops too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from quorumlog.ids import ZERO_UUID
from quorumlog_broker.logdirs.log_directory import LogDirectory
from quorumlog_quorum.disk.metadata_log import METADATA_DIRECTORY
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.directories.directories import NodeDirectories
from quorumlog_server.directories.directory_probes import Probed
from quorumlog_server.edge.edges import Edges
from quorumlog_storage.directory.directory import PROBE_NAME, DirectoryProbe
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.files.file_handle import let_go_all, open_below
from quorumlog_storage.writer.directory_life import DirectoryOffline, LifeEvent
from quorumlog_storage.writer.worker import Worker, WorkerClosed, WorkerFull
from quorumlog_storage.writer.writer import CallJob, DirectoryWriter, Outcome


class CannotReturn(Exception):
    """A directory that cannot be brought back while the node runs. The message says why, and what to do."""


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
        self.probed = [one for entry in directories.opened if (one := self._probed(edges, entry.path)) is not None]
        self._edges = edges
        for path, life in self._lives.items():
            if path != config.metadata_log_dir:  # the node ends with that one
                life.on_failed(partial(self._let_go, path))
        self._retired: list[Worker] = []  # of earlier generations: a reader may hang in one
        self._on_new: list[Callable[[Worker], None]] = []
        self._workers: dict[str, Worker] = {
            path: edges.worker(DirectoryWriter(path, self._lives[path].generation))
            for path in (config.log_dirs if config.is_broker else ())
        }

    def _partitions_of(self, path: str) -> PartitionDirectories:
        clean = any(entry.path == path and entry.clean_shutdown is not None for entry in self._directories.opened)
        return PartitionDirectories(self._disk, path, clean)

    def _probed(self, edges: Edges, path: str) -> Probed | None:
        """None: the directory went before it could be probed."""
        life = self._lives[path]
        try:
            probe = self._directories.probes.pop(path, None) or DirectoryProbe(self._disk, path)
        except DiskError as error:
            life.fail(error, life.generation)
            return None
        worker = edges.worker(DirectoryWriter(f"{path}/{PROBE_NAME}", life.generation))
        return Probed(life, life.generation, worker, probe)

    def on_new(self, callback: Callable[[Worker], None]) -> None:
        """Call back with each worker that is made later."""
        self._on_new.append(callback)

    async def open_again(self, path: str) -> LogDirectory:
        """A directory that failed, locked again in a new generation, which is to be verified. Raises CannotReturn, or
        what opening it raises; then it is offline as before."""
        self._check_can_return(path)
        life = self._lives[path]
        life.step(LifeEvent.VERIFICATION_BEGAN, life.generation)
        generation = life.generation
        worker = self._edges.worker(DirectoryWriter(path, generation))
        self._retired.append(self._workers[path])
        self._workers[path] = worker
        for callback in self._on_new:
            callback(worker)
        asked: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        worker.submit(CallJob(partial(self._directories.lock_again, self._disk, path)), None, asked.set_result)
        outcome = await asked
        if outcome.error is not None:
            life.fail(outcome.error, generation)
            raise outcome.error
        self._directories.opened_again(outcome.value)
        self._probe_again(path)
        self._partitions[path] = PartitionDirectories(self._disk, path, verifies=True)
        return LogDirectory(
            directory_id=self._directories.ids[path],
            life=life,
            generation=generation,
            partitions=self._partitions[path],
            worker=worker,
        )

    def _let_go(self, path: str, _: DirectoryOffline) -> None:
        """Close what is open in a directory that has failed, its lock too: an operator can unmount it, and Kafka does
        the same. Not where a call hangs: it may still change a file."""
        if self._lives[path].generation.is_stalled:
            return
        self._directories.unlock(path)
        handles = open_below(self._disk, path)
        for one in self.probed:
            if one.life.path == path:  # its reader threads have nothing else to do
                with suppress(WorkerFull, WorkerClosed):
                    one.worker.read(partial(let_go_all, handles), _nobody)
                return

    def _check_can_return(self, path: str) -> None:
        if path == self._config.metadata_log_dir:
            raise CannotReturn(f"{path} holds the metadata log; restart the node")
        if path in self._directories.hanging:
            raise CannotReturn(
                f"the opening of {path} at the start has still not returned, and may change a file at any time; repair "
                "the disk, or restart the node"
            )
        calls = [call for worker in self.of_directory(path) for call in worker.open_calls()]
        if calls:
            raise CannotReturn(
                f"{calls[0].op} of {calls[0].path} has still not returned, and may change a file at any time; repair "
                "the disk, or restart the node"
            )

    def _probe_again(self, path: str) -> None:
        for number, one in enumerate(self.probed):
            if one.life.path == path:
                self._retired.append(one.worker)
                del self.probed[number]
                break
        probed = self._probed(self._edges, path)
        if probed is not None:
            self.probed.append(probed)
            for callback in self._on_new:
                callback(probed.worker)

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
        return [*self._workers.values(), self.quorum, *self._retired, *(one.worker for one in self.probed)]

    def of_directory(self, path: str) -> list[Worker]:
        """Those that write in the directory `path`."""
        of_partitions = [worker for own, worker in self._workers.items() if own == path]
        of_partitions += [one.worker for one in self.probed if one.life.path == path]
        return [*of_partitions, self.quorum] if path == self._config.metadata_log_dir else of_partitions

    @property
    def any_stalled(self) -> bool:
        return any(life.generation.is_stalled for life in self._lives.values())

    def close(self) -> None:
        """Finish the accepted work, then end; where a disk hangs, end without."""
        for worker in self.all:
            worker.close()
        for life in self._lives.values():
            life.step(LifeEvent.CLOSED, life.generation)


def _nobody(_: Outcome) -> None:
    """Nobody waits for it."""
