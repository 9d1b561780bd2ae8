"""The real disk: raw file descriptors, because buffered files hide how much was written.

macOS: fsync leaves the bytes in the drive's cache, so every sync is F_FULLFSYNC there.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import sys
from collections.abc import Callable, Sequence

from quorumlog_storage.edge.descriptors import with_a_descriptor
from quorumlog_storage.edge.page_cache import (
    DIRECT_FROM_BYTES,
    UNCACHED_FROM_BYTES,
    DirectReads,
    UncachedWrites,
    begin_writeback,
    open_direct,
)
from quorumlog_storage.edge.room import reserve_room
from quorumlog_storage.files.disk import Buffer, DirectoryLocked, DiskError, FileMissing, Lock
from quorumlog_storage.files.eviction import LogResources

_IOV_MAX = os.sysconf("SC_IOV_MAX")
_F_FULLFSYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)


class AsDiskError:
    """Turns OSError into DiskError. Not a generator: that would cost 1 us more, around every write and sync."""

    __slots__ = ("_op", "_path")

    def __init__(self, path: str, op: str) -> None:
        self._path, self._op = path, op

    def __enter__(self) -> None:
        return None

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, FileNotFoundError):
            raise FileMissing(self._path, self._op) from error
        if isinstance(error, OSError):
            raise DiskError(self._path, self._op, error.errno or errno.EIO, error.strerror or "") from error


def _sync_fd(fd: int) -> None:
    if _F_FULLFSYNC is not None:
        fcntl.fcntl(fd, _F_FULLFSYNC)
    elif sys.platform == "linux":
        os.fdatasync(fd)
    else:
        os.fsync(fd)


def _are_many_bytes(buffers: Sequence[Buffer]) -> bool:
    return sum(map(len, buffers)) >= UNCACHED_FROM_BYTES


def _write_in_chunks(
    write: Callable[[int, Sequence[Buffer], int], int], fd: int, buffers: Sequence[Buffer], position: int
) -> int:
    """Writes more buffers than one system call takes. Stops after the first short write."""
    written = 0
    for start in range(0, len(buffers), _IOV_MAX):
        chunk = buffers[start : start + _IOV_MAX]
        count = write(fd, chunk, position + written)
        written += count
        if count < sum(len(buffer) for buffer in chunk):
            break
    return written


class RealFile:
    """A file descriptor. It closes when its last user drops it, so no reader meets a reused descriptor."""

    def __init__(self, path: str, fd: int) -> None:
        self._path = path
        self._fd = fd
        self._uncached = UncachedWrites()
        self._lost_errno = 0  # of a write-back that failed; the sync raises it

    def pread(self, position: int, length: int) -> bytes:
        with AsDiskError(self._path, "read"):
            data = os.pread(self._fd, length, position)
            if len(data) == length or not data:
                return data
            return self._read_on(data, position, length)

    def _read_on(self, data: bytes, position: int, length: int) -> bytes:
        """A short read met the file's end or the kernel's limit (2 GiB): read on until nothing comes."""
        pieces = [data]
        done = len(data)
        while done < length and (data := os.pread(self._fd, length - done, position + done)):
            pieces.append(data)
            done += len(data)
        return b"".join(pieces)

    def pwritev(self, buffers: Sequence[Buffer], position: int, *, read_soon: bool = True) -> int:
        write = os.pwritev if read_soon or not _are_many_bytes(buffers) else self._uncached.write
        with AsDiskError(self._path, "write"):
            if len(buffers) <= _IOV_MAX:
                return write(self._fd, buffers, position)
            return _write_in_chunks(write, self._fd, buffers, position)

    def begin_sync(self) -> None:
        self._lost_errno = self._lost_errno or begin_writeback(self._fd)

    def sync(self) -> None:
        with AsDiskError(self._path, "sync"):
            if self._lost_errno:
                raise OSError(self._lost_errno, os.strerror(self._lost_errno))
            _sync_fd(self._fd)
        self._uncached.synced(self._fd)

    def truncate(self, size: int) -> None:
        with AsDiskError(self._path, "truncate"):
            os.ftruncate(self._fd, size)

    def drop_cached(self) -> None:
        if hasattr(os, "posix_fadvise"):  # not on macOS
            with AsDiskError(self._path, "drop from memory"):
                os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def past_cache(self) -> RealFile:
        fd = open_direct(self._fd) if self.size() >= DIRECT_FROM_BYTES else None
        return self if fd is None else DirectFile(self._path, fd, self)

    def reserve(self, size: int) -> None:
        reserve_room(self._fd, size)

    def size(self) -> int:
        with AsDiskError(self._path, "size"):
            return os.fstat(self._fd).st_size

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with AsDiskError(self._path, "close"):
                os.close(fd)

    def __del__(self) -> None:
        with contextlib.suppress(DiskError, AttributeError):
            self.close()


class DirectFile(RealFile):
    """`File.past_cache`. cached: the file that it was made from, for a machine that refuses a read."""

    def __init__(self, path: str, fd: int, cached: RealFile) -> None:
        super().__init__(path, fd)
        self._direct, self._cached = DirectReads(fd), cached

    def pread(self, position: int, length: int) -> bytes:
        with AsDiskError(self._path, "read"):
            data = self._direct.read(position, length)
        return self._cached.pread(position, length) if data is None else data


class RealLock:
    """An flock. Two opens of one process conflict, too. The kernel drops it when the process ends."""

    def __init__(self, path: str, fd: int) -> None:
        self._path = path
        self._fd = fd

    def release(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with AsDiskError(self._path, "unlock"):
                os.close(fd)


class RealDisk:
    """`quorumlog_storage.files.disk.Disk` on the machine's file systems."""

    def __init__(self, resources: LogResources | None = None) -> None:
        self.resources = resources or LogResources()

    def open(self, path: str, create: bool = False) -> RealFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        with AsDiskError(path, "create" if create else "open"):
            return RealFile(path, self._descriptor(path, flags))

    def _descriptor(self, path: str, flags: int, mode: int = 0o644) -> int:
        return with_a_descriptor(lambda: os.open(path, flags, mode), self.resources)

    def list(self, path: str) -> list[str]:
        with AsDiskError(path, "list"):
            return sorted(with_a_descriptor(lambda: os.listdir(path), self.resources))

    def exists(self, path: str) -> bool:
        with AsDiskError(path, "look-up"):
            return self._mode(path) is not None

    def is_directory(self, path: str) -> bool:
        with AsDiskError(path, "look-up"):
            mode = self._mode(path)
            return mode is not None and stat.S_ISDIR(mode)

    def identity(self, path: str) -> tuple[int, int]:
        with AsDiskError(path, "look-up"):
            status = os.stat(path)
            return status.st_dev, status.st_ino

    @staticmethod
    def _mode(path: str) -> int | None:
        """os.path.exists would hide EIO and EACCES behind False."""
        try:
            return os.stat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None

    def make_directory(self, path: str) -> None:
        with AsDiskError(path, "make directory"):
            try:
                os.mkdir(path, 0o755)
            except FileExistsError:
                if not os.path.isdir(path):
                    raise

    def rename(self, old: str, new: str) -> None:
        with AsDiskError(old, "rename"):
            os.rename(old, new)

    def copy_modified(self, source: str, target: str) -> None:
        with AsDiskError(source, "look-up"):
            found = os.stat(source)
        with AsDiskError(target, "set time"):
            os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))

    def unlink(self, path: str) -> None:
        with AsDiskError(path, "unlink"):
            os.unlink(path)

    def remove_tree(self, path: str) -> None:
        with AsDiskError(path, "remove"):
            shutil.rmtree(path)

    def sync_directory(self, path: str) -> None:
        with AsDiskError(path, "sync directory"):
            fd = self._descriptor(path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
            try:
                os.fsync(fd) if _F_FULLFSYNC is None else fcntl.fcntl(fd, _F_FULLFSYNC)
            finally:
                os.close(fd)

    def read_bytes(self, path: str) -> bytes:
        with AsDiskError(path, "read"), open(path, "rb", buffering=0, opener=self._descriptor) as file:
            return file.readall()

    def free_bytes(self, path: str) -> int:
        with AsDiskError(path, "free space"):
            status = os.statvfs(path)
            return status.f_bavail * status.f_frsize

    def total_bytes(self, path: str) -> int:
        with AsDiskError(path, "size"):
            status = os.statvfs(path)
            return status.f_blocks * status.f_frsize

    def lock(self, path: str) -> Lock:
        with AsDiskError(path, "lock"):
            return locked(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), fcntl.LOCK_EX)


def locked(path: str, fd: int, how: int) -> RealLock:
    """Lock an open file, or close it. how: LOCK_EX or LOCK_SH. Raises DirectoryLocked, OSError."""
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise DirectoryLocked(path) from error
        raise
    return RealLock(path, fd)
