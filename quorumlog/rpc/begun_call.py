"""`Connection.begin` for transports whose calls are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Cancel, OnEnded, OutcomeUnknown


def begin_by_task(call: Awaitable[Any], ended: OnEnded, nursery: Nursery, name: str) -> Cancel:
    """nursery: of the connection; if that closes first, the call has failed with OutcomeUnknown."""
    is_given_up = False

    async def wait() -> None:
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
        task.cancel()

    task = nursery.start(wait(), name)
    return cancel


def already_ended() -> None:
    """The `Cancel` of a call that had ended before `begin` returned."""
