"""One log directory: whose it is, who holds it, what lies in it, and whether it was left in order.

A directory is formatted once, locked while a node runs, and holds the partitions' directories, two checkpoints and the
marker of a clean shutdown. The marker is taken away durably when the directory is opened: a crash while loading must
recover. Unknown partitions are set aside, not deleted: nothing is lost because metadata did not name it (DESIGN §6).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from quorumlog.ids import BrokerEpoch, Uuid
from storage.atomic import remove_durably, write_atomically
from storage.disk import Disk, FileMissing, Lock, parent_of, write_fully
from storage.meta_properties import META_PROPERTIES, MetaProperties, WrongDirectory
from storage.names import DELETE, STRAY, PartitionName, marked_directory, parse_directory, partition_directory

LOCK_NAME = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
_CASE_PROBE = ".case-probe"
NO_BROKER_EPOCH: BrokerEpoch = -1


class NotFormatted(Exception):
    """A directory without meta.properties."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} has no {META_PROPERTIES}; format it with `quorumlog storage format`")
        self.path = path


class AlreadyFormatted(Exception):
    """Formatting again would give the directory's data to another cluster."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is formatted already; use an empty directory, or leave this one as it is")
        self.path = path


class CaseInsensitive(Exception):
    """A file system on which `A-0` and `a-0` are one directory."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is on a case-insensitive file system, where topics that differ in case would share a directory; "
            "use a case-sensitive one"
        )
        self.path = path


@dataclass(frozen=True, slots=True)
class CleanShutdown:
    """What the marker said. broker_epoch: NO_BROKER_EPOCH where it was unreadable; the shutdown was clean anyway."""

    broker_epoch: BrokerEpoch


def format_directory(disk: Disk, path: str, meta: MetaProperties, comment: str = "") -> None:
    """Make `path` a log directory; its parent exists. Raises AlreadyFormatted, CaseInsensitive, DiskError."""
    disk.make_directory(path)
    disk.sync_directory(parent_of(path))
    if disk.exists(f"{path}/{META_PROPERTIES}"):
        raise AlreadyFormatted(path)
    _check_case(disk, path)
    write_atomically(disk, f"{path}/{META_PROPERTIES}", meta.render(comment))


def read_meta(disk: Disk, path: str) -> MetaProperties:
    """Raises NotFormatted, BadProperties, DiskError."""
    name = f"{path}/{META_PROPERTIES}"
    try:
        return MetaProperties.parse(name, disk.read_bytes(name))
    except FileMissing as error:
        raise NotFormatted(path) from error


class LogDirectory:
    """An open, locked log directory. Changed by its writer only."""

    def __init__(self, disk: Disk, path: str, meta: MetaProperties, lock: Lock, shutdown: CleanShutdown | None) -> None:
        self.path = path
        self.meta = meta
        self.clean_shutdown = shutdown  # None: the last run did not end cleanly, logs must be recovered
        self._disk = disk
        self._lock = lock

    @classmethod
    def open(cls, disk: Disk, path: str, expected: MetaProperties | None = None) -> LogDirectory:
        """Lock the directory, then look at it.

        expected: cluster and node id must be these (the directory id is the directory's own business).
        Raises NotFormatted, DirectoryLocked, BadProperties, WrongDirectory, DiskError.
        """
        meta = read_meta(disk, path)
        if expected is not None and (meta.cluster_id, meta.node_id) != (expected.cluster_id, expected.node_id):
            raise WrongDirectory(
                f"{path} belongs to node {meta.node_id} of cluster {meta.cluster_id}, this is node "
                f"{expected.node_id} of cluster {expected.cluster_id}; take it out of log.dirs"
            )
        lock = disk.lock(f"{path}/{LOCK_NAME}")
        try:
            return cls(disk, path, meta, lock, _take_marker(disk, f"{path}/{CLEAN_SHUTDOWN}"))
        except BaseException:
            lock.release()
            raise

    def partitions(self) -> dict[str, PartitionName]:
        """Every partition's directory name, whatever its mark, sorted. Raises BadDirectoryName for any other directory.

        Files and names that begin with a dot are none of the partitions'.
        """
        names = [name for name in self._disk.list(self.path) if not name.startswith(".")]
        return {name: parse_directory(name) for name in names if self._disk.is_directory(f"{self.path}/{name}")}

    def log_path(self, topic: str, partition: int) -> str:
        return f"{self.path}/{partition_directory(topic, partition)}"

    def set_aside(self, topic: str, partition: int, unique: Uuid) -> str:
        """Rename a partition that metadata does not know. Durable; returns the new path. unique: any fresh id."""
        return self._mark(topic, partition, unique, STRAY)

    def mark_deleted(self, topic: str, partition: int, unique: Uuid) -> str:
        """Rename a partition that is to be deleted, so that its name is free at once. The caller removes it later."""
        return self._mark(topic, partition, unique, DELETE)

    def remove(self, name: str) -> None:
        """Remove a marked directory with everything in it."""
        assert parse_directory(name).mark == DELETE, f"{name} is not marked for deletion"
        self._disk.remove_tree(f"{self.path}/{name}")
        self._disk.sync_directory(self.path)

    def close(self, broker_epoch: BrokerEpoch | None) -> None:
        """Release the directory. broker_epoch: leave the marker, for every log was closed cleanly; None: leave none."""
        if broker_epoch is not None:
            self._leave_marker(broker_epoch)
        self._lock.release()

    def _leave_marker(self, broker_epoch: BrokerEpoch) -> None:
        path = f"{self.path}/{CLEAN_SHUTDOWN}"
        file = self._disk.open(path, create=True)
        content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()
        write_fully(file, path, [content], 0)
        file.sync()
        file.close()
        self._disk.sync_directory(self.path)

    def _mark(self, topic: str, partition: int, unique: Uuid, mark: str) -> str:
        new = f"{self.path}/{marked_directory(topic, partition, unique, mark)}"
        self._disk.rename(self.log_path(topic, partition), new)
        self._disk.sync_directory(self.path)
        return new


def _take_marker(disk: Disk, path: str) -> CleanShutdown | None:
    """Its existence means clean; its content is only the broker epoch. All names beside it are durable after this.

    A killed process may have made or renamed some in memory only, and who finds them takes them for stored.
    """
    try:
        content = disk.read_bytes(path)
    except FileMissing:
        disk.sync_directory(parent_of(path))
        return None
    remove_durably(disk, path)
    return CleanShutdown(_broker_epoch(content))


def _broker_epoch(content: bytes) -> BrokerEpoch:
    try:
        epoch = json.loads(content)["brokerEpoch"]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return NO_BROKER_EPOCH
    return epoch if type(epoch) is int and 0 <= epoch < 2**63 else NO_BROKER_EPOCH


def _check_case(disk: Disk, path: str) -> None:
    probe = f"{path}/{_CASE_PROBE}"
    disk.open(probe, create=True).close()
    folded = disk.exists(f"{path}/{_CASE_PROBE.upper()}")
    disk.unlink(probe)
    if folded:
        raise CaseInsensitive(path)
