"""Which writes ask the kernel to cache nothing, and what is done if the kernel refuses."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from storage_samples import batch, disk_with_data, open_log

from jepsen.sim.machine.disk import SimFile
from quorumlog_storage.edge import page_cache
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.edge.page_cache import UNCACHED_FROM_BYTES
from quorumlog_storage.files.disk import Buffer, DiskError
from quorumlog_storage.segment.log_config import LogConfig

LARGE = bytes(UNCACHED_FROM_BYTES)


class Kernel:
    """The two system calls, watched; `error` is what a write that asks for no cache meets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> None:
        self.error = error
        self.flags: list[int] = []
        self.given_back: list[tuple[int, int]] = []
        self._pwritev = os.pwritev
        monkeypatch.setattr(os, "pwritev", self.pwritev)
        monkeypatch.setattr(os, "posix_fadvise", self.fadvise)

    def pwritev(self, fd: int, buffers: list[bytes], position: int, flags: int = 0) -> int:
        self.flags.append(flags)
        if flags and self.error is not None:
            raise self.error
        return self._pwritev(fd, buffers, position)

    def fadvise(self, _fd: int, start: int, length: int, advice: int) -> None:
        assert advice == os.POSIX_FADV_DONTNEED
        self.given_back.append((start, start + length))


linux_only = pytest.mark.skipif(sys.platform != "linux", reason="Linux's page cache")


@linux_only
def test_only_large_writes_not_read_soon_bypass_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch)
    file = RealDisk().open(f"{tmp_path}/log", create=True)
    file.pwritev([LARGE], 0)
    file.pwritev([LARGE[1:]], len(LARGE), read_soon=False)
    file.pwritev([LARGE[1:], b"x"], 2 * len(LARGE) - 1, read_soon=False)
    file.sync()
    assert kernel.flags == [0, 0, page_cache._RWF_DONTCACHE]
    assert kernel.given_back == []  # the kernel does it by itself


REFUSALS = [
    ("kernel", OSError(errno.EOPNOTSUPP, "")),
    ("file system", OSError(errno.EINVAL, "")),
    ("Python built for an older C library", NotImplementedError("pwritev2: flags unavailable on this platform")),
]


@linux_only
@pytest.mark.parametrize("refusal", [case[1] for case in REFUSALS], ids=[case[0] for case in REFUSALS])
def test_pages_are_freed_after_the_sync_if_the_kernel_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: Exception
) -> None:
    kernel = Kernel(monkeypatch, refusal)
    file = RealDisk().open(f"{tmp_path}/log", create=True)
    for turn in range(2):
        file.pwritev([LARGE], 2 * turn * len(LARGE), read_soon=False)
        file.pwritev([LARGE], (2 * turn + 1) * len(LARGE), read_soon=False)
        assert len(kernel.given_back) == turn, "before it was clean"
        file.sync()
    assert kernel.flags == [page_cache._RWF_DONTCACHE, 0, 0, 0, 0], "asked again after a refusal"
    assert kernel.given_back == [(0, 2 * len(LARGE)), (2 * len(LARGE), 4 * len(LARGE))]
    assert file.pread(0, 5 * len(LARGE)) == 4 * LARGE


@linux_only
def test_an_error_of_the_disk_is_no_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch, OSError(errno.ENOSPC, ""))
    file = RealDisk().open(f"{tmp_path}/log", create=True)
    with pytest.raises(DiskError, match="ENOSPC"):
        file.pwritev([LARGE], 0, read_soon=False)
    assert len(kernel.flags) == 1, "a write that failed was tried again"


@pytest.mark.parametrize(
    ("has_readers", "durability", "read_soon"),
    [(True, "synced", True), (False, "synced", False), (True, "replicated", True), (False, "replicated", False)],
)
def test_a_log_without_readers_says_so(
    monkeypatch: pytest.MonkeyPatch, has_readers: bool, durability: str, read_soon: bool
) -> None:
    """Also in a log that is never synced: the kernel begins to write such bytes at once, and then frees their pages."""
    disk = disk_with_data()
    log = open_log(disk, LogConfig(durable=durability == "synced"))
    log.has_readers = has_readers
    hints: list[bool] = []
    pwritev = SimFile.pwritev

    def watched(file: SimFile, buffers: Sequence[Buffer], position: int, *, read_soon: bool = True) -> int:
        hints.append(read_soon)
        return pwritev(file, buffers, position, read_soon=read_soon)

    monkeypatch.setattr(SimFile, "pwritev", watched)
    log.append([batch(0, [b"a"])])
    assert hints == [read_soon]
