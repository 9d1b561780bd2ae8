"""A turn's syncs side by side: all of them, each once, all ended before it returns, and errors in their places."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from storage.disk import DiskError
from storage.edge.syncs import SYNC_THREADS, SyncPool


@pytest.fixture
def pool() -> Iterator[SyncPool]:
    pool = SyncPool("/data")
    yield pool
    pool.close()


@pytest.mark.parametrize("count", [0, 1, 2, SYNC_THREADS + 1, 3 * SYNC_THREADS])
def test_every_sync_runs_once_and_has_ended(pool: SyncPool, count: int) -> None:
    done: list[int] = []
    assert pool.run([lambda number=number: done.append(number) for number in range(count)]) == [None] * count  # type: ignore[misc]
    assert sorted(done) == list(range(count))


def test_syncs_wait_together(pool: SyncPool) -> None:
    together = threading.Barrier(3, timeout=10)
    assert pool.run([lambda: together.wait() and None] * 3) == [None] * 3  # type: ignore[list-item]


def test_an_error_stands_where_its_sync_does_and_the_others_are_done(pool: SyncPool) -> None:
    done: list[int] = []

    def fails() -> None:
        raise DiskError("/data/a-0", "sync", 5, "broken")

    calls: list[Callable[[], None]] = [lambda: done.append(0), fails, lambda: done.append(2)]
    ends = pool.run(calls)
    assert [type(end) for end in ends] == [type(None), DiskError, type(None)]
    assert sorted(done) == [0, 2]


def test_a_lone_sync_takes_no_thread(pool: SyncPool) -> None:
    threads: list[str] = []
    pool.run([lambda: threads.append(threading.current_thread().name)])
    assert threads == [threading.current_thread().name]
