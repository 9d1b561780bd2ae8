"""The seam to a disk: what the log engine needs of files and directories, and the errors of a disk.

`quorumlog_storage/edge/disk.py` is the real one, `jepsen/sim/machine/disk.py` the simulated one; one contract test
serves both (tests/storage/test_disk_contract.py). Rules that both keep:

- Paths are text with `/` between names. A name exists durably only after `sync_directory` of its directory, bytes only
  after `sync` of their file.
- Every failure of the machine is a `DiskError`; nothing else leaves this seam.
- `pwritev` may write less than it was given. `write_fully` turns that into an error: a failed write is never repeated.
"""

from __future__ import annotations

import errno as errno_names
from collections.abc import Sequence
from typing import Protocol

from quorumlog_storage.files.eviction import LogResources

Buffer = bytes | bytearray | memoryview

_NEXT_STEP = {
    errno_names.ENOSPC: "free space on this file system",
    errno_names.EDQUOT: "raise the quota of the node's user",
    errno_names.EACCES: "give the node's user the right to read and write it",
    errno_names.EROFS: "remount the file system for writing",
    errno_names.EMFILE: "raise the limit of open files (ulimit -n)",
}
_DEFAULT_NEXT_STEP = "look at the kernel's log; check or replace the disk"


NO_ROOM = frozenset({errno_names.ENOSPC, errno_names.EDQUOT})  # a file system is full, or a quota used up
READ_OPS = frozenset({"open", "read", "list", "look-up", "size", "free space"})  # of a DiskError: changed nothing


class DiskError(Exception):
    """A disk operation failed. What that means for replicas and directories: `quorumlog_storage/rules/failure_rule.py`.

    op: what was tried; one of `READ_OPS` where the call changes nothing. Opening a file that may be made is "create".
    """

    def __init__(self, path: str, op: str, errno: int, detail: str = "") -> None:
        name = errno_names.errorcode.get(errno, str(errno))
        reason = f"{name}, {detail}" if detail else name
        next_step = _NEXT_STEP.get(errno, _DEFAULT_NEXT_STEP)
        super().__init__(f"{op} of {path} failed ({reason}); {next_step}, then restart or bring the directory online")
        self.path, self.op, self.errno = path, op, errno

    @property
    def found_no_room(self) -> bool:
        return self.errno in NO_ROOM


class FileMissing(DiskError):
    """The file or directory is missing: the one failure that does not put the disk in question."""

    def __init__(self, path: str, op: str) -> None:
        super().__init__(path, op, errno_names.ENOENT, "there is no such file or directory")


class DirectoryLocked(Exception):
    """Another process works in this directory."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is locked by another process; stop that node, or give this one its own directory")
        self.path = path


class File(Protocol):
    """One open file. One thread changes it, any number may `pread` at the same time."""

    def pread(self, position: int, length: int) -> bytes:
        """`length` bytes from `position`; fewer only where the file ends."""
        ...

    def pwritev(self, buffers: Sequence[Buffer], position: int, *, read_soon: bool = True) -> int:
        """Write the buffers one after the other from `position`; returns how many bytes were written, maybe fewer.

        read_soon: False is a hint that the machine need not keep them in memory once they are on disk.
        """
        ...

    def begin_sync(self) -> None:
        """A hint that `sync` follows: the disk may start with it. Promises nothing and raises nothing."""
        ...

    def sync(self) -> None:
        """Make the bytes and the size durable (fdatasync). Never called again after it has failed once."""
        ...

    def truncate(self, size: int) -> None: ...

    def drop_cached(self) -> None:
        """Drop cached pages, so that reads show what the disk holds or is still being written.

        After a failed sync the page cache shows bytes that will never be on the disk, and the next sync, in this or any
        other process, reports success.
        """
        ...

    def past_cache(self) -> File:
        """This file for one pass over it by one thread, which leaves nothing in memory where the machine can do that.

        Its `pread` shows what the disk holds or is still being written, and it is used for nothing else. It closes when
        it is dropped.
        """
        ...

    def reserve(self, size: int) -> None:
        """A hint: have room for a content of `size` bytes; 0: give back room behind the end. The size stays as it is.

        Promises nothing and raises nothing.
        """
        ...

    def size(self) -> int: ...

    def close(self) -> None:
        """May be called twice. A file that is dropped and not closed is closed when its last reader drops it, too."""
        ...


class Lock(Protocol):
    """An exclusive lock on a directory."""

    def release(self) -> None: ...


class Disk(Protocol):
    """Files and directories by path. Every method may raise DiskError.

    resources: what the logs on all disks of this process share.
    """

    resources: LogResources

    def open(self, path: str, create: bool = False) -> File:
        """Open for reading and writing. Raises FileMissing unless `create`, which makes an empty file."""
        ...

    def list(self, path: str) -> list[str]:
        """Names in a directory, sorted. Raises FileMissing."""
        ...

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def identity(self, path: str) -> tuple[int, int]:
        """Device and inode of what has this name now. Raises FileMissing."""
        ...

    def make_directory(self, path: str) -> None:
        """Make one directory, not its parents. An existing one is left as it is."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Atomic, within one directory; replaces a file of the new name. Raises FileMissing."""
        ...

    def copy_modified(self, source: str, target: str) -> None:
        """Give a file the time at which another one was modified. Raises FileMissing."""
        ...

    def unlink(self, path: str) -> None:
        """Raises FileMissing."""
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a directory and all that is in it, symbolic links not followed. Not atomic. Raises FileMissing."""
        ...

    def sync_directory(self, path: str) -> None:
        """Make the names created, renamed and removed in this directory durable."""
        ...

    def read_bytes(self, path: str) -> bytes:
        """A whole small file. Raises FileMissing."""
        ...

    def free_bytes(self, path: str) -> int:
        """Bytes that an ordinary user may still write on the file system of `path`."""
        ...

    def total_bytes(self, path: str) -> int:
        """Size of the file system of `path`, in bytes."""
        ...

    def lock(self, path: str) -> Lock:
        """Take the exclusive lock file at `path`, made if absent. Raises DirectoryLocked. Ends with the process."""
        ...


def write_fully(file: File, path: str, buffers: Sequence[Buffer], position: int, *, read_soon: bool = True) -> int:
    """Write all buffers from `position`, or raise. Returns the bytes written. A short write is a DiskError."""
    wanted = sum(len(buffer) for buffer in buffers)
    if wanted == 0:
        return 0
    written = file.pwritev(buffers, position, read_soon=read_soon)
    if written != wanted:
        raise DiskError(path, "write", errno_names.ENOSPC, f"short write: {written} of {wanted} bytes")
    return written


def parent_of(path: str) -> str:
    """The directory part of a path: `/a/b` -> `/a`, `/a` -> `/`, `a` -> `.`."""
    head, slash, _ = path.rpartition("/")
    return head or ("/" if slash else ".")


def name_of(path: str) -> str:
    """The last name of a path."""
    return path.rpartition("/")[2]
