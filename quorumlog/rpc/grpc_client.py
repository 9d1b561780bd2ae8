"""The client side of gRPC: one channel to one address, unary calls and ordered streams.

A call is given to gRPC only while the channel is connected (grpc_channel). A failure before that is NotDelivered, a
failure after it is OutcomeUnknown, whatever status gRPC returns. gRPC's own retries are off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from quorumlog.messages.decode_error import DecodeError
from quorumlog.nursery import Nursery, OnCrash
from quorumlog.rpc.caller import Metadata
from quorumlog.rpc.calls import BY_REQUEST, Call, expects_answer
from quorumlog.rpc.closing import Closing
from quorumlog.rpc.grpc_channel import READY, connected, target_of
from quorumlog.rpc.grpc_options import GrpcOptions
from quorumlog.rpc.grpc_stream import GrpcStream, Rpc
from quorumlog.rpc.transport import Address, NotDelivered, OutcomeUnknown, RpcError


class GrpcConnection:
    """`transport.Connection`. It belongs to the event loop of its first call."""

    def __init__(self, address: Address, metadata: Metadata, options: GrpcOptions, on_crash: OnCrash) -> None:
        self.address = address
        self._metadata, self._options = metadata, options
        self._nursery = Nursery(on_crash)
        self._channel: grpc.aio.Channel | None = None
        self._streams: dict[str, GrpcStream] = {}  # by path
        self._closing = Closing()
        self._closed = False

    def call(self, request: Any, timeout_ms: int) -> Awaitable[Any]:
        assert timeout_ms > 0, "every call has a deadline"
        call = BY_REQUEST[type(request)]
        data = call.codec.encode_request(request)
        if self._closed:
            return _failed(NotDelivered(f"{call.method.name}: the connection to {self.address} is closed"))
        if len(data) > self._options.max_message_bytes:
            return _failed(NotDelivered(f"{call.method.name}: {len(data)} bytes are above the limit of a message"))
        if call.ordered:
            return self._stream(call).calls.add(data, expects_answer(request), timeout_ms).wait()
        return self._unary(call, data, timeout_ms)

    def on_closed(self, callback: Callable[[], None]) -> None:
        self._closing.on_closed(callback)

    async def close(self) -> None:
        self._closed = True
        for stream in list(self._streams.values()):
            stream.end("the connection was closed")
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()
        await self._nursery.close()

    async def _unary(self, call: Call, data: bytes, timeout_ms: int) -> Any:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        channel = self._opened()
        if channel.get_state() is not READY:
            await self._connect(channel, call, timeout_ms)
        remaining_s = deadline - loop.time()
        if remaining_s <= 0:
            raise NotDelivered(f"{call.method.name} to {self.address}: not connected within {timeout_ms} ms")
        start: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(call.method.path)
        rpc = start(data, timeout=remaining_s, metadata=self._metadata)
        return _decoded(call, await self._outcome(call, rpc))

    async def _connect(self, channel: grpc.aio.Channel, call: Call, timeout_ms: int) -> None:
        try:
            ok = await connected(channel, min(timeout_ms, self._options.connect_timeout_ms))
        except asyncio.CancelledError:
            if _wanted():
                raise
            ok = False
        if not ok or self._closed:
            raise NotDelivered(f"{call.method.name} to {self.address}: no connection")

    async def _outcome(self, call: Call, rpc: Rpc) -> bytes:
        name = f"{call.method.name} to {self.address}"
        try:
            data: bytes = await rpc
            return data
        except grpc.aio.AioRpcError as error:
            raise OutcomeUnknown(f"{name}: {error.code().name}: {error.details()}") from None
        except asyncio.CancelledError:
            if _wanted():
                raise
            raise OutcomeUnknown(f"{name}: the connection was closed") from None

    def _stream(self, call: Call) -> GrpcStream:
        path = call.method.path
        if path not in self._streams:

            async def open_rpc() -> Rpc | None:
                channel = self._opened()
                if not await connected(channel, self._options.connect_timeout_ms):
                    return None
                return channel.stream_stream(path)(metadata=self._metadata)

            self._streams[path] = GrpcStream(call, open_rpc, self._nursery, self._on_stream_end)
        return self._streams[path]

    def _on_stream_end(self, stream: GrpcStream, broke: bool) -> None:
        self._streams = {path: other for path, other in self._streams.items() if other is not stream}
        if broke:
            self._closing.close()

    def _opened(self) -> grpc.aio.Channel:
        if self._channel is None:
            arguments = self._options.channel_arguments()
            self._channel = grpc.aio.insecure_channel(target_of(self.address), options=arguments)
        return self._channel


def _wanted() -> bool:
    """True if this task is being cancelled. gRPC also raises CancelledError for a call that broke."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _decoded(call: Call, data: bytes) -> Any:
    try:
        return call.codec.decode_response(data)
    except DecodeError as error:
        raise OutcomeUnknown(f"the response cannot be decoded: {error}") from error


async def _failed(error: RpcError) -> Any:
    raise error
