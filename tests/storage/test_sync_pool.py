"""A turn's syncs, few or many: all of them, each once, all ended before it returns, and errors in their places."""

from __future__ import annotations

import ctypes
import errno
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from quorumlog_storage.edge import page_cache
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.edge.worker import SYNC_THREADS, SYNCS_PER_THREAD, SyncPool
from quorumlog_storage.files.disk import DiskError


@pytest.fixture
def pool() -> Iterator[SyncPool]:
    pool = SyncPool("/data")
    yield pool
    pool.close()


@pytest.mark.parametrize(
    "count", [0, 1, 2, SYNCS_PER_THREAD, SYNCS_PER_THREAD + 1, 3 * SYNC_THREADS * SYNCS_PER_THREAD - 1]
)
def test_every_sync_runs_once_and_has_ended(pool: SyncPool, count: int) -> None:
    done: list[int] = []
    assert pool.run([partial(done.append, number) for number in range(count)]) == [None] * count
    assert sorted(done) == list(range(count))


def test_many_syncs_wait_together(pool: SyncPool) -> None:
    together = threading.Barrier(3, timeout=10)

    def waits() -> None:
        together.wait()

    assert pool.run([waits] * (3 * SYNCS_PER_THREAD)) == [None] * (3 * SYNCS_PER_THREAD)


@pytest.mark.parametrize("fine", [1, SYNCS_PER_THREAD, 5 * SYNCS_PER_THREAD])
def test_an_error_stands_where_its_sync_does_and_the_others_are_done(pool: SyncPool, fine: int) -> None:
    done: list[int] = []

    def fails() -> None:
        raise DiskError("/data/a-0", "sync", 5, "broken")

    calls: list[Callable[[], None]] = [partial(done.append, number) for number in range(fine)]
    ends = pool.run([*calls, fails, *calls])
    assert [type(end) for end in ends] == [type(None)] * fine + [DiskError] + [type(None)] * fine
    assert sorted(done) == sorted([*range(fine), *range(fine)])


def test_a_few_syncs_take_no_thread(pool: SyncPool) -> None:
    threads: list[str] = []
    pool.run([lambda: threads.append(threading.current_thread().name)] * SYNCS_PER_THREAD)
    assert threads == [threading.current_thread().name] * SYNCS_PER_THREAD


@pytest.mark.parametrize("begin", [page_cache.begin_writeback, page_cache._find(), page_cache._nothing])
def test_a_begun_file_is_what_it_was(
    begin: Callable[[int], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorumlog_storage.edge.disk.begin_writeback", begin)
    file = RealDisk().open(f"{tmp_path}/a", create=True)
    file.begin_sync()
    file.pwritev([b"hello"], 0)
    file.begin_sync()
    file.sync()
    assert file.pread(0, 9) == b"hello"
    file.close()
    file.begin_sync()  # says nothing, as a hint does


def test_what_was_lost_at_the_beginning_fails_every_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RealDisk().open(f"{tmp_path}/a", create=True)
    for error in (errno.EIO, 0):  # no later success makes it good
        monkeypatch.setattr("quorumlog_storage.edge.disk.begin_writeback", lambda _fd, error=error: error)
        file.begin_sync()
        with pytest.raises(DiskError):
            file.sync()


@pytest.mark.parametrize(("error", "code"), [(errno.EIO, errno.EIO), (errno.ENOSPC, errno.ENOSPC), (errno.ESPIPE, 0)])
@pytest.mark.skipif(sys.platform != "linux", reason="Linux's system call")
def test_which_errors_of_the_call_are_reported(error: int, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_what: int) -> int:
        ctypes.set_errno(error)
        return -1

    monkeypatch.setattr("ctypes.CDLL", lambda _name, use_errno: SimpleNamespace(sync_file_range=fails))
    assert page_cache._find()(3) == code


@pytest.mark.parametrize("error", [OSError, AttributeError])
def test_nothing_is_begun_where_the_library_has_no_such_call(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_name: None, use_errno: bool) -> None:
        raise error

    monkeypatch.setattr("ctypes.CDLL", fails)
    assert page_cache._find() is page_cache._nothing
