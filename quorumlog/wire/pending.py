"""Calls of one socket, from the calling side: those that wait to be sent, and those that wait for their answers."""

from __future__ import annotations

from typing import Any

from quorumlog.rpc.calls import expects_answer
from quorumlog.rpc.timed_call import TimedCall
from quorumlog.wire.apis import BY_REQUEST
from quorumlog.wire.codec import Asked


class PendingCall(TimedCall):
    """asked: what the answer is read by, while the call is sent and has none."""

    __slots__ = ("asked", "correlation_id", "request")

    def __init__(self, request: Any, timeout_ms: int) -> None:
        super().__init__(BY_REQUEST[type(request)].method.name, expects_answer(request), timeout_ms)
        self.request: Any = request
        self.asked: Asked | None = None
        self.correlation_id = -1

    def forget_request(self) -> None:
        self.request = self.asked = None
