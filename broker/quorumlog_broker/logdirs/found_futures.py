"""Future logs that lie in this broker's log directories: what a start makes of them, and which go on being filled.

`quorumlog_storage/moves/steps.py` decides for each one; this performs it. A partition has one move at a time, so of
several future logs of one partition the first counts: one with a mark, then by the order of `log.dirs`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from quorumlog.errors import ApiError
from quorumlog.ids import Uuid
from quorumlog_broker.logdirs.log_directory import DirectoryQueue, Lane
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_storage.directory.mark import PromotionMark, read_mark
from quorumlog_storage.directory.offset_files import TopicPartition
from quorumlog_storage.directory.partition_directories import FoundPartitions
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.files.names import DELETE, STRAY, parse_directory
from quorumlog_storage.moves.future_log import FutureDirectories
from quorumlog_storage.moves.promotion import rename_promoted
from quorumlog_storage.moves.steps import Fate, fate_of
from quorumlog_storage.writer.directory_life import DirectoryOffline

_log = logging.getLogger("quorumlog.broker")


class FoundFuture(NamedTuple):
    """partition: the topic's name is cut where it is very long, as the name of the directory is."""

    queue: DirectoryQueue
    partition: TopicPartition
    name: str
    mark: PromotionMark | None = None

    @property
    def path(self) -> str:
        return f"{self.queue.directory.path}/{self.name}"


class FoundFutures:
    """Used on the loop."""

    def __init__(self, fresh_id: Callable[[], Uuid], on_marked: Callable[[DirectoryQueue, str], None]) -> None:
        """on_marked: told of a directory that was renamed to `-delete`, to be freed."""
        self._fresh_id = fresh_id
        self._on_marked = on_marked
        self.by_key: dict[PartitionKey, FoundFuture] = {}
        self._waiting: set[PartitionKey] = set()  # refused by `settle`; never iterated

    def take(self, queue: DirectoryQueue, found: FoundPartitions) -> None:
        """What a directory holds. Of two future logs of one partition one is deleted; its source holds everything."""
        for partition, name in found.bad_futures:
            self.discard(FoundFuture(queue, partition, name), DELETE)
        for key, (name, mark) in found.futures.items():
            one = FoundFuture(queue, (parse_directory(name).topic, key[1]), name, mark)
            other = self.by_key.get(key)
            if other is not None and other.path != one.path and other.queue.is_usable:
                one, other = (other, one) if other.mark is not None or mark is None else (one, other)
                self.discard(other, DELETE)
            self.by_key[key] = one

    async def settle(
        self,
        is_current: Callable[[PartitionKey, DirectoryQueue], bool],
        online: Collection[Uuid],
        any_offline: bool,
        refused: dict[PartitionKey, str],
    ) -> Mapping[PartitionKey, tuple[DirectoryQueue, TopicPartition]]:
        """Act on each. Returns those that were promoted: their logs lie there from now on.

        is_current: the partition's log is found or open, in another directory than that of its future log.
        refused: gets those that wait for a directory that is offline, with what is wrong and what to do.
        """
        promoted: dict[PartitionKey, tuple[DirectoryQueue, TopicPartition]] = {}
        for key, one in list(self.by_key.items()):
            if not one.queue.is_usable:
                continue
            found = is_current(key, one.queue)
            if not found and one.mark is None:
                read = await self._with_mark(key, one)
                if read is None:
                    continue
                one = read
            match fate_of(current_is_found=found, mark=one.mark, online=online, any_offline=any_offline):
                case Fate.CONTINUE:
                    self._waits_no_more(key, refused)
                case Fate.WAIT:
                    self._waiting.add(key)
                    refused[key] = (
                        f"{one.path} is the copy of a move, and its source may be in a log directory that is offline; "
                        "bring that directory back (quorumlog log-dirs online, or restart the node with it)"
                    )
                    _log.error("replica %s-%d is offline: %s", *one.partition, refused[key])
                case Fate.SET_ASIDE:
                    del self.by_key[key]
                    _log.error(
                        "%s is the unfinished copy of a partition that is in no other log directory; it is kept as "
                        "...-stray, and the partition is copied from its leader",
                        one.path,
                    )
                    self.discard(one, STRAY)
                case Fate.PROMOTE:
                    del self.by_key[key]
                    assert one.mark is not None
                    partition = (one.mark.topic, key[1])
                    if await self._promote(one, partition):
                        promoted[key] = (one.queue, partition)
                        self._waits_no_more(key, refused)
        return promoted

    def discard(self, one: FoundFuture, mark: str) -> None:
        """Rename it. mark: DELETE or STRAY."""
        copies = FutureDirectories(one.queue.directory.partitions, one.name)
        move_away = partial(copies.move_away, one.partition, self._fresh_id(), mark)
        moving = one.queue.run(move_away, Lane.BACKGROUND, files=one.partition)
        if mark == DELETE:
            one.queue.start(self._free(one.queue, moving), f"discard {one.path}")

    async def _free(self, queue: DirectoryQueue, moving: Awaitable[str]) -> None:
        with suppress(Exception):  # told by the queue; the next start finds the future log again
            self._on_marked(queue, await moving)

    async def _promote(self, one: FoundFuture, partition: TopicPartition) -> bool:
        try:
            await one.queue.run(partial(rename_promoted, one.queue.directory.partitions, partition, one.name))
        except (ApiError, DirectoryOffline, DiskError) as error:
            _log.error("%s cannot take the place of %s-%d: %s", one.path, *partition, error)
            return False
        _log.info("%s was complete when its source left; it is %s-%d now", one.path, *partition)
        return True

    async def _with_mark(self, key: PartitionKey, one: FoundFuture) -> FoundFuture | None:
        """A move of this process may have completed the copy before its source failed. None: it is of no use now."""
        queue, path = one.queue, one.path
        try:
            mark = await queue.run(partial(read_mark, queue.directory.partitions.disk, path))
        except (ApiError, DirectoryOffline, DiskError) as error:
            _log.error("it is not known whether %s is complete: %s", path, error)
            return None
        if self.by_key.get(key) is not one:
            return None
        marked = self.by_key[key] = one._replace(mark=mark)
        return marked

    def _waits_no_more(self, key: PartitionKey, refused: dict[PartitionKey, str]) -> None:
        if key in self._waiting:
            self._waiting.discard(key)
            refused.pop(key, None)
