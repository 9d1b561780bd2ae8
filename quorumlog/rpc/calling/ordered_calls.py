"""The client end of an ordered stream: requests to be sent, and calls that wait for their answers.

Answers carry no number: the first answer belongs to the oldest call that expects one. So a call that has timed out
keeps its place. A call that times out before it was sent is not sent and fails with NotDelivered.
"""

from __future__ import annotations

import asyncio
from collections import deque

from quorumlog.errors import ApiError
from quorumlog.messages.decode_error import DecodeError
from quorumlog.rpc.answering import failure
from quorumlog.rpc.calling.timed_call import TimedCall
from quorumlog.rpc.calls import Call
from quorumlog.rpc.transport import NotDelivered, OutcomeUnknown, RpcError

MAX_UNSENT_CALLS = 10_000
MAX_UNSENT_BYTES = 256 * 1024 * 1024  # a single larger request is still accepted


class OrderedCall(TimedCall):
    """data: the encoded request. size_bytes: its size, which stays when `data` is released."""

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
        """Queue the request after all earlier ones."""
        call = OrderedCall(self._call.method.name, data, answered, timeout_ms)
        if len(self._unsent) >= MAX_UNSENT_CALLS or self._unsent_bytes >= MAX_UNSENT_BYTES:
            call.fail(NotDelivered(f"{self._call.method.name}: the send queue is full ({self._unsent_bytes} bytes)"))
            return call
        self._unsent.append(call)
        self._unsent_bytes += len(data)
        self._came.set()
        return call

    def take(self) -> OrderedCall | None:
        """The next call to send, now counted as sent; None if there is none."""
        while self._unsent:
            call = self._unsent.popleft()
            self._unsent_bytes -= call.size_bytes
            if call.is_over:  # it has timed out, or its caller was cancelled
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
        """False if no call expects an answer; the stream cannot be used any more."""
        if not self._waiting:
            return False
        call = self._waiting.popleft()
        try:
            call.succeed(self._call.codec.decode_response(data))
        except DecodeError as error:
            call.fail(OutcomeUnknown(f"the response cannot be decoded: {error}"))
        return True

    def fail(self, error: RpcError) -> None:
        """The stream has ended: fail every pending call with `error`."""
        for call in self._give_up():
            call.fail(error)

    def refuse(self, refusal: ApiError) -> None:
        """The peer does not serve this caller: answer every pending call with the refusal. It has seen none of them."""
        for call in self._give_up():
            if call.answered:
                call.succeed(failure(self._call.method, refusal))
            else:
                call.fail(NotDelivered(f"{self._call.method.name}: {refusal}"))

    def _give_up(self) -> list[OrderedCall]:
        calls = [*self._waiting, *self._unsent]
        self._waiting.clear()
        self._unsent.clear()
        self._unsent_bytes = 0
        return calls
