"""The files of keys and certificates: read whole, and looked at for changes."""

from __future__ import annotations

import os
from typing import NamedTuple, Protocol


class FileState(NamedTuple):
    """By what a changed file is told. target: the path behind all links, which a mounted secret changes."""

    mtime_ns: int
    size: int
    inode: int
    target: str


class Files(Protocol):
    """Two real ones: the machine's, and a dictionary in tests. All raise OSError."""

    def read(self, path: str, most_bytes: int) -> bytes:
        """Its first `most_bytes` bytes."""

    def state(self, path: str) -> FileState: ...

    def others_read(self, path: str) -> bool:
        """Users other than the owner may read it."""


class RealFiles:
    """Those of the machine."""

    def read(self, path: str, most_bytes: int) -> bytes:
        with open(path, "rb") as file:
            return file.read(most_bytes)

    def state(self, path: str) -> FileState:
        found = os.stat(path)
        return FileState(found.st_mtime_ns, found.st_size, found.st_ino, os.path.realpath(path))

    def others_read(self, path: str) -> bool:
        return bool(os.stat(path).st_mode & 0o077)
