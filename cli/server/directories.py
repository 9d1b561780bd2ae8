"""Opens and locks all of a node's directories before anything else is started.

The metadata directory must be usable. If the disk of another directory fails, that directory is offline and the node
starts without it. A directory that belongs to another node or cluster is a configuration error and stops the start.
"""

from __future__ import annotations

from dataclasses import dataclass

from cli.server.config import NodeConfig
from cli.server.secret import NoSecret, read_secret
from quorumlog.ids import BrokerEpoch
from storage.directory import NO_BROKER_EPOCH, LogDirectory, NotFormatted
from storage.directory_life import DirectoryLife, DirectoryOffline, LifeEvent
from storage.disk import DirectoryLocked, Disk, DiskError
from storage.meta_properties import WrongDirectory, check_directories
from storage.properties import BadProperties

_PROBLEMS = (NotFormatted, DirectoryLocked, BadProperties, WrongDirectory, NoSecret, DiskError)


class DirectoryProblem(Exception):
    """A directory with which this node cannot start. The message is for the operator."""


@dataclass(slots=True)
class NodeDirectories:
    """opened: in the order of the configuration. lives: of all directories, by path, in that order too."""

    cluster_id: str
    secret: bytes
    metadata: LogDirectory
    opened: list[LogDirectory]
    lives: dict[str, DirectoryLife]

    @property
    def failures(self) -> list[DirectoryOffline]:
        """One for each directory that is offline."""
        return [life.failure for life in self.lives.values() if life.failure is not None]

    @property
    def previous_broker_epoch(self) -> BrokerEpoch:
        """Broker epoch of the last stop, if all directories were closed cleanly with the same epoch; otherwise -1."""
        epochs = [
            entry.clean_shutdown.broker_epoch if entry.clean_shutdown else NO_BROKER_EPOCH for entry in self.opened
        ]
        return epochs[0] if not self.failures and min(epochs) == max(epochs) else NO_BROKER_EPOCH

    def close(self, broker_epoch: BrokerEpoch | None) -> None:
        """Release all locks. broker_epoch: write clean-shutdown markers with it; None: write none."""
        for entry in self.opened:
            entry.close(broker_epoch)
        self.opened = []


def open_directories(disk: Disk, config: NodeConfig) -> NodeDirectories:
    """Raises DirectoryProblem; then no directory stays locked."""
    opened: list[LogDirectory] = []
    lives = {path: DirectoryLife(path) for path in config.directories}
    try:
        for path, life in lives.items():
            try:
                opened.append(LogDirectory.open(disk, path))
                life.step(LifeEvent.OPENED, life.generation)
            except DiskError as error:
                if path == config.metadata_log_dir:
                    raise
                life.fail(error, life.generation)
        check_directories([(entry.path, entry.meta) for entry in opened], config.node_id, None)
        metadata = next(entry for entry in opened if entry.path == config.metadata_log_dir)
        return NodeDirectories(
            cluster_id=metadata.meta.cluster_id,
            secret=read_secret(disk, config.metadata_log_dir),
            metadata=metadata,
            opened=opened,
            lives=lives,
        )
    except _PROBLEMS as error:
        for entry in opened:
            entry.close(None)
        raise DirectoryProblem(str(error)) from error
