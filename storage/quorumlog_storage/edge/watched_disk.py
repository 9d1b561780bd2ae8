"""A disk that notes which changing call each thread is in, for the watch on hanging disks
(quorumlog_storage/writer/stall_watch.py).

It stands outside of the disk that it forwards to, so that nothing below it can hang unseen. Calls that change nothing
go past it: readers pay nothing.

A thread notes its own call; the loop looks at all of them. Each step is one operation of a dict, so no lock is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Lock, get_ident
from time import perf_counter
from typing import TypeVar

from quorumlog.histogram import Histogram
from quorumlog_storage.files.disk import Buffer, Disk, File
from quorumlog_storage.files.names import LOG_SUFFIX
from quorumlog_storage.writer.stall_watch import OpenCall

T = TypeVar("T")

_calls: dict[int, OpenCall] = {}  # by thread
_lock = Lock()  # of the histograms: a sync takes thousands of times as long


def open_calls(threads: Iterable[int]) -> list[OpenCall]:
    """The calls that these threads are in now. threads: `threading.get_ident()` of each."""
    found = (_calls.get(thread) for thread in threads)
    return [call for call in found if call is not None]


class WatchedFile:
    """`quorumlog_storage.files.disk.File`."""

    __slots__ = ("_file", "_flushes", "_path", "close", "drop_cached", "past_cache", "pread", "size")

    def __init__(self, path: str, file: File, flushes: dict[str, Histogram] | None = None) -> None:
        """flushes: where syncs are counted, by log directory; None: they are not, as of a file that is no log's."""
        self._path, self._file, self._flushes = path, file, flushes
        self.pread, self.size, self.drop_cached, self.close = file.pread, file.size, file.drop_cached, file.close
        self.past_cache = file.past_cache  # for reading only

    def pwritev(self, buffers: Sequence[Buffer], position: int, *, read_soon: bool = True) -> int:
        thread = get_ident()
        _calls[thread] = OpenCall("write", self._path)
        try:
            return self._file.pwritev(buffers, position, read_soon=read_soon)
        finally:
            del _calls[thread]

    def begin_sync(self) -> None:
        _watched("write back", self._path, self._file.begin_sync)

    def sync(self) -> None:
        began_s = perf_counter()
        _watched("sync", self._path, self._file.sync)
        if self._flushes is not None:
            _observe(self._flushes, self._path, perf_counter() - began_s)

    def truncate(self, size: int) -> None:
        _watched("truncate", self._path, lambda: self._file.truncate(size))

    def reserve(self, size: int) -> None:
        _watched("reserve", self._path, lambda: self._file.reserve(size))


class WatchedDisk:
    """`quorumlog_storage.files.disk.Disk`."""

    def __init__(self, disk: Disk) -> None:
        self._disk, self.resources = disk, disk.resources
        self.list, self.exists, self.is_directory = disk.list, disk.exists, disk.is_directory
        self.read_bytes, self.free_bytes, self.total_bytes = disk.read_bytes, disk.free_bytes, disk.total_bytes
        self.lock = disk.lock

    def open(self, path: str, create: bool = False) -> WatchedFile:
        flushes = self.resources.flushes if path.endswith(LOG_SUFFIX) else None
        if not create:
            return WatchedFile(path, self._disk.open(path), flushes)
        return WatchedFile(path, _watched("create", path, lambda: self._disk.open(path, create=True)), flushes)

    def identity(self, path: str) -> tuple[int, int]:
        """Watched, though it changes nothing: a probe of the directory begins with it."""
        return _watched("look-up", path, lambda: self._disk.identity(path))

    def make_directory(self, path: str) -> None:
        _watched("make directory", path, lambda: self._disk.make_directory(path))

    def rename(self, old: str, new: str) -> None:
        _watched("rename", old, lambda: self._disk.rename(old, new))

    def copy_modified(self, source: str, target: str) -> None:
        _watched("set time", target, lambda: self._disk.copy_modified(source, target))

    def unlink(self, path: str) -> None:
        _watched("unlink", path, lambda: self._disk.unlink(path))

    def remove_tree(self, path: str) -> None:
        _watched("remove", path, lambda: self._disk.remove_tree(path))

    def sync_directory(self, path: str) -> None:
        _watched("sync directory", path, lambda: self._disk.sync_directory(path))


def _observe(flushes: dict[str, Histogram], path: str, seconds: float) -> None:
    """path: DIRECTORY/PARTITION/SEGMENT. Threads of a directory may sync at the same time."""
    directory = path.rsplit("/", 2)[0]
    with _lock:
        found = flushes.get(directory)
        if found is None:
            found = flushes[directory] = Histogram("disk")
        found.observe(seconds)


def _watched(op: str, path: str, call: Callable[[], T]) -> T:
    thread = get_ident()
    _calls[thread] = OpenCall(op, path)
    try:
        return call()
    finally:
        del _calls[thread]
