"""One log directory: its owner, its lock, and whether the last process left it in order.

A directory is formatted once and locked while a node runs. It holds the partitions' directories
(quorumlog_storage/directory/partition_directories.py) and the marker of a clean shutdown. Opening removes the marker
durably, so that a crash while the logs are loaded leads to recovery.

`DirectoryProbe` finds out whether a log directory is still the one that was opened, and still takes changes.

A write to an open file succeeds after its directory was removed, or after another file system was mounted over it or
away from it. Nobody who appends would notice before the next file is made. So the directory is probed from time to
time: its device and inode are those of the start, and a file can be made and removed in it. What such a probe finds:

- `rm -rf` of the directory, or of what is in it: it is gone, or its lock and its owner are;
- a file system that was unmounted, also lazily, or mounted over it: it is another directory;
- a file system that became read-only, or fails: the file cannot be made (EROFS, EIO);
- a disk that hangs: the probe does not return (quorumlog_storage/writer/stall_watch.py).

A full disk is no finding. Nothing is lost before a write fails for it, and producers are refused before that.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from quorumlog.ids import BrokerEpoch
from quorumlog_storage.directory.meta_properties import META_PROPERTIES, MetaProperties
from quorumlog_storage.files.atomic import remove_durably, write_atomically
from quorumlog_storage.files.disk import Disk, DiskError, FileMissing, Lock, parent_of, write_fully

LOCK_NAME = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
MAX_MARKER_BYTES = 2048  # some 40 are usual
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
    """The content of the marker. broker_epoch: NO_BROKER_EPOCH if unreadable; the shutdown was clean all the same."""

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


class LockedDirectory:
    """An open, locked log directory. Changed by its writer only."""

    def __init__(self, disk: Disk, path: str, meta: MetaProperties, lock: Lock, shutdown: CleanShutdown | None) -> None:
        self.path = path
        self.meta = meta
        self.clean_shutdown = shutdown  # None: the last run did not end cleanly, logs must be recovered
        self._disk = disk
        self._lock = lock

    @classmethod
    def open(cls, disk: Disk, path: str) -> LockedDirectory:
        """Lock the directory and take its marker. Raises NotFormatted, DirectoryLocked, BadProperties, DiskError."""
        meta = read_meta(disk, path)
        lock = disk.lock(f"{path}/{LOCK_NAME}")
        try:
            return cls(disk, path, meta, lock, _take_marker(disk, f"{path}/{CLEAN_SHUTDOWN}"))
        except BaseException:
            lock.release()
            raise

    def close(self, broker_epoch: BrokerEpoch | None) -> None:
        """Release the lock. broker_epoch: leave a marker with it, since every log was closed cleanly; None: leave none.

        Raises DiskError; the lock is released all the same.
        """
        try:
            if broker_epoch is not None:
                self._leave_marker(broker_epoch)
        finally:
            self._lock.release()

    def close_unused(self) -> None:
        """Release the lock of a directory in which nothing was changed: a marker that `open` took lies there again.

        A directory that is refused may be another node's, which would have to recover its logs without the marker, and
        would come back as one that may have lost records. Raises DiskError; the lock is released all the same.
        """
        self.close(None if self.clean_shutdown is None else self.clean_shutdown.broker_epoch)

    def _leave_marker(self, broker_epoch: BrokerEpoch) -> None:
        path = f"{self.path}/{CLEAN_SHUTDOWN}"
        file = self._disk.open(path, create=True)
        content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()
        write_fully(file, path, [content], 0)
        file.sync()
        file.close()
        self._disk.sync_directory(self.path)


def _take_marker(disk: Disk, path: str) -> CleanShutdown | None:
    """The marker's existence means clean. After this all names in the directory are durable.

    A killed process may have made or renamed some of them in memory only; those who find them take them for durable.
    """
    try:
        content = disk.read_bytes(path)
    except FileMissing:
        disk.sync_directory(parent_of(path))
        return None
    remove_durably(disk, path)
    return CleanShutdown(_broker_epoch(content))


def _broker_epoch(content: bytes) -> BrokerEpoch:
    if len(content) > MAX_MARKER_BYTES:
        return NO_BROKER_EPOCH
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


PROBE_NAME = ".probe"


class DirectoryGone(Exception):
    """The path of a log directory names something else now, or nothing. What was written since may be lost."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(
            f"{path}: {what}, so it was removed, replaced or unmounted while the node used it; mount or restore it, "
            "and look for what did that"
        )
        self.path = path


class DirectoryProbe:
    """Of one log directory, made when it has been opened and locked. A call is one probe, by one thread at a time."""

    def __init__(self, disk: Disk, path: str) -> None:
        """Raises DiskError."""
        self._disk, self._path = disk, path
        self._known = {name: disk.identity(name) for name in (path, f"{path}/{LOCK_NAME}")}

    def __call__(self) -> None:
        """Raises DirectoryGone, DiskError."""
        for name, known in self._known.items():
            if self._identity(name) != known:
                raise DirectoryGone(self._path, f"{name} is another one than at the start")
        self._identity(f"{self._path}/{META_PROPERTIES}")  # it is replaced when it changes; that it is there counts
        try:
            self._make_a_file()
        except DiskError as error:
            if not error.found_no_room:
                raise

    def _identity(self, name: str) -> tuple[int, int]:
        try:
            return self._disk.identity(name)
        except FileMissing as error:
            raise DirectoryGone(self._path, f"{name} is not there any more") from error

    def _make_a_file(self) -> None:
        probe = f"{self._path}/{PROBE_NAME}"
        self._disk.open(probe, create=True).close()
        self._disk.sync_directory(self._path)
        self._disk.unlink(probe)
