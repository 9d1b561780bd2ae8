"""One pending call, the same over every transport, and how it ends."""

from __future__ import annotations

import asyncio
from typing import Any

from quorumlog.rpc.transport import NotDelivered, OutcomeUnknown


class TimedCall:
    """`result` ends exactly once: with the answer, at the deadline, or when the connection or stream ends.

    answered: False: no answer comes, and the call ends when it is sent. sent: from then on failures are OutcomeUnknown.
    """

    __slots__ = ("_timeout_ms", "_timer", "answered", "name", "result", "sent")

    def __init__(self, name: str, answered: bool, timeout_ms: int) -> None:
        loop = asyncio.get_running_loop()
        self.name, self.answered, self.sent = name, answered, False
        self.result: asyncio.Future[Any] = loop.create_future()
        self._timeout_ms = timeout_ms
        self._timer = loop.call_later(timeout_ms / 1000, self._on_deadline)

    async def wait(self) -> Any:
        return await self.result

    def succeed(self, response: Any) -> None:
        self._end()
        if not self.result.done():
            self.result.set_result(response)

    def fail(self, error: Exception) -> None:
        """error: an RpcError; another type means an invalid request."""
        self._end()
        if not self.result.done():
            self.result.set_exception(error)

    def fail_by(self, reason: str) -> None:
        """Fails with OutcomeUnknown if the call was sent, otherwise with NotDelivered."""
        text = f"{self.name}: {reason}"
        self.fail(OutcomeUnknown(text) if self.sent else NotDelivered(text))

    def forget_request(self) -> None:
        """Release the request's memory. A call that has timed out keeps only its place."""
        raise NotImplementedError

    def _end(self) -> None:
        self._timer.cancel()
        self.forget_request()

    def _on_deadline(self) -> None:
        text = f"no answer within {self._timeout_ms} ms"
        self.fail_by(text if self.sent else f"{text}; it was not sent")
