"""Partitions whose files the writer of a log directory has handed over to a job beside it.

A file has one changer at a time. While a job has a partition's files, what the writer would do with them waits here,
in the order of the calls: a deletion while the log is being opened, or a new partition of the same name.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, TypeVar

from quorumlog_storage.directory.offset_files import TopicPartition

T = TypeVar("T")


class Loan:
    """A partition's files, until the `with` statement ends, and until the job that has them has ended."""

    def __init__(
        self, run_beside: Callable[[Callable[[], Any]], asyncio.Future[Any]], give_back: Callable[[], None]
    ) -> None:
        self._run_beside, self._give_back = run_beside, give_back
        self._job: asyncio.Future[Any] | None = None

    async def run(self, perform: Callable[[], T]) -> T:
        """Beside the writer; once. See `DirectoryQueue.run`."""
        self._job = self._run_beside(perform)
        result: T = await asyncio.shield(self._job)  # a caller that is cancelled does not stop the job
        return result

    def give_back(self) -> None:
        if self._job is None or self._job.done():
            self._give_back()
        else:
            self._job.add_done_callback(lambda _: self._give_back())

    def __enter__(self) -> Loan:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()


class HandedOver:
    """Of one log directory. Used on the loop."""

    def __init__(self) -> None:
        self._waiting: dict[TopicPartition, deque[Callable[[], None]]] = {}
        self._on_none: list[Callable[[], None]] = []
        self._leaving: Counter[TopicPartition] = Counter()

    def __len__(self) -> int:
        """Partitions that are handed over now."""
        return len(self._waiting)

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._waiting

    def leaves(self, partition: TopicPartition) -> None:
        """A job that moves its files away begins to wait."""
        self._leaving[partition] += 1

    def has_left(self, partition: TopicPartition) -> None:
        """That job has ended, well or not."""
        self._leaving[partition] -= 1
        if not self._leaving[partition]:
            del self._leaving[partition]

    def is_leaving(self, partition: TopicPartition) -> bool:
        """Files of this name may be there that have to go first."""
        return partition in self._leaving

    def hand_over(self, partition: TopicPartition) -> None:
        assert partition not in self._waiting, f"{partition} is handed over already"
        self._waiting[partition] = deque()

    def give_back(self, partition: TopicPartition) -> None:
        """The job has ended. What waited is done now; a call that hands the partition over again stops that."""
        waiting = self._waiting.pop(partition)
        while waiting:
            waiting.popleft()()
            if partition in self._waiting:
                self._waiting[partition].extend(waiting)
                return
        if not self._waiting:
            calls, self._on_none = self._on_none, []
            for call in calls:
                call()

    def when_here(self, partition: TopicPartition, call: Callable[[], None]) -> None:
        """Call now, or once the writer has the files again and what came before has been done."""
        if partition in self._waiting:
            self._waiting[partition].append(call)
        else:
            call()

    def when_none(self, call: Callable[[], None]) -> None:
        """Call once, as soon as nothing is handed over."""
        if self._waiting:
            self._on_none.append(call)
        else:
            call()
