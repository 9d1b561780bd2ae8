"""Jobs that come by the thousand, such as opening logs: a few at a time, so that appends get their turns in between.

Opening a log takes 3 ms of syncs. A thousand of them in the worker's queue, for a new topic, once delayed every append
behind them for seconds, until all brokers were fenced.

Background jobs keep their order among themselves, except that those of internal topics go first: while one waits for
its log, groups and transactions of clients wait, too, and a new topic may have thousands of logs to make.
Each is performed after the jobs that were in the worker's queue when it entered that queue.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from quorumlog.errors import ApiError

MAX_UNDER_WAY = 4  # the next appends wait behind so many at most; enough to keep the worker at work
RETRY_MS = 50  # where the worker's queue is full

Callback = Callable[[Any], None]


class Call(Protocol):
    """`DirectoryQueue.call`."""

    def __call__(self, work: Callable[[], Any], *, done: Callback, failed: Callback) -> None: ...


_Job = tuple[Call, Callable[[], Any], Callback, Callback]


class BackgroundJobs:
    def __init__(self, call: Call, is_failed: Callable[[], bool]) -> None:
        """is_failed: the directory takes no more work; jobs that wait then fail."""
        self._call, self._is_failed = call, is_failed
        self._waiting: deque[_Job] = deque()
        self._first: deque[_Job] = deque()  # before those
        self._under_way = 0
        self._submitting = False
        self._hurried = False
        self._retry: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Jobs that are not in the worker's queue yet."""
        return len(self._waiting) + len(self._first)

    def add(
        self,
        work: Callable[[], Any],
        done: Callback,
        failed: Callback,
        call: Call | None = None,
        *,
        first: bool = False,
    ) -> None:
        """One of done and failed is called; failed perhaps before this returns. call: another way to the worker.

        first: before those that wait without it. No job about the same files may wait among those.
        """
        (self._first if first else self._waiting).append((call or self._call, work, done, failed))
        self._submit()

    def hurry(self) -> None:
        """The directory is about to be closed: from now on every job enters the worker's queue at once."""
        self._hurried = True
        self._submit()

    def drop(self, reason: ApiError) -> None:
        """Fail the jobs that have not entered the worker's queue."""
        waiting = (*self._first, *self._waiting)
        self._first.clear()
        self._waiting.clear()
        for _, _, _, failed in waiting:
            failed(reason)

    def _submit(self) -> None:
        """Not recursive: `failed` may add a job at once, by the thousand, and the loop below takes that job too."""
        if self._submitting:
            return
        self._submitting = True
        try:
            self._submit_all()
        finally:
            self._submitting = False

    def _submit_all(self) -> None:
        while (waiting := self._first or self._waiting) and (self._hurried or self._under_way < MAX_UNDER_WAY):
            call, work, done, failed = waiting[0]
            try:
                call(work, done=partial(self._ended, done), failed=partial(self._ended, failed))
            except ApiError as error:
                if not self._hurried and not self._is_failed():
                    self._try_again()
                    return
                waiting.popleft()
                failed(error)
            else:
                waiting.popleft()
                self._under_way += 1

    def _ended(self, callback: Callback, what: Any) -> None:
        self._under_way -= 1
        callback(what)
        self._submit()

    def _try_again(self) -> None:
        if self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(RETRY_MS / 1000, self._on_retry)

    def _on_retry(self) -> None:
        self._retry = None
        self._submit()
