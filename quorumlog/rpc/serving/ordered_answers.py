"""The server end of an ordered stream: handlers start in the order of arrival, answers are sent in that order.

Several handlers run at a time, within limits of count and bytes. The transport stops reading at the limit, so that a
producer that is faster than the disk is slowed by its own connection. A client above its quota gets its answers, and
nothing more of it is read until its deadline (KIP-219).
"""

from __future__ import annotations

import asyncio
from collections import deque

from quorumlog.messages.fetch import FetchChunkRequest
from quorumlog.nursery import Nursery
from quorumlog.rpc.calls import Call
from quorumlog.rpc.serving.dispatch import Answer, Dispatch, PeerContext

MAX_HANDLED_REQUESTS = 256  # per stream
MAX_HANDLED_CHUNKS = 16  # per stream of chunks: each may be answered with `dispatch.MAX_FETCHED_BYTES`
MAX_HANDLED_BYTES = 64 * 1024 * 1024  # per stream; a single larger request is still accepted


class OrderedAnswers:
    """Owned by one stream. Closing the nursery cancels the handlers."""

    def __init__(self, dispatch: Dispatch, context: PeerContext, call: Call, nursery: Nursery) -> None:
        self._dispatch, self._context, self._call, self._nursery = dispatch, context, call, nursery
        is_of_chunks = call.method.request is FetchChunkRequest
        self._max_handled = MAX_HANDLED_CHUNKS if is_of_chunks else MAX_HANDLED_REQUESTS
        self._handled: deque[tuple[asyncio.Task[Answer], int]] = deque()  # oldest first, with bytes of the request
        self._handled_bytes = 0
        self._ended = False
        wait_ms = dispatch.wait_ms(context, call)
        self._free_s = asyncio.get_running_loop().time() + wait_ms / 1000 if wait_ms else 0.0  # nothing is read before
        self._came = asyncio.Event()
        self._went = asyncio.Event()

    @property
    def has_room(self) -> bool:
        return len(self._handled) < self._max_handled and self._handled_bytes < MAX_HANDLED_BYTES

    async def room(self) -> None:
        """Wait until `accept` may be called."""
        loop = asyncio.get_running_loop()
        while not self.has_room or self._free_s > loop.time():
            if self.has_room:
                await asyncio.sleep(self._free_s - loop.time())
            else:
                self._went.clear()
                await self._went.wait()

    def accept(self, data: bytes) -> None:
        """Start the handler of the next request."""
        assert self.has_room and not self._ended
        name = f"{self._call.method.name} from {self._context.client_id or 'a peer'}"
        task = self._nursery.start(self._dispatch.answer(self._context, self._call, data), name)
        self._handled.append((task, len(data)))
        self._handled_bytes += len(data)
        self._came.set()

    def end(self) -> None:
        """No more requests will come. `next` returns the remaining answers, then None."""
        self._ended = True
        self._came.set()

    async def next(self) -> Answer | None:
        """The answer to the oldest request, once its handler has finished; None after the last."""
        while not self._handled:
            if self._ended:
                return None
            self._came.clear()
            await self._came.wait()
        task, size_bytes = self._handled[0]
        answer = await task
        self._handled.popleft()
        self._handled_bytes -= size_bytes
        if answer.throttle_ms:
            self._free_s = max(self._free_s, asyncio.get_running_loop().time() + answer.throttle_ms / 1000)
        self._went.set()
        return answer
