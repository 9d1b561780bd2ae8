"""Runs jobs side by side, in the order in which they were given."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from jepsen.pool.runner import Runner
from jepsen.sim.job import Job, broken

_AHEAD = 2  # jobs that `results` has begun or queued, for each process: a long one must not make the others wait

Pending = Future[dict[str, Any]]
_Kind = tuple[Path | None, bool]  # folder and noting of the jobs that one runner takes


class Pool:
    """Close it: it ends all processes."""

    def __init__(self, processes: int, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._threads = ThreadPoolExecutor(processes)  # each waits for its runner
        self._own = threading.local()
        self._lock = threading.Lock()
        self._runners: list[Runner] = []
        self._is_closed = False

    def begin(self, job: Job) -> Pending:
        return self._threads.submit(self._run, job)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            runners, self._runners = self._runners, []
        for runner in runners:
            runner.close()
        self._threads.shutdown(cancel_futures=True)

    def _run(self, job: Job) -> dict[str, Any]:
        runner = self._runner((job.folder, job.noting))
        return broken("the pool is closed") if runner is None else runner.run(job)

    def _runner(self, kind: _Kind) -> Runner | None:
        """This thread's. None after `close`."""
        own: dict[_Kind, Runner] = self._own.__dict__.setdefault("runners", {})
        with self._lock:
            if self._is_closed:
                return None
            if kind not in own:
                own[kind] = Runner(*kind, self._environment)
                self._runners.append(own[kind])
            return own[kind]


def results(
    jobs: Iterator[Job], processes: int, environment: Mapping[str, str]
) -> Generator[tuple[Job, dict[str, Any]], None, None]:
    """Each job with its result, in the order of the jobs. Closing the iterator kills running jobs."""
    pool, begun = Pool(processes, environment), deque[tuple[Job, Pending]]()
    try:
        for job in jobs:
            begun.append((job, pool.begin(job)))
            if len(begun) >= processes * _AHEAD:
                yield _first(begun)
        while begun:
            yield _first(begun)
    finally:
        pool.close()


def _first(begun: deque[tuple[Job, Pending]]) -> tuple[Job, dict[str, Any]]:
    job, pending = begun.popleft()
    return job, pending.result()
