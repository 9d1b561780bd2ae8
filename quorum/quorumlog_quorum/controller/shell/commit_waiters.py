"""Answers that wait: first for their operation to end, then for the high watermark to pass its records.

Each is given exactly once: the response, a time-out, or an error because leadership was lost.

Answers that wrote no record: they leave only once this controller is known to have been active after the request.

A controller that is cut off learns late that another one is active. What it answers from its tip then may be stale:
a topic that it does not know exists, a setting that it need not change was changed. An answer to something that wrote
records waits for their commit, which proves the same. All others wait here for the quorum's confirmation
(quorumlog_quorum/raft/confirming.py), and for the commit of the tip that they were read from.
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


class ConfirmedReads:
    """high_watermark: exclusive. not_active: the error for answers that cannot be confirmed."""

    def __init__(self, high_watermark: Callable[[], Offset], not_active: Callable[[], ApiError]) -> None:
        self._high_watermark, self._not_active = high_watermark, not_active
        self._waiters = CommitWaiters()  # confirmed, but not all of their tip is committed
        self._unconfirmed: dict[int, Answer] = {}
        self._last = 0

    def __len__(self) -> int:
        return len(self._unconfirmed) + len(self._waiters)

    def add(self, confirmed: asyncio.Future[None], tip_end: Offset, outcome: Any, answer: Answer) -> None:
        """Calls must come in the order of `confirmed`, as the quorum confirms. tip_end: exclusive."""
        self._last += 1
        number = self._last
        self._unconfirmed[number] = answer
        confirmed.add_done_callback(lambda done: self._on_done(number, done, tip_end, outcome))

    def on_high_watermark(self, high_watermark: Offset) -> None:
        self._waiters.on_high_watermark(high_watermark)

    def fail_all(self) -> None:
        """Leadership is lost. A confirmation that comes later changes nothing."""
        unconfirmed, self._unconfirmed = self._unconfirmed, {}
        for answer in unconfirmed.values():
            answer.fail(self._not_active())
        self._waiters.fail_all(lambda _answer: self._not_active())

    def _on_done(self, number: int, done: asyncio.Future[None], tip_end: Offset, outcome: Any) -> None:
        error = None if done.cancelled() else done.exception()
        answer = self._unconfirmed.pop(number, None)
        if answer is None:
            return
        if error is not None:
            answer.fail(self._not_active())
        else:
            self._waiters.add(tip_end, outcome, answer)
            self._waiters.on_high_watermark(self._high_watermark())
