"""The disk of one process, which is struck at one of its calls.

It forwards to the machine's simulated disk, and knows of each call from which site of the production code it comes.
Once the process has ended, no call does anything: what unwinds then (a `finally`) is no part of the process.
"""

from __future__ import annotations

import errno
import functools
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from jepsen.crash.faults import CRASHES, ERRNO, Fault
from jepsen.crash.sites import SEAM, WRITE_FULLY, Site, production_sites
from jepsen.sim.machine.disk import SimDisk, SimFile, SimLock
from jepsen.sim.machine.disk_faults import Fail, Operation, ShortWrite
from jepsen.tree import ROOT
from quorumlog_storage.files.disk import Buffer, DiskError, FileMissing

T = TypeVar("T")

_ROOT = f"{ROOT}/"
_OURS = f"{_ROOT}jepsen/"


class ProcessEnded(BaseException):
    """Raised by every call of a process that has ended. A BaseException, so that no `except Exception` catches it."""


class UnknownSite(Exception):
    """A call that comes from no known site: jepsen/crash/sites.py does not see everything."""


class Call(NamedTuple):
    """number: 0 for the process's first call since `watch`."""

    number: int
    site: Site
    path: str


@dataclass(frozen=True, slots=True)
class Strike:
    """done: how much of the call is done before a crash, 0 to 1; only of a write a part can be."""

    fault: Fault
    done: float = 0.0


class StruckDisk:
    """`quorumlog_storage.files.disk.Disk`. Calls are noted, and may be struck, only while they are watched."""

    def __init__(self, disk: SimDisk) -> None:
        self.disk, self.resources = disk, disk.resources
        self.calls: list[Call] = []
        self.ended = False
        self.hung = threading.Event()  # a call hangs; its thread waits for `release`
        self.release = threading.Event()
        self.struck: Call | None = None
        self._watched = False
        self._at, self._strike = -1, Strike(Fault.KILL)

    def watch(self, at: int = -1, strike: Strike | None = None) -> None:
        """From now on calls are counted; number `at` is struck. at: -1 for none."""
        self.calls, self._watched, self._at = [], True, at
        self._strike = strike or self._strike

    def unwatch(self) -> None:
        self._watched = False

    def end(self) -> None:
        """The process ends, also where a call hangs."""
        self.ended = True
        self.release.set()

    # --- quorumlog_storage.files.disk.Disk ---

    def open(self, path: str, create: bool = False) -> StruckFile:
        return StruckFile(self, path, self.call("open", path, lambda: self.disk.open(path, create)))

    def list(self, path: str) -> list[str]:
        return self.call("list", path, lambda: self.disk.list(path))

    def exists(self, path: str) -> bool:
        return self.call("exists", path, lambda: self.disk.exists(path))

    def is_directory(self, path: str) -> bool:
        return self.call("is_directory", path, lambda: self.disk.is_directory(path))

    def identity(self, path: str) -> tuple[int, int]:
        return self.call("identity", path, lambda: self.disk.identity(path))

    def make_directory(self, path: str) -> None:
        self.call("make_directory", path, lambda: self.disk.make_directory(path))

    def rename(self, old: str, new: str) -> None:
        self.call("rename", old, lambda: self.disk.rename(old, new))

    def copy_modified(self, source: str, target: str) -> None:
        self.call("copy_modified", target, lambda: self.disk.copy_modified(source, target))

    def unlink(self, path: str) -> None:
        self.call("unlink", path, lambda: self.disk.unlink(path))

    def remove_tree(self, path: str) -> None:
        self.call("remove_tree", path, lambda: self.disk.remove_tree(path))

    def sync_directory(self, path: str) -> None:
        self.call("sync_directory", path, lambda: self.disk.sync_directory(path))

    def read_bytes(self, path: str) -> bytes:
        return self.call("read_bytes", path, lambda: self.disk.read_bytes(path))

    def free_bytes(self, path: str) -> int:
        return self.call("free_bytes", path, lambda: self.disk.free_bytes(path))

    def total_bytes(self, path: str) -> int:
        return self.call("total_bytes", path, lambda: self.disk.total_bytes(path))

    def lock(self, path: str) -> SimLock:
        return self.call("lock", path, lambda: self.disk.lock(path))

    # --- one call ---

    def call(self, method: str, path: str, act: Callable[[], T], part: Callable[[float], Any] | None = None) -> T:
        """Perform one call, unless it is struck. part: does a fraction of a write."""
        if self.ended:
            raise ProcessEnded
        if not self._watched:
            return act()
        call = Call(len(self.calls), _site_of(method), path)
        self.calls.append(call)
        if call.number != self._at:
            return act()
        self.struck = call
        if self._strike.fault in CRASHES:
            self._crash(act, part)
        return self._err(path, act)

    def _crash(self, act: Callable[[], Any], part: Callable[[float], Any] | None) -> None:
        done = self._strike.done
        if done >= 1:
            try:
                act()
            except DiskError:
                pass  # the process does not live to see it
        elif done > 0 and part is not None:
            part(done)
        if self._strike.fault is Fault.HANG:
            self._watched = False  # other threads of the process go on
            self.hung.set()
            self.release.wait()
        self.ended = True
        raise ProcessEnded

    def _err(self, path: str, act: Callable[[], T]) -> T:
        """The simulated disk knows what an error leaves behind: a failed sync loses what was to be synced."""
        fault = self._strike.fault

        def injected(operation: Operation) -> Fail | ShortWrite:
            return ShortWrite(operation.size // 2) if fault is Fault.SHORT_WRITE else Fail(ERRNO[fault])

        self.disk.faults = injected
        try:
            return act()
        except FileMissing as error:
            raise DiskError(path, error.op, ERRNO.get(fault, errno.ENOSPC), "injected") from error
        finally:
            self.disk.faults = lambda _: None


class StruckFile:
    """`quorumlog_storage.files.disk.File`."""

    def __init__(self, disk: StruckDisk, path: str, file: SimFile) -> None:
        self._disk, self._path, self._file = disk, path, file

    def pread(self, position: int, length: int) -> bytes:
        return self._disk.call("pread", self._path, lambda: self._file.pread(position, length))

    def pwritev(self, buffers: Sequence[Buffer], position: int, *, read_soon: bool = True) -> int:
        def part(done: float) -> None:
            data = b"".join(buffers)
            self._file.pwritev([data[: int(len(data) * done)]], position)

        return self._disk.call("pwritev", self._path, lambda: self._file.pwritev(buffers, position), part)

    def begin_sync(self) -> None:
        self._disk.call("begin_sync", self._path, self._file.begin_sync)

    def sync(self) -> None:
        self._disk.call("sync", self._path, self._file.sync)

    def truncate(self, size: int) -> None:
        self._disk.call("truncate", self._path, lambda: self._file.truncate(size))

    def reserve(self, size: int) -> None:
        self._disk.call("reserve", self._path, lambda: self._file.reserve(size))

    def drop_cached(self) -> None:
        self._disk.call("drop_cached", self._path, self._file.drop_cached)

    def past_cache(self) -> StruckFile:
        self._disk.call("past_cache", self._path, self._file.past_cache)
        return self

    def size(self) -> int:
        return self._disk.call("size", self._path, self._file.size)

    def close(self) -> None:
        self._disk.call("close", self._path, self._file.close)


def _site_of(method: str) -> Site:
    """The site of the call that is under way: the first frame that is neither jepsen's nor the seam's."""
    frame = sys._getframe(2)
    name = WRITE_FULLY if method == "pwritev" else method
    while frame.f_code.co_filename.startswith(_OURS) or frame.f_code.co_filename == f"{_ROOT}{SEAM}":
        assert frame.f_back is not None
        frame = frame.f_back
    return _known_site(frame.f_code.co_filename.removeprefix(_ROOT), frame.f_lineno, name)


@functools.cache
def _known_site(file: str, line: int, method: str) -> Site:
    site = production_sites().at(file, line, method)
    if site is None:
        raise UnknownSite(f"{file}:{line} calls {method} and is not known as a site")
    return site
