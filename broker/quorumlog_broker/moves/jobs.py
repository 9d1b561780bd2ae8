"""Work of a log directory, awaited. A caller that is cancelled does not stop it: files are given back at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.logdirs.log_directory import DirectoryQueue
from quorumlog_storage.directory.offset_files import TopicPartition

T = TypeVar("T")

RETRY_MS = 50  # where a queue is full, or the process short of descriptors


def _answers(future: asyncio.Future[T]) -> tuple[Callable[[T], None], Callable[[Exception | None], None]]:
    def done(result: T) -> None:
        if not future.done():
            future.set_result(result)

    def failed(error: Exception | None) -> None:
        if not future.done():
            future.set_exception(error or Busy("the directory takes no work now"))

    return done, failed


async def behind_background_jobs(queue: DirectoryQueue, work: Callable[[], T]) -> T:
    """In the writer, behind every job that was queued before. Raises what `work` raises, DirectoryOffline, ApiError."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    done, failed = _answers(future)
    queue.run_in_background(work, done=done, failed=failed)
    return await future


async def beside(queue: DirectoryQueue, work: Callable[[], T]) -> T:
    """Beside the writer, on files that are handed over. Raises as `behind_background_jobs` does."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    done, failed = _answers(future)
    queue.run_beside(work, done=done, failed=failed)
    return await future


async def with_files(queue: DirectoryQueue, partition: TopicPartition, work: Callable[[], T]) -> T:
    """`beside`, with the partition's files handed over until it ends, also where the caller is cancelled."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    done, failed = _answers(future)

    def succeeded(result: T) -> None:
        queue.handed_over.give_back(partition)
        done(result)

    def ended(error: Exception | None) -> None:
        queue.handed_over.give_back(partition)
        failed(error)

    def begin() -> None:
        queue.handed_over.hand_over(partition)
        queue.run_beside(work, done=succeeded, failed=ended)

    queue.handed_over.when_here(partition, begin)
    return await future


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
