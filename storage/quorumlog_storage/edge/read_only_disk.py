"""The real disk for reading only: it works on read-only file systems, and nothing that uses it can change a byte."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Sequence

from quorumlog_storage.edge.disk import AsDiskError, RealDisk, RealFile, locked
from quorumlog_storage.files.disk import Buffer, DiskError, FileMissing, Lock


class ReadOnlyFile(RealFile):
    """Its descriptor is open for reading only."""

    def pwritev(self, buffers: Sequence[Buffer], position: int, *, read_soon: bool = True) -> int:
        raise DiskError(self._path, "write", errno.EROFS, "it is open for reading only")

    def truncate(self, size: int) -> None:
        raise DiskError(self._path, "truncate", errno.EROFS, "it is open for reading only")


class NoLock:
    """Of a directory that has no lock file, so that no node has ever run in it."""

    def release(self) -> None:
        return None


class ReadOnlyDisk(RealDisk):
    """`quorumlog_storage.files.disk.Disk` whose changes all raise DiskError(EROFS)."""

    def open(self, path: str, create: bool = False) -> RealFile:
        if create:
            raise _refused(path, "create")
        with AsDiskError(path, "open"):
            return ReadOnlyFile(path, self._descriptor(path, os.O_RDONLY | os.O_CLOEXEC))

    def make_directory(self, path: str) -> None:
        raise _refused(path, "make directory")

    def rename(self, old: str, new: str) -> None:
        raise _refused(old, "rename")

    def copy_modified(self, source: str, target: str) -> None:
        raise _refused(target, "set time")

    def unlink(self, path: str) -> None:
        raise _refused(path, "unlink")

    def remove_tree(self, path: str) -> None:
        raise _refused(path, "remove")

    def sync_directory(self, path: str) -> None:
        raise _refused(path, "sync directory")

    def lock(self, path: str) -> Lock:
        """A shared lock on a file that is there: no node can start meanwhile, other readers can. It makes no file."""
        try:
            with AsDiskError(path, "lock"):
                return locked(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC), fcntl.LOCK_SH)
        except FileMissing:
            return NoLock()


def _refused(path: str, op: str) -> DiskError:
    return DiskError(path, op, errno.EROFS, "this command changes nothing")
