"""Finds out whether a log directory is still the one that was opened, and still takes changes.

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

import errno

from quorumlog_storage.directory.directory import LOCK_NAME
from quorumlog_storage.directory.meta_properties import META_PROPERTIES
from quorumlog_storage.files.disk import Disk, DiskError, FileMissing

PROBE_NAME = ".probe"
_FULL = (errno.ENOSPC, errno.EDQUOT)


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
            if error.errno not in _FULL:
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
