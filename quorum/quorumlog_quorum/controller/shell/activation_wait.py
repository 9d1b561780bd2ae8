"""Requests that come to an elected controller shortly before it is active.

Between its election and the commit of its first record a controller cannot answer. Its brokers know it already, and
would ask again and again with growing pauses. So it lets them wait for that commit, some milliseconds, in their order.
"""

from __future__ import annotations

import asyncio
from collections import deque

WAIT_MAX_MS = 1_000  # then the caller is told that this controller is not active, and asks again
WAITING_MAX = 1_000  # requests; more are told at once


class ActivationWait:
    """`begin` when this node is elected, `end` when it is active or leads no longer."""

    def __init__(self) -> None:
        self._open = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    def begin(self) -> None:
        self._open = True

    def end(self) -> None:
        """Wake all, in their order."""
        self._open = False
        waiting, self._waiting = self._waiting, deque()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    @property
    def is_open(self) -> bool:
        return self._open and len(self._waiting) < WAITING_MAX

    async def wait(self) -> None:
        """Until `end`, at most WAIT_MAX_MS."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            async with asyncio.timeout(WAIT_MAX_MS / 1000):
                await future
        except TimeoutError:
            pass
