"""The replicas of one broker on its disks: where each lies, how one gets out of the way, what is checkpointed.

Every change is a job of a directory's worker. A name is free before it is used again, because the jobs of one directory
keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from random import Random

from broker.logdirs.directory_choice import choose_directory
from broker.logdirs.hosted_replica import HostedReplica
from broker.logdirs.log_directory import DirectoryQueue
from broker.logdirs.partition_files import Holdings, look_through, set_aside
from broker.logdirs.removals import Removals
from broker.partition.key import PartitionKey
from quorumlog.errors import ApiError
from quorumlog.ids import UUID_BYTES, Offset, Uuid
from storage.checkpoint import HIGH_WATERMARKS, TopicPartition, write_offsets
from storage.log import Log
from storage.names import DELETE, STRAY, marked_directory
from storage.writer import DirectoryOffline

_Lies = tuple[DirectoryQueue, str, int]  # directory, topic name, partition


class PartitionStore:
    """queues: of the directories that were online at start, by id."""

    def __init__(self, queues: Sequence[DirectoryQueue], any_offline: bool, rng: Random) -> None:
        self.queues = {queue.directory_id: queue for queue in queues}
        self.high_watermarks: dict[TopicPartition, Offset] = {}  # as checkpointed at the last stop
        self._any_offline_at_start = any_offline
        self._rng = rng
        self._found: dict[PartitionKey, _Lies] = {}  # at start
        self._nobodys: list[_Lies] = []  # without a topic id, or there twice
        self._removals = {queue.directory_id: Removals(queue) for queue in queues}

    async def look_through(self) -> None:
        """Before anything else. A directory that cannot be read fails, as at any other time."""
        for queue in self.queues.values():
            directory = queue.directory
            try:
                holdings = await queue.settle(partial(look_through, directory.disk, directory.path))
            except (ApiError, DirectoryOffline):
                continue
            self._take_stock(queue, holdings)

    def _take_stock(self, queue: DirectoryQueue, holdings: Holdings) -> None:
        for key, topic in holdings.partitions.items():
            lies = (queue, topic, key[1])
            if key in self._found:  # on two disks: the later one is not trusted
                self._nobodys.append(lies)
            else:
                self._found[key] = lies
        self._nobodys.extend((queue, topic, index) for topic, index in holdings.nameless)
        self.high_watermarks.update(holdings.high_watermarks)
        for name in holdings.leftovers:
            self._removals[queue.directory_id].now(name)

    # --- where a replica lies ---

    @property
    def found(self) -> Iterable[PartitionKey]:
        return self._found.keys()

    def place(self, key: PartitionKey, assigned: Uuid, others: Iterable[HostedReplica]) -> DirectoryQueue | None:
        """Where this replica is or shall be made; None: it stays offline."""
        online = {queue.directory_id: 0 for queue in self.queues.values() if not queue.failed}
        found = self._found.get(key)
        if found is None and assigned not in online:
            for replica in others:  # counted only where the emptiest one is asked for
                if replica.queue is not None and replica.queue.directory_id in online:
                    online[replica.queue.directory_id] += 1
        choice = choose_directory(assigned, found[0].directory_id if found else None, online, self._any_offline)
        return None if choice is None else self.queues[choice]

    @property
    def _any_offline(self) -> bool:
        return self._any_offline_at_start or any(queue.failed for queue in self.queues.values())

    # --- getting out of the way ---

    def set_strays_aside(self, strays: Sequence[PartitionKey]) -> None:
        """At the first image: what it does not know, and directories that do not say whose they are."""
        for lies in [*(self._found.pop(key) for key in strays), *self._nobodys]:
            self._mark(lies, STRAY, None)
        self._nobodys.clear()

    def let_go(self, replica: HostedReplica, mark: str) -> None:
        """Close the log and rename its directory. DELETE: remove it after `file.delete.delay.ms`."""
        self._found.pop(replica.key, None)
        if replica.queue is None:
            return
        name = self._mark((replica.queue, replica.topic, replica.key[1]), mark, replica)
        if mark == DELETE:
            self._removals[replica.queue.directory_id].later(name, replica.config.file_delete_delay_ms / 1000)

    def _mark(self, lies: _Lies, mark: str, replica: HostedReplica | None) -> str:
        """Returns the new name. On a directory that is offline nothing happens: the next start looks at it again."""
        queue, topic, index = lies
        directory = queue.directory
        name = marked_directory(topic, index, self._rng.randbytes(UUID_BYTES), mark)

        def move() -> None:
            if replica is not None and replica.opened is not None:
                replica.opened.close()
            set_aside(directory.disk, directory.path, topic, index, name)
            directory.recovery_points.forget((topic, index))
            queue.log_starts.forget((topic, index))

        queue.run_in_background(move, done=_ignore, failed=_ignore)
        return name

    # --- checkpoints ---

    async def checkpoint_high_watermarks(self, replicas: Iterable[HostedReplica]) -> None:
        await self._checkpoint(replicas, points=False)

    async def checkpoint_all(self, replicas: Iterable[HostedReplica]) -> None:
        await self._checkpoint(replicas, points=True)

    async def _checkpoint(self, replicas: Iterable[HostedReplica], points: bool) -> None:
        for queue, held in self._by_queue(replicas):
            try:
                await queue.settle(partial(_write_checkpoints, queue, held, points))
            except (ApiError, DirectoryOffline):
                continue

    async def close(self, replicas: Iterable[HostedReplica]) -> bool:
        """Sync and close every log, then write the checkpoints. True: every directory was left in order."""
        for removals in self._removals.values():
            removals.close()
        clean = not self._any_offline
        for queue, held in self._by_queue(replicas):
            queue.hurry()
            try:
                await queue.settle(partial(_close, queue, held))
            except (ApiError, DirectoryOffline):
                clean = False
        return clean

    def _by_queue(self, replicas: Iterable[HostedReplica]) -> list[tuple[DirectoryQueue, list[HostedReplica]]]:
        held: dict[Uuid, list[HostedReplica]] = {
            queue.directory_id: [] for queue in self.queues.values() if not queue.failed
        }
        for replica in replicas:
            if replica.queue is not None and replica.queue.directory_id in held:
                held[replica.queue.directory_id].append(replica)
        return [(self.queues[directory_id], ours) for directory_id, ours in held.items()]


def _write_checkpoints(queue: DirectoryQueue, held: Sequence[HostedReplica], points: bool) -> None:
    """In the worker. Recovery points are what is synced at this moment: no truncation comes in between."""
    directory = queue.directory
    marks = {(replica.topic, replica.key[1]): replica.core.high_watermark for replica in held if replica.opened}
    write_offsets(directory.disk, f"{directory.path}/{HIGH_WATERMARKS}", marks)
    if points:
        directory.recovery_points.note(
            {(replica.topic, replica.key[1]): replica.opened.synced_end for replica in held if replica.opened}
        )
        queue.log_starts.note(
            {(replica.topic, replica.key[1]): _start_to_note(replica.opened) for replica in held if replica.opened}
        )


def _start_to_note(log: Log) -> Offset | None:
    """None: the name of the first segment says it."""
    return log.start_offset if log.start_offset > log.segment_bases[0] else None


def _close(queue: DirectoryQueue, held: Sequence[HostedReplica]) -> None:
    for replica in held:
        if replica.opened is not None:
            replica.opened.close()
    _write_checkpoints(queue, held, points=True)


def _ignore(_: object) -> None:
    return None
