"""One pending call, the same over every transport, and how it ends."""

from __future__ import annotations

import asyncio
from typing import Any

from quorumlog.rpc.transport import NotDelivered, OnEnded, OutcomeUnknown


class TimedCall:
    """It ends exactly once: with the answer, at the deadline, or when the connection or stream ends.

    answered: False: no answer comes, and the call ends when it is sent. sent: from then on failures are OutcomeUnknown.
    waits_for: why its answer may be late, where the peer has said so.
    """

    __slots__ = ("_ended", "_is_over", "_result", "_timeout_ms", "_timer", "answered", "name", "sent", "waits_for")

    def __init__(self, name: str, answered: bool, timeout_ms: int, ended: OnEnded | None = None) -> None:
        """ended: called with the outcome; None: somebody awaits `wait`."""
        loop = asyncio.get_running_loop()
        self.name, self.answered, self.sent = name, answered, False
        self.waits_for = ""
        self._ended, self._is_over = ended, False
        self._result: asyncio.Future[Any] | None = loop.create_future() if ended is None else None
        self._timeout_ms = timeout_ms
        self._timer = loop.call_later(timeout_ms / 1000, self._on_deadline)

    @property
    def is_over(self) -> bool:
        """It has ended, or whoever waits for it was cancelled."""
        return self._is_over or (self._result is not None and self._result.done())

    async def wait(self) -> Any:
        assert self._result is not None, "its outcome comes by a callback"
        return await self._result

    def succeed(self, response: Any) -> None:
        self._end(response, None)

    def fail(self, error: Exception) -> None:
        """error: an RpcError; another type means an invalid request."""
        self._end(None, error)

    def fail_by(self, reason: str) -> None:
        """Fails with OutcomeUnknown if the call was sent, otherwise with NotDelivered."""
        text = f"{self.name}: {reason}"
        self.fail(OutcomeUnknown(text) if self.sent else NotDelivered(text))

    def give_up(self) -> None:
        """End without telling the callback."""
        self._ended = None
        self._end(None, None)

    def forget_request(self) -> None:
        """Release the request's memory. A call that has timed out keeps only its place."""
        raise NotImplementedError

    def _end(self, response: Any, error: Exception | None) -> None:
        self._timer.cancel()
        self.forget_request()
        if self.is_over:
            return
        self._is_over = True
        if self._ended is not None:
            ended, self._ended = self._ended, None
            ended(response, error)
        elif self._result is not None:
            if error is None:
                self._result.set_result(response)
            else:
                self._result.set_exception(error)

    def _on_deadline(self) -> None:
        text = f"no answer within {self._timeout_ms} ms{self.waits_for}"
        self.fail_by(text if self.sent else f"{text}; it was not sent")
