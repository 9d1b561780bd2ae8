"""The replicas of one broker on its disks: in which directory each lies, how one leaves, what the checkpoints note.

Every change is a job of a directory's worker. The jobs of one directory keep their order, so a name is free before it
is used again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from functools import partial
from random import Random

from broker.logdirs.busy import Busy
from broker.logdirs.directory_choice import choose_directory
from broker.logdirs.hosted_replica import HostedReplica
from broker.logdirs.log_directory import DirectoryQueue, LogDirectory
from broker.logdirs.removals import Removals
from broker.partition.key import PartitionKey
from quorumlog.errors import ApiError
from quorumlog.ids import UUID_BYTES, Offset, Uuid
from storage.directory_life import DirectoryOffline
from storage.log_errors import LogUnreadable
from storage.names import DELETE, STRAY
from storage.offset_files import TopicPartition
from storage.partition_directories import FoundPartitions, PartitionDirectories
from storage.partition_log import PartitionLog, checkpoint_high_watermarks, checkpoint_logs

_log = logging.getLogger("quorumlog.broker")
_Place = tuple[DirectoryQueue, TopicPartition]


class PartitionStore:
    """queues: of the directories that were online at start, by id."""

    def __init__(
        self,
        directories: Sequence[LogDirectory],
        on_directory_failed: Callable[[DirectoryQueue, Exception], None],
        on_unreadable: Callable[[DirectoryQueue, LogUnreadable], None],
        rng: Random,
    ) -> None:
        """The callbacks are those of `DirectoryQueue`."""
        queues = [
            DirectoryQueue(entry, on_directory_failed, on_unreadable) for entry in directories if entry.life.is_online
        ]
        self.queues = {queue.directory_id: queue for queue in queues}
        self._lives = [entry.life for entry in directories]
        self._rng = rng
        self._found: dict[PartitionKey, _Place] = {}  # at start
        self._unowned: list[_Place] = []  # without a topic id, or there twice
        self._removals = {queue.directory_id: Removals(queue) for queue in queues}

    async def find_partitions(self) -> None:
        """List what the directories hold. Called before anything else. A directory that cannot be read fails."""
        for queue in self.queues.values():
            try:
                found = await queue.settle(queue.directory.partitions.find)
            except Busy:
                raise  # a directory whose partitions are not known must not be used; the start fails
            except (ApiError, DirectoryOffline):
                continue
            self._take(queue, found)

    def _take(self, queue: DirectoryQueue, found: FoundPartitions) -> None:
        for key, topic in found.partitions.items():
            place = (queue, (topic, key[1]))
            if key in self._found:  # on two disks: the later one is not trusted
                self._unowned.append(place)
            else:
                self._found[key] = place
        self._unowned.extend((queue, partition) for partition in found.nameless)
        for partition in found.unreadable:
            _log.error(
                "%s holds records, and its partition.metadata cannot be read; it stays as it is, and a replica of that "
                "name is offline on this broker: write the topic's id back into the file, or move the directory out of "
                "log.dirs, and restart the node; without the directory the partition is copied from its leader",
                queue.directory.partitions.path_of(partition),
            )
        for name in found.leftovers:
            self._removals[queue.directory_id].now(name)

    # --- where a replica lies ---

    @property
    def found(self) -> KeysView[PartitionKey]:
        """The partitions that the directories held at start and that have not left since."""
        return self._found.keys()

    def place(self, key: PartitionKey, assigned: Uuid, others: Iterable[HostedReplica]) -> DirectoryQueue | None:
        """Where this replica lies or will be made; None: it stays offline."""
        online = {queue.directory_id: 0 for queue in self.queues.values() if queue.is_usable}
        found = self._found.get(key)
        if found is None and assigned not in online:
            for replica in others:  # counted only where the emptiest directory is asked for
                if replica.queue is not None and replica.queue.directory_id in online:
                    online[replica.queue.directory_id] += 1
        choice = choose_directory(assigned, found[0].directory_id if found else None, online, self._any_offline)
        return None if choice is None else self.queues[choice]

    @property
    def _any_offline(self) -> bool:
        return any(not life.is_online for life in self._lives)

    # --- leaving ---

    def set_strays_aside(self, strays: Sequence[PartitionKey]) -> None:
        """Called once: partitions that the metadata does not give to this broker, and those without a topic id."""
        for queue, partition in [*(self._found.pop(key) for key in strays), *self._unowned]:
            work = partial(queue.directory.partitions.move_away, partition, self.fresh_id(), STRAY)
            queue.run_in_background(work, done=_ignore, failed=_ignore)
        self._unowned.clear()

    def let_go(self, replica: HostedReplica, mark: str) -> None:
        """Close the log and rename its directory. DELETE: free it after `file.delete.delay.ms`.

        Where the directory is offline nothing happens; the next start finds the partition again.
        """
        self._found.pop(replica.key, None)
        queue = replica.queue
        if queue is None:
            return
        removals, delay_s = self._removals[queue.directory_id], replica.config.file_delete_delay_ms / 1000

        def moved(name: str) -> None:
            if name.endswith(f"-{DELETE}"):
                removals.later(name, delay_s)

        work = partial(_move_away, replica, queue.directory.partitions, self.fresh_id(), mark)
        queue.run_in_background(work, done=moved, failed=_ignore)

    def fresh_id(self) -> Uuid:
        """For the name of a directory that leaves."""
        return self._rng.randbytes(UUID_BYTES)

    # --- checkpoints ---

    async def checkpoint_high_watermarks(self, replicas: Iterable[HostedReplica]) -> None:
        for queue, held in self._by_queue(replicas):
            marks = _high_watermarks(held)
            await _settle(queue, partial(checkpoint_high_watermarks, queue.directory.partitions, marks))

    async def checkpoint_all(self, replicas: Iterable[HostedReplica]) -> None:
        for queue, held in self._by_queue(replicas):
            await _settle(queue, partial(_checkpoint_all, queue.directory.partitions, held, _high_watermarks(held)))

    async def close(self, replicas: Iterable[HostedReplica]) -> bool:
        """Sync and close every log, then write the checkpoints. True: every directory was left in order.

        It is not where a log could not be opened or read: a clean start would trust what nobody has looked at.
        """
        for removals in self._removals.values():
            removals.close()
        clean = not self._any_offline
        for queue, held in self._by_queue(replicas):
            queue.hurry()
            work = partial(_close, queue.directory.partitions, held, _high_watermarks(held))
            clean = await _settle(queue, work) and clean and not any(replica.core.failed for replica in held)
        return clean

    def _by_queue(self, replicas: Iterable[HostedReplica]) -> list[tuple[DirectoryQueue, list[HostedReplica]]]:
        held: dict[Uuid, list[HostedReplica]] = {
            queue.directory_id: [] for queue in self.queues.values() if queue.is_usable
        }
        for replica in replicas:
            if replica.queue is not None and replica.queue.directory_id in held:
                held[replica.queue.directory_id].append(replica)
        return [(self.queues[directory_id], ours) for directory_id, ours in held.items()]


# --- on the loop ---


async def _settle(queue: DirectoryQueue, work: Callable[[], None]) -> bool:
    """False if the directory failed or refused."""
    try:
        await queue.settle(work)
    except Busy as error:  # the next time writes it all
        _log.warning("%s: a checkpoint was left out: %s", queue.directory.path, error)
        return False
    except (ApiError, DirectoryOffline):
        return False
    return True


def _high_watermarks(held: Sequence[HostedReplica]) -> dict[PartitionLog, Offset]:
    """Of the replicas whose core knows its log. The notes of a log that its core does not know yet stay as they are."""
    return {
        replica.partition_log: replica.core.high_watermark
        for replica in held
        if replica.partition_log is not None and replica.log is not None
    }


def _ignore(_: object) -> None:
    return None


# --- in the worker ---


def _move_away(replica: HostedReplica, directories: PartitionDirectories, unique: Uuid, mark: str) -> str:
    """Returns the new name."""
    log = replica.partition_log
    if log is None:
        partition = (replica.topic, replica.key[1])
        is_ours = directories.belongs_to(partition, replica.key[0])
        return directories.move_away(partition, unique, mark if is_ours else STRAY)  # what is not ours is kept
    return log.delete(unique) if mark == DELETE else log.set_aside(unique)


def _checkpoint_all(
    directories: PartitionDirectories, held: Sequence[HostedReplica], marks: Mapping[PartitionLog, Offset]
) -> None:
    checkpoint_high_watermarks(directories, marks)
    checkpoint_logs(directories, _open_logs(held))


def _close(
    directories: PartitionDirectories, held: Sequence[HostedReplica], marks: Mapping[PartitionLog, Offset]
) -> None:
    for log in _open_logs(held):
        log.close()
    _checkpoint_all(directories, held, marks)


def _open_logs(held: Sequence[HostedReplica]) -> list[PartitionLog]:
    return [replica.partition_log for replica in held if replica.partition_log is not None]
