"""The calling end of an ordered stream: requests that wait to be sent, and calls that wait for their answers.

Answers carry no number: the first answer belongs to the oldest call that expects one. A call that has timed out keeps
its place for that reason. A call whose time is up before it was sent is not sent at all, and says NotDelivered.
"""

from __future__ import annotations

import asyncio
from collections import deque

from quorumlog.messages.decode_error import DecodeError
from quorumlog.rpc.calls import Call
from quorumlog.rpc.timed_call import TimedCall
from quorumlog.rpc.transport import NotDelivered, OutcomeUnknown, RpcError

MAX_UNSENT_CALLS = 10_000
MAX_UNSENT_BYTES = 256 * 1024 * 1024  # a single larger request is still let in


class OrderedCall(TimedCall):
    """data: the encoded request. size_bytes: its size, also when it is forgotten."""

    __slots__ = ("data", "size_bytes")

    def __init__(self, name: str, data: bytes, answered: bool, timeout_ms: int) -> None:
        super().__init__(name, answered, timeout_ms)
        self.data, self.size_bytes = data, len(data)

    def forget_request(self) -> None:
        self.data = b""


class OrderedCalls:
    def __init__(self, call: Call) -> None:
        self._call = call
        self._unsent: deque[OrderedCall] = deque()
        self._unsent_bytes = 0
        self._waiting: deque[OrderedCall] = deque()
        self._came = asyncio.Event()

    def add(self, data: bytes, answered: bool, timeout_ms: int) -> OrderedCall:
        """Take the request in, behind all that were added before."""
        call = OrderedCall(self._call.method.name, data, answered, timeout_ms)
        if len(self._unsent) >= MAX_UNSENT_CALLS or self._unsent_bytes >= MAX_UNSENT_BYTES:
            call.fail(NotDelivered(f"{self._call.method.name}: too much waits to be sent ({self._unsent_bytes} bytes)"))
            return call
        self._unsent.append(call)
        self._unsent_bytes += len(data)
        self._came.set()
        return call

    def take(self) -> OrderedCall | None:
        """The next call to send, now counted as sent; None: nothing waits."""
        while self._unsent:
            call = self._unsent.popleft()
            self._unsent_bytes -= call.size_bytes
            if call.result.done():  # its time is up, or its caller has left
                continue
            call.sent = True
            if call.answered:
                self._waiting.append(call)
            return call
        return None

    async def next_to_send(self) -> OrderedCall:
        while True:
            call = self.take()
            if call is not None:
                return call
            self._came.clear()
            await self._came.wait()

    def on_answer(self, data: bytes) -> bool:
        """False: nobody has asked; the stream cannot be trusted any more."""
        if not self._waiting:
            return False
        call = self._waiting.popleft()
        try:
            call.succeed(self._call.codec.decode_response(data))
        except DecodeError as error:
            call.fail(OutcomeUnknown(f"the answer cannot be read: {error}"))
        return True

    def fail(self, error: RpcError) -> None:
        """The stream is over: every call that still waits ends with `error`."""
        calls = [*self._waiting, *self._unsent]
        self._waiting.clear()
        self._unsent.clear()
        self._unsent_bytes = 0
        for call in calls:
            call.fail(error)
