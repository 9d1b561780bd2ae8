"""A call of the calling side: it waits to be sent, then for its response."""

from __future__ import annotations

from typing import Any

from quorumlog.rpc.calls import expects_answer
from quorumlog.rpc.timed_call import TimedCall
from quorumlog.rpc.transport import OnEnded
from quorumlog.wire.apis import BY_REQUEST
from quorumlog.wire.codec import WireRequest


class PendingCall(TimedCall):
    """wire_request: set while the call waits for its response, which is read by it."""

    __slots__ = ("correlation_id", "request", "wire_request")

    def __init__(self, request: Any, timeout_ms: int, ended: OnEnded | None = None) -> None:
        super().__init__(BY_REQUEST[type(request)].method.name, expects_answer(request), timeout_ms, ended)
        self.request: Any = request
        self.wire_request: WireRequest | None = None
        self.correlation_id = -1

    def forget_request(self) -> None:
        self.request = self.wire_request = None
