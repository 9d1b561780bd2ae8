"""A disk that counts its syncs by the second in which they ended, of files and of directories apart.

The seconds are those of the machine's monotonic clock, so that another process can ask for a span of time afterwards.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from quorumlog_storage.files.disk import Buffer, Disk, File

FILES, DIRECTORIES = "file", "directory"
Counts = Counter[tuple[str, int]]  # by what was synced and the second; each step is one operation of a dict


class CountedFile:
    """`quorumlog_storage.files.disk.File`."""

    __slots__ = ("_counts", "_file", "begin_sync", "close", "drop_cached", "pread", "reserve", "size", "truncate")

    def __init__(self, file: File, counts: Counts) -> None:
        self._file, self._counts = file, counts
        self.pread, self.size, self.drop_cached, self.close = file.pread, file.size, file.drop_cached, file.close
        self.begin_sync, self.truncate, self.reserve = file.begin_sync, file.truncate, file.reserve

    def pwritev(self, buffers: Sequence[Buffer], position: int, *, read_soon: bool = True) -> int:
        return self._file.pwritev(buffers, position, read_soon=read_soon)

    def past_cache(self) -> File:
        """Of reads only, which are not counted."""
        return self._file.past_cache()

    def sync(self) -> None:
        self._file.sync()
        self._counts[FILES, int(time.monotonic())] += 1


class CountedDisk:
    """`quorumlog_storage.files.disk.Disk`."""

    def __init__(self, disk: Disk, counts: Counts) -> None:
        self._disk, self._counts, self.resources = disk, counts, disk.resources
        self.list, self.exists, self.is_directory, self.identity = (
            disk.list,
            disk.exists,
            disk.is_directory,
            disk.identity,
        )
        self.read_bytes, self.free_bytes, self.total_bytes = disk.read_bytes, disk.free_bytes, disk.total_bytes
        self.lock, self.make_directory, self.rename = disk.lock, disk.make_directory, disk.rename
        self.unlink, self.remove_tree, self.copy_modified = disk.unlink, disk.remove_tree, disk.copy_modified

    def open(self, path: str, create: bool = False) -> CountedFile:
        return CountedFile(self._disk.open(path, create), self._counts)

    def sync_directory(self, path: str) -> None:
        self._disk.sync_directory(path)
        self._counts[DIRECTORIES, int(time.monotonic())] += 1


def write_counts(counts: Mapping[tuple[str, int], int], file: Path) -> None:
    file.write_text(json.dumps([[what, second, count] for (what, second), count in counts.items()]))


def read_counts(file: Path, start_s: float, end_s: float) -> int:
    """All syncs that ended between two times of `time.monotonic`, to the second, both included."""
    found = json.loads(file.read_text())
    return sum(count for _, second, count in found if int(start_s) <= second <= int(end_s))
