"""Syncs in the kernel's threads: what they cover, what becomes of their errors, and what is done without them."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.disk import DiskError
from storage.edge import kernel_syncs
from storage.edge.disk import RealDisk, RealFile
from storage.edge.kernel_syncs import MAX_UNDER_WAY, Begun, of_this_thread
from storage.edge.syncs import SYNC_THREADS, SYNCS_PER_THREAD, SyncPool

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or of_this_thread() is None, reason="the kernel syncs nothing in threads of its own"
)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The descriptors that our own threads synced."""
    found: list[int] = []
    fdatasync = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (found.append(fd), fdatasync(fd)))
    return found


def open_file(tmp_path: Path, name: str = "a") -> RealFile:
    return RealDisk().open(f"{tmp_path}/{name}", create=True)


def test_a_begun_sync_is_the_sync(tmp_path: Path, synced: list[int]) -> None:
    file = open_file(tmp_path)
    for turn in range(3):
        file.pwritev([b"hello"], 5 * turn)
        file.begin_sync()
        file.begin_sync()
        file.sync()
    assert synced == []
    assert file.pread(0, 20) == b"hello" * 3


CHANGES: list[tuple[str, Callable[[RealFile], object]]] = [
    ("written", lambda file: file.pwritev([b"more"], 5)),
    ("cut", lambda file: file.truncate(3)),
]


@pytest.mark.parametrize("change", [case[1] for case in CHANGES], ids=[case[0] for case in CHANGES])
def test_it_does_not_cover_what_came_later(
    change: Callable[[RealFile], object], tmp_path: Path, synced: list[int]
) -> None:
    file = open_file(tmp_path)
    file.pwritev([b"hello"], 0)
    file.begin_sync()
    change(file)
    file.begin_sync()  # the first one is still under way
    file.sync()
    assert len(synced) == 1


class FailingSyncs:
    """A kernel whose syncs all fail with this error."""

    def __init__(self, error: int) -> None:
        self.error, self.asked = error, 0

    def begin(self, _fd: int) -> Begun:
        return Begun(self, 1)  # type: ignore[arg-type]

    def wait(self, _number: int) -> int:
        self.asked += 1
        return self.error


@pytest.mark.parametrize("is_changed", [False, True])
def test_its_error_fails_every_later_sync(
    is_changed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synced: list[int]
) -> None:
    failing = FailingSyncs(errno.EIO)
    monkeypatch.setattr(kernel_syncs, "of_this_thread", lambda: failing)
    file = open_file(tmp_path)
    file.pwritev([b"hello"], 0)
    file.begin_sync()
    if is_changed:
        file.pwritev([b"more"], 5)
    for _ in range(2):
        with pytest.raises(DiskError) as caught:
            file.sync()
        assert caught.value.errno == errno.EIO
    assert failing.asked == 1
    assert synced == []


def test_many_are_under_way_and_any_thread_may_wait(tmp_path: Path) -> None:
    files = [open_file(tmp_path, str(number)) for number in range(20)]
    for file in files:
        file.pwritev([b"hello"], 0)
        file.begin_sync()
    queue = of_this_thread()
    assert queue is not None and queue._under_way == 20
    threads = [threading.Thread(target=file.sync) for file in reversed(files)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert (queue._under_way, queue._ended) == (0, {})


def test_a_file_that_hangs_is_waited_for_by_its_own_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = of_this_thread()
    assert queue is not None
    takes: list[tuple[int, bool]] = []
    events = [[], [1], [2]]  # the first wait ends without any

    def take(count: int, timeout: object) -> None:
        takes.append((count, timeout is not None))
        queue._ended.update(dict.fromkeys(events.pop(0), 0))

    monkeypatch.setattr(queue, "_take", take)
    monkeypatch.setattr(queue, "_under_way", 2)
    assert queue.wait(1) == 0
    assert takes == [(2, True), (1, False)]
    assert queue.wait(2) == 0


def test_what_the_kernel_refuses_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = of_this_thread()
    assert queue is not None
    assert queue.begin(-1) is None
    monkeypatch.setattr(queue, "_under_way", MAX_UNDER_WAY)
    file = open_file(tmp_path)
    file.begin_sync()
    assert file._begun is None


def test_a_file_that_was_not_begun_is_synced_by_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synced: list[int]
) -> None:
    monkeypatch.setattr(kernel_syncs, "of_this_thread", lambda: None)
    file = open_file(tmp_path)
    file.begin_sync()
    file.sync()
    assert len(synced) == 1


def test_a_thread_that_ends_leaves_nothing_behind() -> None:
    """The machine has a limit on all queues together, far below this number of threads."""
    lacking: list[int] = []
    limit = int(Path("/proc/sys/fs/aio-max-nr").read_text())

    def uses_it(number: int) -> None:
        if of_this_thread() is None:
            lacking.append(number)

    for number in range(min(1_000, 2 * limit // MAX_UNDER_WAY)):
        thread = threading.Thread(target=uses_it, args=(number,))
        thread.start()
        thread.join()
    assert lacking == []


@pytest.mark.parametrize("numbers", [None, (-1, -1, -1, -1)], ids=["unknown machine", "unknown call"])
def test_without_it_there_is_no_queue(
    numbers: tuple[int, int, int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_syncs, "_numbers", numbers)
    assert kernel_syncs._make() is None


@pytest.mark.parametrize(
    ("count", "alone"), [(SYNC_THREADS * SYNCS_PER_THREAD, True), (MAX_UNDER_WAY + 1, False)], ids=["few", "too many"]
)
def test_syncs_that_the_kernel_has_begun_take_no_thread_of_ours(count: int, alone: bool) -> None:
    pool = SyncPool("/data")
    pool.run([lambda: None] * count)
    assert (pool.threads == []) == alone
    pool.close()
