"""Answers that wait: first for their operation to end, then for the high watermark to pass its records.

Each is given exactly once: the response, a time-out, or an error because leadership was lost.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Offset


class Answer:
    """retry_safe: see requests.py."""

    def __init__(self, timeout_ms: int, *, retry_safe: bool) -> None:
        self.retry_safe = retry_safe
        loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = loop.create_future()
        late = ApiError(ErrorCode.REQUEST_TIMED_OUT, f"not committed within {timeout_ms} ms; it may still be")
        self._timer = loop.call_later(timeout_ms / 1000, self.fail, late)

    @property
    def given(self) -> bool:
        """Whether the caller has its answer, or has stopped waiting for one."""
        return self.future.done()

    def give(self, response: Any) -> None:
        self._timer.cancel()
        if not self.future.done():
            self.future.set_result(response)

    def settle(self, outcome: Any) -> None:
        """outcome: the response, or the ApiError that refuses the request."""
        if isinstance(outcome, ApiError):
            self.fail(outcome)
        else:
            self.give(outcome)

    def fail(self, error: ApiError) -> None:
        self._timer.cancel()
        if not self.future.done():
            self.future.set_exception(ApiError(error.code, error.message))


class _Waiting(NamedTuple):
    end_offset: Offset  # exclusive
    outcome: Any  # as of Answer.settle
    answer: Answer


class CommitWaiters:
    """Answers of operations whose records are all appended, ordered by the end offset of those records."""

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, end_offset: Offset, outcome: Any, answer: Answer) -> None:
        """Give `outcome` when all below `end_offset` is committed. Ends never go back."""
        assert not self._waiting or self._waiting[-1].end_offset <= end_offset
        self._waiting.append(_Waiting(end_offset, outcome, answer))

    def on_high_watermark(self, high_watermark: Offset) -> None:
        while self._waiting and self._waiting[0].end_offset <= high_watermark:
            waiting = self._waiting.popleft()
            waiting.answer.settle(waiting.outcome)

    def fail_all(self, error_of: Callable[[Answer], ApiError]) -> None:
        waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            one.answer.fail(error_of(one.answer))
