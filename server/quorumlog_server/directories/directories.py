"""Opens and locks all of a node's directories before anything else is started.

The metadata directory must be usable. If the disk of another directory fails, that directory is offline and the node
starts without it. A directory that belongs to another node or cluster is a configuration error and stops the start.
A node opens them all at once and gives those up that hang (`directory_start.py`); a command opens them in order.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from quorumlog.cluster_incarnation import ClusterIncarnation
from quorumlog.ids import BrokerEpoch, Uuid
from quorumlog_quorum.offline.lost_majority import INTENT_NAME
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.directories.first_metadata import BadFirstMetadata, FirstMetadata, read_first_metadata
from quorumlog_server.directories.secret import NoSecret, read_secret
from quorumlog_storage.directory.directory import (
    NO_BROKER_EPOCH,
    DirectoryProbe,
    LockedDirectory,
    NotFormatted,
    read_meta,
)
from quorumlog_storage.directory.meta_properties import WrongDirectory, check_directories
from quorumlog_storage.files.disk import DirectoryLocked, Disk, DiskError
from quorumlog_storage.files.properties import BadProperties
from quorumlog_storage.writer.directory_life import DirectoryLife, DirectoryOffline, LifeEvent

_log = logging.getLogger("quorumlog.node")


class DirectoryProblem(Exception):
    """A directory with which this node cannot start. The message is for the operator."""


PROBLEMS = (
    DirectoryProblem,
    BadFirstMetadata,
    NotFormatted,
    DirectoryLocked,
    BadProperties,
    WrongDirectory,
    NoSecret,
    DiskError,
)


@dataclass(slots=True)
class NodeDirectories:
    """opened: in the order of the configuration. lives: of all directories, by path, in that order too.

    ids: of all directories whose meta.properties could be read, by path. probes: of those whose opening has made one.
    hanging: the paths of those whose opening has not returned to this day.
    """

    cluster_id: str
    secret: bytes
    metadata: LockedDirectory
    opened: list[LockedDirectory]
    lives: dict[str, DirectoryLife]
    ids: dict[str, Uuid]
    first: FirstMetadata = field(default_factory=FirstMetadata)  # of a new cluster
    probes: dict[str, DirectoryProbe] = field(default_factory=dict)
    hanging: set[str] = field(default_factory=set)

    @property
    def incarnation(self) -> ClusterIncarnation:
        """Of the cluster; the same in all directories."""
        return self.metadata.meta.incarnation

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

    def unlock(self, path: str) -> None:
        """Of a directory that has failed. On the loop."""
        for entry in self.opened:
            if entry.path == path:
                with suppress(DiskError):
                    entry.close(None)

    def lock_again(self, disk: Disk, path: str) -> LockedDirectory:
        """Open a directory that failed. Raises what opening raises, and WrongDirectory if it is another one."""
        for entry in self.opened:
            if entry.path == path:
                entry.close(None)
        opened = LockedDirectory.open(disk, path)
        others = [(entry.path, entry.meta) for entry in self.opened if entry.path != path]
        try:
            check_directories([*others, (path, opened.meta)], self.metadata.meta.node_id, None)
            if self.ids.get(path, opened.meta.directory_id) != opened.meta.directory_id:
                raise WrongDirectory(f"{path} is another log directory than the one that this node has used there")
        except WrongDirectory:
            _give_back(opened)
            raise
        return opened

    def opened_again(self, entry: LockedDirectory) -> None:
        """On the loop. It comes in the place of the earlier one."""
        self.opened = [known for known in self.opened if known.path != entry.path] + [entry]
        self.ids[entry.path] = entry.meta.directory_id

    def close(self, in_order: Container[str] = (), broker_epoch: BrokerEpoch = NO_BROKER_EPOCH) -> None:
        """Release all locks. in_order: the paths of the directories that get a marker of a clean shutdown.

        A marker that cannot be written costs its own directory a recovery, and the others nothing.
        """
        for entry in self.opened:
            try:
                entry.close(broker_epoch if entry.path in in_order else None)
            except DiskError as error:
                _log.error("%s gets no marker of a clean shutdown, so its logs are recovered: %s", entry.path, error)
        self.opened = []


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedDirectory:
    """What the opening of one directory came to. entry: None where the disk has failed, by `error`.

    directory_id: None where it cannot be read; a directory that failed while it was opened may still say who it is.
    """

    entry: LockedDirectory | None = None
    error: DiskError | None = None
    directory_id: Uuid | None = None
    probe: DirectoryProbe | None = None


@dataclass(frozen=True, slots=True)
class Shared:
    """What the metadata directory holds for the whole node."""

    secret: bytes
    first: FirstMetadata


def check_intent(disk: Disk, config: NodeConfig) -> None:
    """Before anything is locked. Raises DirectoryProblem, DiskError."""
    if disk.exists(f"{config.metadata_log_dir}/{INTENT_NAME}"):
        raise DirectoryProblem(
            f"{config.metadata_log_dir}/{INTENT_NAME}: a recovery of this node was interrupted; finish it with "
            "quorumlog storage recover --unsafe -c FILE"
        )


def open_one(disk: Disk, path: str) -> OpenedDirectory:
    """Raises NotFormatted, DirectoryLocked, BadProperties: those stop the start."""
    try:
        entry = LockedDirectory.open(disk, path)
    except DiskError as error:
        directory_id: Uuid | None = None
        with suppress(NotFormatted, BadProperties, DiskError):
            directory_id = read_meta(disk, path).directory_id
        return OpenedDirectory(error=error, directory_id=directory_id)
    try:
        probe = DirectoryProbe(disk, path)
    except DiskError as error:
        entry.close(None)
        return OpenedDirectory(error=error, directory_id=entry.meta.directory_id)
    return OpenedDirectory(entry=entry, directory_id=entry.meta.directory_id, probe=probe)


def read_shared(disk: Disk, config: NodeConfig) -> Shared:
    """Raises NoSecret, BadFirstMetadata, DiskError."""
    return Shared(read_secret(disk, config.metadata_log_dir), read_first_metadata(disk, config.metadata_log_dir))


def note_opened(life: DirectoryLife, found: OpenedDirectory) -> None:
    if found.error is None:
        life.step(LifeEvent.OPENED, life.generation)
    else:
        life.fail(found.error, life.generation)


def assemble(
    config: NodeConfig,
    lives: dict[str, DirectoryLife],
    found: Mapping[str, OpenedDirectory],
    read: Callable[[], Shared],
) -> NodeDirectories:
    """found: by path, without those that hang. Raises what `PROBLEMS` lists."""
    opened = [one.entry for path in lives if (one := found.get(path)) is not None and one.entry is not None]
    check_directories([(entry.path, entry.meta) for entry in opened], config.node_id, None)
    metadata = next(entry for entry in opened if entry.path == config.metadata_log_dir)
    shared = read()
    return NodeDirectories(
        cluster_id=metadata.meta.cluster_id,
        secret=shared.secret,
        metadata=metadata,
        opened=opened,
        lives=lives,
        ids={path: one.directory_id for path, one in found.items() if one.directory_id is not None},
        first=shared.first,
        probes={path: one.probe for path, one in found.items() if one.probe is not None},
    )


def open_directories(disk: Disk, config: NodeConfig) -> NodeDirectories:
    """In order, on the caller's thread. Raises DirectoryProblem; then no directory stays locked."""
    lives = {path: DirectoryLife(path) for path in config.directories}
    found: dict[str, OpenedDirectory] = {}
    try:
        check_intent(disk, config)
        for path, life in lives.items():
            one = found[path] = open_one(disk, path)
            if one.error is not None and path == config.metadata_log_dir:
                raise one.error
            note_opened(life, one)
        return assemble(config, lives, found, lambda: read_shared(disk, config))
    except PROBLEMS as error:
        release(found.values())
        raise DirectoryProblem(str(error)) from error


def release(found: Iterable[OpenedDirectory]) -> None:
    """The node does not start. Each directory is left as it was, with its marker of a clean stop if it had one."""
    for one in found:
        if one.entry is not None:
            _give_back(one.entry)


def _give_back(entry: LockedDirectory) -> None:
    try:
        entry.close_unused()
    except DiskError as error:
        _log.error("%s has lost its marker of a clean shutdown, so its logs are recovered: %s", entry.path, error)
