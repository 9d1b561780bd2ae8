"""Calls of one socket, from the calling side: those that wait to be sent, and those that wait for their answers."""

from __future__ import annotations

import asyncio
from typing import Any

from quorumlog.rpc.calls import expects_answer
from quorumlog.rpc.transport import NotDelivered, OutcomeUnknown, RpcError
from quorumlog.wire.apis import BY_REQUEST
from quorumlog.wire.codec import Asked


class PendingCall:
    """One call on its way. `result` ends exactly once: by its answer, its deadline or its socket's end."""

    __slots__ = ("_name", "_timeout_ms", "_timer", "answered", "asked", "correlation_id", "request", "result", "sent")

    def __init__(self, request: Any, timeout_ms: int) -> None:
        loop = asyncio.get_running_loop()
        self.request: Any = request
        self.asked: Asked | None = None  # while it is sent and has no answer
        self.correlation_id = -1
        self.answered, self.sent = expects_answer(request), False
        self.result: asyncio.Future[Any] = loop.create_future()
        self._name, self._timeout_ms = BY_REQUEST[type(request)].method.name, timeout_ms
        self._timer = loop.call_later(timeout_ms / 1000, self._on_deadline)

    async def wait(self) -> Any:
        return await self.result

    def succeed(self, response: Any) -> None:
        self._end()
        if not self.result.done():
            self.result.set_result(response)

    def fail(self, error: RpcError) -> None:
        self._end()
        if not self.result.done():
            self.result.set_exception(error)

    def fail_by(self, reason: str) -> None:
        """The socket is over: what is known of this call depends on whether it was sent."""
        text = f"{self._name}: {reason}"
        self.fail(OutcomeUnknown(text) if self.sent else NotDelivered(text))

    def _end(self) -> None:
        self._timer.cancel()
        self.request = self.asked = None  # a call that keeps its place after its time keeps no records

    def _on_deadline(self) -> None:
        text = f"no answer within {self._timeout_ms} ms"
        self.fail_by(text if self.sent else f"{text}; it was not sent")
