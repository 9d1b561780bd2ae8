"""Runs one real node whose disk a test can make sick: `python -P tests/live/sick_node.py FOLDER -c FILE`.

The node is the production one. This launcher puts its own Disk where the node takes the real one; production code
knows nothing of it. The disk does what the files in FOLDER say, while they are there:

- `hang`: changing calls on paths that begin with the file's text do not return.
- `unreadable`: reads of such paths fail with EIO.
"""

from __future__ import annotations

import errno
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from quorumlog_server.process.lean_start import load_no_more_than_needed

load_no_more_than_needed()

import quorumlog_server.edge.real_edges  # noqa: E402  # imported after the settings above
from quorumlog_server.process.process import main  # noqa: E402
from quorumlog_storage.edge.disk import RealDisk, RealFile  # noqa: E402
from quorumlog_storage.files.disk import Buffer, DiskError  # noqa: E402

POLL_S = 0.02
HANG, UNREADABLE = "hang", "unreadable"
folder: Path


def is_told(order: str, path: str) -> bool:
    try:
        prefix = (folder / order).read_text()
    except FileNotFoundError:
        return False
    return bool(prefix) and path.startswith(prefix)


def hang(path: str) -> None:
    while is_told(HANG, path):
        time.sleep(POLL_S)


class SickFile:
    """`quorumlog_storage.files.disk.File`."""

    def __init__(self, path: str, file: RealFile) -> None:
        self._path, self._file = path, file
        self.begin_sync, self.drop_cached, self.reserve = file.begin_sync, file.drop_cached, file.reserve
        self.size, self.close = file.size, file.close

    def past_cache(self) -> SickFile:
        return self

    def pread(self, position: int, length: int) -> bytes:
        if is_told(UNREADABLE, self._path):
            raise DiskError(self._path, "read", errno.EIO, "injected")
        return self._file.pread(position, length)

    def pwritev(self, buffers: Sequence[Buffer], position: int, *, read_soon: bool = True) -> int:
        hang(self._path)
        return self._file.pwritev(buffers, position, read_soon=read_soon)

    def sync(self) -> None:
        hang(self._path)
        self._file.sync()

    def truncate(self, size: int) -> None:
        hang(self._path)
        self._file.truncate(size)


class SickDisk(RealDisk):
    """`quorumlog_storage.files.disk.Disk`."""

    def open(self, path: str, create: bool = False) -> SickFile:  # type: ignore[override]  # it is a File, too
        if create:
            hang(path)
        return SickFile(path, super().open(path, create))

    def rename(self, old: str, new: str) -> None:
        hang(old)
        super().rename(old, new)

    def sync_directory(self, path: str) -> None:
        hang(path)
        super().sync_directory(path)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    quorumlog_server.edge.real_edges.RealDisk = SickDisk  # type: ignore[misc]  # the node is built with it
    sys.exit(main(sys.argv[2:]))
