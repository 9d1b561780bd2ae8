"""Answers that wait for the high watermark to pass the end of what they tell of.

In order of their ends, each answered exactly once: committed, timed out, or failed because leadership was lost (then
nobody knows whether the records survive).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Offset


@dataclass(slots=True)
class _Waiter:
    end_offset: Offset  # exclusive
    response: Any
    future: asyncio.Future[Any]
    timer: asyncio.TimerHandle


class CommitWaiters:
    def __init__(self) -> None:
        self._waiters: deque[_Waiter] = deque()

    def __len__(self) -> int:
        return len(self._waiters)

    def wait(self, end_offset: Offset, response: Any, timeout_ms: int) -> asyncio.Future[Any]:
        """A future of `response`, done when all below `end_offset` is committed. Ends never go back."""
        assert not self._waiters or self._waiters[-1].end_offset <= end_offset
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        late = ApiError(ErrorCode.REQUEST_TIMED_OUT, f"not committed within {timeout_ms} ms; it may still be")
        timer = loop.call_later(timeout_ms / 1000, _fail, future, late)
        self._waiters.append(_Waiter(end_offset, response, future, timer))
        return future

    def on_high_watermark(self, high_watermark: Offset) -> None:
        while self._waiters and self._waiters[0].end_offset <= high_watermark:
            waiter = self._waiters.popleft()
            waiter.timer.cancel()
            if not waiter.future.done():
                waiter.future.set_result(waiter.response)

    def fail_all(self, error_of: Callable[[Any], ApiError]) -> None:
        """error_of: what is told in place of a response."""
        waiters, self._waiters = self._waiters, deque()
        for waiter in waiters:
            waiter.timer.cancel()
            _fail(waiter.future, error_of(waiter.response))


def _fail(future: asyncio.Future[Any], error: ApiError) -> None:
    if not future.done():
        future.set_exception(ApiError(error.code, error.message))
