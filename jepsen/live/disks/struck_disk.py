"""A Disk around the production Disk that fails, hangs or fills up by the orders in a folder (edge_control.py)."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from jepsen.live.disks.edge_control import NEARLY, SLOWLY, STRUCK, Order, read_order, write_whole
from jepsen.live.plan import Blow, Step
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.files.disk import Buffer, DiskError, File

POLL_S = 0.05
HANG_POLL_S = 0.02
SLOW_S = 0.7  # longer than what a node calls slow, shorter than what it takes a directory offline for
NEARLY_PERCENT = 10
_NUMBERS = {Blow.FILL.name: errno.ENOSPC, Step.ENOSPC.name: errno.ENOSPC, Step.READ_ONLY.name: errno.EROFS}


class Strikes:
    """The order of now, and the calls that it struck. Read by all threads, changed by `follow` alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._order = Order()
        self._stopped = threading.Event()
        self._struck = 0  # += of threads may lose one; it is evidence, not an account

    def follow(self) -> None:
        """Until `stop`."""
        told = -1
        while not self._stopped.wait(POLL_S):
            self._order = read_order(self._folder)
            if told != self._struck:
                told = self._struck
                write_whole(self._folder / STRUCK, str(told))

    def stop(self) -> None:
        self._stopped.set()

    def follows(self, blow: Blow | None) -> bool:
        """Whether this is the order of now. None: no blow."""
        return self._order.blow == (blow.name if blow else "")

    def meet(self, path: str, op: str, takes_space: bool) -> None:
        """Called before each call that changes the disk. Raises DiskError, hangs, or returns at once."""
        if not self._order.blow or not path.startswith(self._order.directory):
            return
        if self._order.blow in (Blow.LOW.name, NEARLY) or (self._order.blow == Blow.FILL.name and not takes_space):
            return
        self._struck += 1
        if self._order.blow == SLOWLY:
            time.sleep(SLOW_S)
            return
        if self._order.blow == Blow.HANG.name:
            while self._order.blow == Blow.HANG.name:
                time.sleep(HANG_POLL_S)
            return
        number = _NUMBERS.get(self._order.blow, errno.EIO)
        raise DiskError(path, op, number, f"injected: {os.strerror(number)}")

    def left_bytes(self, path: str, total: int) -> int | None:
        """What the order leaves free of `total`; None if it says nothing about that."""
        left = (
            total * NEARLY_PERCENT // 100
            if self._order.blow == NEARLY
            else {Blow.FILL.name: 0, Blow.LOW.name: 1}.get(self._order.blow)
        )
        if left is None or not path.startswith(self._order.directory):
            return None
        self._struck += 1
        return left


class StruckFile:
    """`quorumlog_storage.files.disk.File`."""

    def __init__(self, strikes: Strikes, path: str, file: File) -> None:
        self._strikes, self._path, self._file = strikes, path, file
        self.pread = file.pread
        self.begin_sync = file.begin_sync
        self.reserve = file.reserve
        self.drop_cached = file.drop_cached
        self.past_cache = file.past_cache
        self.size = file.size
        self.close = file.close

    def pwritev(self, buffers: Sequence[Buffer], position: int, *, read_soon: bool = True) -> int:
        self._strikes.meet(self._path, "write", takes_space=True)
        return self._file.pwritev(buffers, position, read_soon=read_soon)

    def sync(self) -> None:
        self._strikes.meet(self._path, "sync", takes_space=False)
        self._file.sync()

    def truncate(self, size: int) -> None:
        self._strikes.meet(self._path, "truncate", takes_space=False)
        self._file.truncate(size)


class StruckDisk(RealDisk):
    """The production disk, struck where it changes something."""

    strikes: Strikes  # of this process

    def open(self, path: str, create: bool = False) -> StruckFile:  # type: ignore[override]  # it is a File, too
        if create and not self.exists(path):
            self.strikes.meet(path, "open", takes_space=True)
        return StruckFile(self.strikes, path, super().open(path, create))

    def make_directory(self, path: str) -> None:
        self.strikes.meet(path, "make directory", takes_space=True)
        super().make_directory(path)

    def rename(self, old: str, new: str) -> None:
        self.strikes.meet(old, "rename", takes_space=False)
        super().rename(old, new)

    def sync_directory(self, path: str) -> None:
        self.strikes.meet(path, "sync directory", takes_space=False)
        super().sync_directory(path)

    def free_bytes(self, path: str) -> int:
        left = self.strikes.left_bytes(path, super().total_bytes(path))
        return super().free_bytes(path) if left is None else left
