"""Waiting for the jobs of a move: until a directory has room, and until a task has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from quorumlog_broker.logdirs.failures import Busy

T = TypeVar("T")

RETRY_MS = 50  # where a queue is full, or the process short of descriptors


async def until_not_busy(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask again while the process is short of descriptors or memory: what was begun has to end."""
    while True:
        try:
            return await ask()
        except Busy:
            await asyncio.sleep(RETRY_MS / 1000)


async def end_of(task: asyncio.Task[None]) -> None:
    """Until a task has ended, in whichever way. (`asyncio.wait` keeps a set of tasks, whose order no seed repeats.)"""
    if not task.done():
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task.add_done_callback(lambda _: None if future.done() else future.set_result(None))
        await future
