"""Calls to a handler of this process: `transport.Connection` without a wire.

A node whose broker calls the controller of the same node would otherwise prove itself to itself, and encode and decode
every request twice. Requests and responses are immutable, so both sides may hold them. Everything else is as by gRPC:
checks of the listener, errors as responses, deadlines, the order in which handlers start, and a peer that is told when
the connection ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from quorumlog.messages.method import Method
from quorumlog.nursery import Nursery, OnCrash
from quorumlog.rpc.answering import expects_answer
from quorumlog.rpc.begun_call import begin_by_task
from quorumlog.rpc.caller import Caller
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog.rpc.closing import Closing
from quorumlog.rpc.serving.dispatch import Dispatch, Reply
from quorumlog.rpc.transport import Address, Cancel, NotDelivered, OnEnded, OutcomeUnknown


class LocalConnection:
    """dispatch: of an internal listener of this node; its identity is the caller's, too."""

    def __init__(self, dispatch: Dispatch, client_id: str, on_crash: OnCrash) -> None:
        assert dispatch.identity is not None
        self.address: Address = dispatch.listener.address
        self._dispatch = dispatch
        self._context = dispatch.context(Caller(client_id, dispatch.identity.peer), self.address.host)
        self._nursery = Nursery(on_crash)
        self._closing = Closing()
        self._closed = False

    def call(self, request: Any, timeout_ms: int) -> Awaitable[Any]:
        assert timeout_ms > 0, "every call has a deadline"
        method = BY_REQUEST[type(request)].method
        if self._closed:
            return _failed(NotDelivered(f"{method.name}: the connection to this node is closed"))
        handling = self._dispatch.reply(self._context, method, request)
        task = self._nursery.start(handling, f"{method.name} from this node")
        return _outcome(task, method, timeout_ms, expects_answer(request))

    def begin(self, request: Any, timeout_ms: int, ended: OnEnded) -> Cancel:
        return begin_by_task(self.call(request, timeout_ms), ended, self._nursery, "call to this node")

    def on_closed(self, callback: Callable[[], None]) -> None:
        """Never calls back: this connection breaks with its process only."""
        self._closing.on_closed(callback)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._dispatch.close(self._context)
        await self._nursery.close()


async def _outcome(task: asyncio.Task[Reply], method: Method, timeout_ms: int, answered: bool) -> Any:
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            reply = await task
    except TimeoutError:
        raise OutcomeUnknown(f"{method.name} to this node: no answer within {timeout_ms} ms") from None
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        raise OutcomeUnknown(f"{method.name} to this node: the connection was closed") from None
    if reply.message is None and answered:
        raise OutcomeUnknown(f"{method.name} to this node: it was cut off")
    return reply.message


async def _failed(error: NotDelivered) -> Any:
    raise error
