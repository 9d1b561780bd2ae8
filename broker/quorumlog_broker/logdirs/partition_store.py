"""The replicas of one broker on its disks: in which directory each lies, how one leaves, what the checkpoints note.

Every change is a job of a directory's worker. The jobs of one directory keep their order, so a name is free before it
is used again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, KeysView, Mapping, Sequence
from functools import partial
from random import Random

from quorumlog.errors import ApiError
from quorumlog.ids import UUID_BYTES, Offset, Uuid
from quorumlog_broker.logdirs.closing import all_at_once, close_logs, is_left_clean
from quorumlog_broker.logdirs.directory_choice import DirectoryLoad, PreferredDirectories, choose_directory
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.logdirs.found_futures import FoundFutures
from quorumlog_broker.logdirs.hosted_replica import HostedReplica
from quorumlog_broker.logdirs.log_directory import DirectoryQueue, Lane, LogDirectory
from quorumlog_broker.logdirs.removals import Removals
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_storage.directory.log_checkpoints import checkpoint_high_watermarks, checkpoint_logs
from quorumlog_storage.directory.offset_files import TopicPartition
from quorumlog_storage.directory.partition_directories import FoundPartitions, PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.files.names import DELETE, STRAY
from quorumlog_storage.log.log_errors import LogUnreadable
from quorumlog_storage.writer.directory_life import DirectoryOffline

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
        cordoned: frozenset[str] = frozenset(),
    ) -> None:
        """The callbacks are those of `DirectoryQueue`. cordoned: paths of directories that get no new logs."""
        self._callbacks = (on_directory_failed, on_unreadable)
        queues = [DirectoryQueue(entry, *self._callbacks) for entry in directories if entry.life.is_online]
        self.queues = {queue.directory_id: queue for queue in queues}
        self._lives = [entry.life for entry in directories]
        self._rng = rng
        self.cordoned = cordoned
        self._found: dict[PartitionKey, _Place] = {}  # at start
        self._unowned: list[_Place] = []  # without a topic id
        self.strays = (
            0  # logs that were set aside since the start, because the metadata do not give them to this broker
        )
        self._unread: dict[Uuid, int] = {}  # logs whose topic id cannot be read; of the directories that were listed
        self.refused: dict[PartitionKey, str] = {}  # what is wrong and what to do next
        self._twice: dict[PartitionKey, list[_Place]] = {}  # those of `refused` that lie in several directories
        self._replicas: Counter[Uuid] = Counter()  # placed in each directory, copies of moves included
        self._placed: dict[PartitionKey, DirectoryQueue] = {}
        self.preferred = PreferredDirectories()
        self.on_leaving: Callable[[PartitionKey], None] = _ignore  # told before a replica's files are let go
        self._leaving = 0  # partitions whose renaming was begun, or could not be, and is not done
        self._removals = {queue.directory_id: Removals(queue) for queue in queues}
        for queue in queues:
            queue.on_retired = self._removals[queue.directory_id].take_retired
        self.futures = FoundFutures(self.fresh_id, lambda queue, name: self.free(queue, name, 0))

    async def find_partitions(self) -> None:
        """List what the directories hold, all at once. Called before anything else. One that cannot be read fails."""
        asked = [(queue, queue.run(queue.directory.partitions.find)) for queue in self.queues.values()]
        for queue, listed in asked:
            try:
                found = await listed
            except Busy:
                raise  # a directory whose partitions are not known must not be used; the start fails
            except (ApiError, DirectoryOffline):
                continue
            self._take(queue, found)
        await self._settle_futures(self.any_offline)

    async def take_back(self, directory: LogDirectory) -> DirectoryQueue:
        """A directory that has failed is there again, in a later generation. List what it holds.

        Raises what the listing raises; then its partitions stay offline.
        """
        queue = DirectoryQueue(directory, *self._callbacks)
        found = await queue.run(queue.directory.partitions.find)
        self._found = {
            key: place for key, place in self._found.items() if place[0].directory.path != queue.directory.path
        }
        self._replicas[queue.directory_id] = 0
        self.queues[queue.directory_id] = queue
        removals = self._removals[queue.directory_id] = Removals(queue)
        queue.on_retired = removals.take_retired
        self._take(queue, found)
        others = [life for life in self._lives if life is not directory.life]
        await self._settle_futures(any(not life.is_online for life in others))
        return queue

    async def _settle_futures(self, any_offline: bool) -> None:
        """Decide which copy counts of each partition that was being moved."""
        online = {directory_id for directory_id, queue in self.queues.items() if queue.is_usable}
        self._found.update(await self.futures.settle(self._is_current, online, any_offline, self.refused))

    def _is_current(self, key: PartitionKey, beside: DirectoryQueue) -> bool:
        """The log itself is found, or serves, in another directory than `beside`."""
        return key in self._found or key in self._twice or self._serves_elsewhere(key, beside)

    def _serves_elsewhere(self, key: PartitionKey, queue: DirectoryQueue) -> bool:
        placed = self._placed.get(key)
        return placed is not None and placed.is_usable and placed.directory_id != queue.directory_id

    def _take(self, queue: DirectoryQueue, found: FoundPartitions) -> None:
        for key, topic in found.partitions.items():
            place = (queue, (topic, key[1]))
            if self._serves_elsewhere(key, queue):
                self._set_old_copy_aside(place, self._placed[key])
            elif key in self._found:
                self._refuse(key, self._found.pop(key), place)
            elif key in self._twice:
                self._twice[key].append(place)
                self.refused[key] += f"; it is in {_path_of(place)}, too"
            else:
                self._found[key] = place
        self.futures.take(queue, found)
        self._unowned.extend((queue, partition) for partition in found.nameless)
        self._unread[queue.directory_id] = len(found.unreadable)
        for partition in found.unreadable:
            _log.error(
                "%s holds records, and its partition.metadata cannot be read; it stays as it is, and a replica of that "
                "name is offline on this broker: write the topic's id back into the file, or move the directory out of "
                "log.dirs, and restart the node; without the directory the partition is copied from its leader",
                queue.directory.partitions.path_of(partition),
            )
        for name in found.leftovers:
            self._removals[queue.directory_id].now(name)

    def _refuse(self, key: PartitionKey, first: _Place, second: _Place) -> None:
        """Two logs of one partition: until the metadata names one nobody can say which one counts (`settle_twice`)."""
        self._twice[key] = [first, second]
        topic, index = first[1]
        why = (
            f"replica {topic}-{index} is offline: it is in {_path_of(first)} and in {_path_of(second)}; keep the one "
            "that the controller knows (`quorumlog log-dirs list`) or that is longer, move the other one out of "
            "log.dirs, and restart the node"
        )
        self.refused[key] = why
        _log.error("%s", why)

    def settle_twice(self, named: Callable[[PartitionKey], Uuid | None]) -> list[PartitionKey]:
        """Of logs that lie in several directories the one counts that the metadata names. Returns those decided now.

        A second log is made where a partition was taken from this broker and came back while the directory of the
        first one was offline. That one is older: the broker has told the controller of the second before it counted.

        named: the directory; None: the partition is not this broker's, and then none counts.
        """
        decided = []
        for key, places in list(self._twice.items()):
            counting = self._counting(key, places, named(key))
            if counting is None:
                continue
            del self._twice[key], self.refused[key]
            self._found[key] = counting
            decided.append(key)
            for place in places:
                if place is not counting:
                    self._set_old_copy_aside(place, counting[0])
        return decided

    def _counting(self, key: PartitionKey, places: Sequence[_Place], named: Uuid | None) -> _Place | None:
        """None: not known. A directory holds a log or the copy that a move fills: a log beside a copy is an old one."""
        usable = [place for place in places if place[0].is_usable]
        copy = self.futures.by_key.get(key)
        if copy is not None:
            usable = [place for place in usable if place[0] is not copy.queue]
            return usable[0] if len(usable) == 1 else None
        if named is None:
            return usable[0] if len(usable) == len(places) else None
        return next((place for place in usable if place[0].directory_id == named), None)

    def _set_old_copy_aside(self, place: _Place, current: DirectoryQueue) -> None:
        _log.warning(
            "%s is an older copy: the replica lies in %s; it is kept as ...-stray",
            _path_of(place),
            current.directory.path,
        )
        self._move_found(place, STRAY, 0)

    # --- where a replica lies ---

    @property
    def found(self) -> KeysView[PartitionKey]:
        """The partitions that the directories held at start and that have not left since."""
        return self._found.keys()

    def place(self, key: PartitionKey, assigned: Uuid, topic: str = "") -> DirectoryQueue | None:
        """Where this replica lies or will be made; None: it stays offline. Called once for each replica."""
        preferred = self.preferred.take((topic, key[1]))
        if key in self.refused:
            return None
        online = {
            queue.directory_id: DirectoryLoad(
                self._replicas[queue.directory_id],
                queue.space.full_part,
                queue.space.is_short,
                queue.directory.path in self.cordoned,
            )
            for queue in self.queues.values()
            if queue.is_usable
        }
        found = self._found.get(key)
        choice = choose_directory(assigned, found[0].directory_id if found else None, online, self.any_offline)
        if choice is None:
            return None
        if found is None and preferred in online:
            choice = preferred
        self._replicas[choice] += 1
        self._placed[key] = self.queues[choice]
        return self.queues[choice]

    # --- moves between directories ---

    def begin_move(self, target: DirectoryQueue) -> None:
        """A copy counts as a replica of its directory, as in Kafka."""
        self._replicas[target.directory_id] += 1

    def end_move(self, target: DirectoryQueue) -> None:
        """There is no copy any more."""
        self._replicas[target.directory_id] -= 1

    def moved(self, replica: HostedReplica, source: DirectoryQueue, target: DirectoryQueue, name: str) -> None:
        """The copy is the log now. name: the source's, to be freed."""
        key = replica.key
        self._replicas[source.directory_id] -= 1
        self._placed[key] = target
        if key in self._found:
            self._found[key] = (target, (replica.topic, key[1]))
        self.free(source, name, replica.config.file_delete_delay_ms / 1000)

    def free(self, queue: DirectoryQueue, name: str, delay_s: float) -> None:
        """Free a directory that is marked DELETE."""
        self._removals[queue.directory_id].later(name, delay_s)

    @property
    def any_offline(self) -> bool:
        return any(not life.is_online for life in self._lives)

    # --- leaving ---

    def set_strays_aside(self, strays: Sequence[PartitionKey]) -> None:
        """Called once: partitions that the metadata does not give to this broker, and those without a topic id."""
        for place in [*(self._found.pop(key) for key in strays), *self._unowned]:
            self.strays += 1
            self._move_found(place, STRAY, 0)
        self._unowned.clear()

    def delete_found(self, key: PartitionKey, delay_s: float) -> None:
        """A partition found at start, whose topic was deleted: free it after the delay."""
        self._move_found(self._found.pop(key), DELETE, delay_s, key[0])

    def let_go(self, replica: HostedReplica, mark: str) -> None:
        """Close the log and rename its directory. DELETE: free it after `file.delete.delay.ms`.

        Where the directory is offline nothing happens; the next start finds the partition again.
        """
        self.strays += mark == STRAY
        self._found.pop(replica.key, None)
        self._placed.pop(replica.key, None)
        self.on_leaving(replica.key)
        exchange = replica.exchange
        if exchange is None:
            self._let_go(replica, mark)
            return
        self._leaving += 1  # until it is known in which of the two directories it lies

        def leave(queue: DirectoryQueue) -> None:
            if replica.queue is queue:
                self._leaving -= 1
                self._let_go(replica, mark)

        for queue in (exchange.source, exchange.target):
            queue.handed_over.when_here((replica.topic, replica.key[1]), partial(leave, queue))

    def _let_go(self, replica: HostedReplica, mark: str) -> None:
        queue = replica.queue
        if queue is None:
            self._leaving += 1
            return
        self._replicas[queue.directory_id] -= 1
        if not queue.is_usable and replica.partition_log is not None:
            replica.partition_log.log.give_up()  # nobody else will close it; the next start finds its files
        partition = (replica.topic, replica.key[1])
        work = partial(_move_away, replica, queue.directory.partitions, self.fresh_id(), mark)
        self._leave(queue, partition, work, replica.config.file_delete_delay_ms / 1000)

    @property
    def has_let_go(self) -> bool:
        """Every partition that had to leave has left, in every entry of `log.dirs`.

        A directory that is offline may hold some; once it was, only the next start can tell.
        """
        all_serve = len(self.queues) == len(self._lives) and all(queue.is_usable for queue in self.queues.values())
        return all_serve and not self._leaving and not self.refused

    def _move_found(self, place: _Place, mark: str, delay_s: float, topic_id: Uuid | None = None) -> None:
        queue, partition = place
        directories, unique = queue.directory.partitions, self.fresh_id()
        if topic_id is None:
            work = partial(directories.move_away, partition, unique, mark)
        else:
            work = partial(_move_if_ours, directories, partition, topic_id, unique, mark)
        self._leave(queue, partition, work, delay_s)

    def _leave(self, queue: DirectoryQueue, partition: TopicPartition, work: Callable[[], str], delay_s: float) -> None:
        """work: renames, and returns the new name. It waits for a job that has the files."""
        self._leaving += 1
        queue.handed_over.leaves(partition)

        leaving = queue.run(work, Lane.BACKGROUND, files=partition)
        queue.start(self._has_left(queue, partition, leaving, delay_s), f"free {partition[0]}-{partition[1]}")

    async def _has_left(
        self, queue: DirectoryQueue, partition: TopicPartition, leaving: Awaitable[str], delay_s: float
    ) -> None:
        try:
            name = await leaving
        except Exception:
            return  # told by the queue; the next start finds the partition again
        finally:
            queue.handed_over.has_left(partition)
        self._leaving -= 1
        if name.endswith(f"-{DELETE}"):
            self._removals[queue.directory_id].later(name, delay_s)

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

    async def close(self, replicas: Iterable[HostedReplica]) -> frozenset[str]:
        """Sync and close every log, then write the checkpoints. Returns the paths of the directories left in order.

        All directories at once: one that hangs holds none of the others.
        """
        for removals in self._removals.values():
            removals.close()
        return await all_at_once({one.directory.path: self._close(one, held) for one, held in self._by_queue(replicas)})

    async def _close(self, queue: DirectoryQueue, held: Sequence[HostedReplica]) -> bool:
        """True if the directory was left in order."""
        await queue.all_given_back()
        marks = _high_watermarks(held)
        is_closed = await _done(queue, close_logs(queue, partial(_open_logs, held)))
        work = partial(_checkpoint_all, queue.directory.partitions, held, marks)
        return is_closed and await _settle(queue, work) and self._is_left_clean(queue, held)

    def _is_left_clean(self, queue: DirectoryQueue, held: Sequence[HostedReplica]) -> bool:
        found = {key for key, place in self._found.items() if place[0] is queue}
        is_copy_left = any(one.queue is queue for one in self.futures.by_key.values())  # of a move that was not opened
        is_unknown = self._unread.get(queue.directory_id) != 0 or self.refused or self._leaving or is_copy_left
        return is_left_clean(queue, held, found, all_known=not is_unknown)

    def _by_queue(self, replicas: Iterable[HostedReplica]) -> list[tuple[DirectoryQueue, list[HostedReplica]]]:
        held: dict[Uuid, list[HostedReplica]] = {
            queue.directory_id: [] for queue in self.queues.values() if queue.is_usable
        }
        for replica in replicas:
            if replica.queue is not None and replica.queue.directory_id in held:
                held[replica.queue.directory_id].append(replica)
        return [(self.queues[directory_id], ours) for directory_id, ours in held.items()]


# --- on the loop ---


def _path_of(place: _Place) -> str:
    queue, partition = place
    return queue.directory.partitions.path_of(partition)


async def _settle(queue: DirectoryQueue, work: Callable[[], None]) -> bool:
    """False if the directory failed or refused."""
    return await _done(queue, queue.run(work))


async def _done(queue: DirectoryQueue, ending: Awaitable[None]) -> bool:
    """False if the directory failed or refused."""
    try:
        await ending
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
        return _move_if_ours(directories, (replica.topic, replica.key[1]), replica.key[0], unique, mark)
    return log.delete(unique) if mark == DELETE else log.set_aside(unique)


def _move_if_ours(
    directories: PartitionDirectories, partition: TopicPartition, topic_id: Uuid, unique: Uuid, mark: str
) -> str:
    """Returns the new name. What is another topic's is kept."""
    is_ours = directories.belongs_to(partition, topic_id)
    return directories.move_away(partition, unique, mark if is_ours else STRAY)


def _checkpoint_all(
    directories: PartitionDirectories, held: Sequence[HostedReplica], marks: Mapping[PartitionLog, Offset]
) -> None:
    checkpoint_high_watermarks(directories, marks)
    checkpoint_logs(directories, _open_logs(held))


def _open_logs(held: Sequence[HostedReplica]) -> list[PartitionLog]:
    return [replica.partition_log for replica in held if replica.partition_log is not None]
