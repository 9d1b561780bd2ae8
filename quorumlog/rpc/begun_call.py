"""`Connection.begin` for transports whose calls are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any

from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Cancel, OnEnded, OutcomeUnknown


def begin_by_task(call: Awaitable[Any], ended: OnEnded, nursery: Nursery, name: str) -> Cancel:
    """nursery: of the connection; if that closes first, the call has failed with OutcomeUnknown.

    A task that is cancelled before its first step runs nothing of its code. So who cancels waits for that step, and the
    nursery, which does not, is heard of by the task's end.
    """
    is_given_up = has_begun = False

    async def wait() -> None:
        nonlocal has_begun
        has_begun = True
        response: Any = None
        failure: Exception | None = None
        try:
            response = await call
        except asyncio.CancelledError:
            failure = OutcomeUnknown(f"{name}: the connection was closed")
        except Exception as error:
            failure = error
        if not is_given_up:
            ended(response, failure)

    def cancel() -> None:
        nonlocal is_given_up
        is_given_up = True
        if has_begun:
            task.cancel()
        else:
            asyncio.get_running_loop().call_soon(task.cancel)

    def over(_: asyncio.Task[None]) -> None:
        if has_begun:
            return
        if isinstance(call, Coroutine):
            call.close()
        if not is_given_up:
            ended(None, OutcomeUnknown(f"{name}: the connection was closed"))

    task = nursery.start(wait(), name)
    task.add_done_callback(over)
    return cancel


def already_ended() -> None:
    """The `Cancel` of a call that had ended before `begin` returned."""
