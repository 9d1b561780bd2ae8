"""Answers that wrote no record: they leave only once this controller is known to have been active after the request.

A controller that is cut off learns late that another one is active. What it answers from its tip then may be stale:
a topic that it does not know exists, a setting that it need not change was changed. An answer to something that wrote
records waits for their commit, which proves the same. All others wait here for the quorum's confirmation
(quorumlog_quorum/raft/confirming.py), and for the commit of the tip that they were read from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from quorumlog.errors import ApiError
from quorumlog.ids import Offset
from quorumlog_quorum.controller.shell.commit_waiters import Answer, CommitWaiters


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
