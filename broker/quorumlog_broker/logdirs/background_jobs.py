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
from dataclasses import dataclass
from typing import Any

from quorumlog.errors import ApiError
from quorumlog_storage.log.log import Log

MAX_UNDER_WAY = 4  # the next appends wait behind so many at most; enough to keep the worker at work
RETRY_MS = 50  # where the worker's queue is full


def _nobody() -> None:
    """Nobody counts it."""


@dataclass(slots=True, eq=False)
class Work:
    """A job of a log directory that somebody awaits. It ends once, whether its waiter is still there or not.

    perform: on a thread of the directory. logs: whose syncs `perform` leaves to the end of the writer's turn, and the
    answer comes after that; it may add to them. on_ended: told on the loop, after its end.
    """

    perform: Callable[[], Any]
    answer: asyncio.Future[Any]
    logs: list[Log] | None = None
    on_ended: Callable[[], None] = _nobody

    def end(self, value: Any) -> None:
        if not self.answer.done():
            self.answer.set_result(value)
        self.on_ended()

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # nobody may be waiting for it
        self.on_ended()


class BackgroundJobs:
    def __init__(self, enter: Callable[[Work], None], is_failed: Callable[[], bool]) -> None:
        """enter: puts a job into the worker's queue; raises ApiError where that takes none.

        is_failed: the directory takes no more work; jobs that wait then fail.
        """
        self._enter, self._is_failed = enter, is_failed
        self._waiting: deque[Work] = deque()
        self._first: deque[Work] = deque()  # before those
        self._under_way = 0
        self._hurried = False
        self._retry: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Jobs that are not in the worker's queue yet."""
        return len(self._waiting) + len(self._first)

    def add(self, work: Work, *, first: bool = False) -> None:
        """first: before those that wait without it. No job about the same files may wait among those."""
        (self._first if first else self._waiting).append(work)
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
        for work in waiting:
            work.fail(reason)

    def _submit(self) -> None:
        while (waiting := self._first or self._waiting) and (self._hurried or self._under_way < MAX_UNDER_WAY):
            work = waiting[0]
            try:
                self._enter(work)
            except ApiError as error:
                if not self._hurried and not self._is_failed():
                    self._try_again()
                    return
                waiting.popleft()
                work.fail(error)
            else:
                waiting.popleft()
                self._under_way += 1
                work.on_ended = self._ended

    def _ended(self) -> None:
        self._under_way -= 1
        self._submit()

    def _try_again(self) -> None:
        if self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(RETRY_MS / 1000, self._on_retry)

    def _on_retry(self) -> None:
        self._retry = None
        self._submit()
