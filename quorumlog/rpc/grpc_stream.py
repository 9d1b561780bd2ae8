"""One ordered stream of a gRPC connection, from the calling side.

Requests are written in order, answers read in order, and it breaks as a whole. Only the reader ends it, so that the
answers that came before the end are still handed out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from quorumlog.nursery import Nursery
from quorumlog.rpc.calls import Call
from quorumlog.rpc.ordered_calls import OrderedCall, OrderedCalls
from quorumlog.rpc.transport import NotDelivered, OutcomeUnknown

Rpc = Any  # grpc.aio.StreamStreamCall of bytes
OpenRpc = Callable[[], Awaitable[Rpc | None]]  # None: there is no connection
OnEnd = Callable[["GrpcStream", bool], None]  # whether it broke, that is: had been opened

_BROKEN = (grpc.RpcError, grpc.aio.UsageError, grpc.aio.InternalError, asyncio.InvalidStateError)


class GrpcStream:
    """Lives until it breaks or its connection is closed; the connection then forgets it and opens another."""

    def __init__(self, call: Call, open_rpc: OpenRpc, nursery: Nursery, on_end: OnEnd) -> None:
        self.calls = OrderedCalls(call)
        self.name = call.method.name
        self._open_rpc, self._nursery, self._on_end = open_rpc, nursery, on_end
        self._rpc: Rpc | None = None
        self._ended = False
        nursery.start(self._run(), f"{self.name} stream")

    async def _run(self) -> None:
        reason = "it was cut off"  # what gRPC raises then is a CancelledError
        try:
            self._rpc = await self._open_rpc()
            if self._rpc is None:
                reason = "there is no connection"
                return
            self._nursery.start(self._write(self._rpc), f"{self.name} writer")
            reason = await self._read(self._rpc)
        finally:
            self.end(reason)

    async def _write(self, rpc: Rpc) -> None:
        try:
            while not self._ended:
                await self._write_one(rpc, await self.calls.next_to_send())
        except _BROKEN:
            pass  # the reader finds out too

    async def _write_one(self, rpc: Rpc, call: OrderedCall) -> None:
        """The end of the stream is told to those that wait for an answer; to one that waits for none, here."""
        try:
            await rpc.write(call.data)
            if not call.answered:
                call.succeed(None)
        finally:
            if not call.answered:
                call.fail(OutcomeUnknown(f"{self.name}: it was cut off while it was sent"))  # if it was

    async def _read(self, rpc: Rpc) -> str:
        """Hand out answers until there are no more; gives the reason."""
        try:
            while True:
                data = await rpc.read()
                if data is grpc.aio.EOF:
                    return "the peer ended it"
                if not self.calls.on_answer(data):
                    return "the peer answered what nobody asked"
        except _BROKEN as error:
            return _reason(error)

    def end(self, reason: str) -> None:
        """Idempotent."""
        if self._ended:
            return
        self._ended = True
        opened = self._rpc is not None
        if self._rpc is not None:
            self._rpc.cancel()
        text = f"{self.name}: {reason}"
        self.calls.fail(OutcomeUnknown(text) if opened else NotDelivered(text))
        self._on_end(self, opened)


def _reason(error: Exception) -> str:
    if isinstance(error, grpc.aio.AioRpcError):
        return f"{error.code().name}: {error.details()}"
    return f"{type(error).__name__}: {error}"
