"""One ordered stream of a gRPC connection, client side.

Requests are written in order, answers are read in order, and the stream fails as a whole. Only the reader ends it, so
that answers received before the end are still delivered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import grpc

from quorumlog.errors import ApiError
from quorumlog.nursery import Nursery
from quorumlog.proof.call_proof import StreamProof
from quorumlog.rpc.calls import Call
from quorumlog.rpc.ordered_calls import OrderedCall, OrderedCalls
from quorumlog.rpc.transport import NotDelivered, OutcomeUnknown

Rpc = Any  # grpc.aio.StreamStreamCall of bytes


class Opened(NamedTuple):
    """proof: None: the messages carry none."""

    rpc: Rpc
    proof: StreamProof | None


# None: there is no connection. Raises ApiError if the peer refuses this node, or NotDelivered.
OpenRpc = Callable[[], Awaitable[Opened | None]]
OnEnd = Callable[["GrpcStream", bool], None]  # bool: True if the stream had been open

UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED
_BROKEN = (grpc.RpcError, grpc.aio.UsageError, grpc.aio.InternalError, asyncio.InvalidStateError)


class GrpcStream:
    """Lives until it breaks or its connection is closed. The connection then drops it and opens another."""

    def __init__(self, call: Call, open_rpc: OpenRpc, nursery: Nursery, on_end: OnEnd) -> None:
        self.calls = OrderedCalls(call)
        self.name, self.request = call.method.name, call.method.request
        self._open_rpc, self._nursery, self._on_end = open_rpc, nursery, on_end
        self._rpc: Rpc | None = None
        self._ended = False
        self.is_unknown = False  # the peer does not know the call; nothing was carried out
        nursery.start(self._run(), f"{self.name} stream")

    async def _run(self) -> None:
        reason = "it was cut off"  # gRPC raises CancelledError in that case
        try:
            opened = await self._open_rpc()
            if opened is None:
                reason = "there is no connection"
                return
            self._rpc = opened.rpc
            self._nursery.start(self._write(opened), f"{self.name} writer")
            reason = await self._read(opened.rpc)
        except ApiError as refusal:
            reason = "the peer refuses this node"
            self.calls.refuse(refusal)
        except NotDelivered as error:
            reason = str(error)
        finally:
            self.end(reason)

    async def _write(self, opened: Opened) -> None:
        try:
            while not self._ended:
                await self._write_one(opened, await self.calls.next_to_send())
        except _BROKEN:
            pass  # the reader gets the error too

    async def _write_one(self, opened: Opened, call: OrderedCall) -> None:
        """Ends a call without an answer here; a call with an answer ends with its answer or with the stream."""
        try:
            await opened.rpc.write(call.data if opened.proof is None else opened.proof.seal(call.data))
            if not call.answered:
                call.succeed(None)
        finally:
            if not call.answered:
                call.fail(OutcomeUnknown(f"{self.name}: it was cut off while it was sent"))  # no effect if it succeeded

    async def _read(self, rpc: Rpc) -> str:
        """Deliver answers until the stream ends. Returns the reason for the end."""
        try:
            while True:
                data = await rpc.read()
                if data is grpc.aio.EOF:
                    return "the peer ended it"
                if not self.calls.on_answer(data):
                    return "the peer sent an answer without a request"
        except _BROKEN as error:
            self.is_unknown = isinstance(error, grpc.aio.AioRpcError) and error.code() is UNIMPLEMENTED
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
        self.calls.fail(OutcomeUnknown(text) if opened and not self.is_unknown else NotDelivered(text))
        self._on_end(self, opened)


def _reason(error: Exception) -> str:
    if isinstance(error, grpc.aio.AioRpcError):
        return f"{error.code().name}: {error.details()}"
    return f"{type(error).__name__}: {error}"
