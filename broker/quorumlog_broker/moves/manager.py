"""The moves of this broker's replicas between its log directories: what may be asked, and what a start goes on with.

Rules, as in Kafka (`ReplicaManager.alterReplicaLogDirs`, KIP-113):

- A request for the directory in which the replica lies cancels its move. The same target again changes nothing, another
  one replaces the move.
- A replica that is not here yet is made in the directory that was asked for; the answer is REPLICA_NOT_AVAILABLE.
- A directory that is cordoned takes no replica, also none that is made later (KIP-1066).
- While a log directory is offline no move begins: its future logs could be of the same partitions.
- A move survives a restart: the future log is found and filled further. That of a compacted log begins anew: while the
  copy lay in a directory that was offline, its source was compacted, and the copy would bring back a deleted key whose
  tombstone has left the source.
- The cleaner leaves a log alone while it is moved.

`num.replica.alter.log.dirs.threads` moves copy at the same time; the others wait, with their future logs made.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

from quorumlog.clock import Clock
from quorumlog.configs.directory import CORDONED
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Uuid
from quorumlog.nursery import Nursery
from quorumlog.settings.moves import MovesConfig
from quorumlog_broker.cleaning.manager import is_compacted
from quorumlog_broker.cleaning.states import CleaningStates
from quorumlog_broker.logdirs.failures import offline_error
from quorumlog_broker.logdirs.found_futures import FoundFuture
from quorumlog_broker.logdirs.log_directory import DirectoryQueue, Lane, LogDirectory
from quorumlog_broker.logdirs.partition_store import PartitionStore
from quorumlog_broker.moves.mover import OVER, Mover
from quorumlog_broker.moves.progress import MoveProgress, Phase
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.directory_report import FutureCopy
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica, Step
from quorumlog_storage.cleaning.throttle import Throttle
from quorumlog_storage.files.names import DELETE
from quorumlog_storage.log.log import Log
from quorumlog_storage.moves.future_log import delete_future, future_name

_log = logging.getLogger("quorumlog.broker")


class Moves:
    """Used on the loop. ended, failed: how many moves since the start."""

    def __init__(
        self,
        directories: Sequence[LogDirectory],
        registry: Registry,
        store: PartitionStore,
        cleaning: CleaningStates,
        clock: Clock,
        config: MovesConfig,
        step: Step,
        nursery: Nursery,
    ) -> None:
        self._directories = directories
        self._registry, self._store, self._cleaning, self._clock = registry, store, cleaning, clock
        self._step, self._nursery = step, nursery
        self._movers: dict[PartitionKey, Mover] = {}
        self._in_file = self._asked = config.bytes_per_s
        self.set_rate(config.bytes_per_s)
        self._places = asyncio.Semaphore(config.threads or max(1, len(directories)))
        self._cancelled: set[PartitionKey] = set()  # whose future log lies in a directory that is offline
        self._closed = False
        self.ended = self.failed = 0
        store.on_leaving = self._leaving
        self.on_promises_changed: Callable[[], None] = _nobody

    def set_rate(self, bytes_per_s: float) -> None:
        """Of all moves together, from now on."""
        self._throttle = Throttle(bytes_per_s)

    def settings_changed(self, rate: int | None) -> None:
        """rate: as it is set while brokers run; None: that of the file counts."""
        asked = self._in_file if rate is None else float(rate)
        if asked != self._asked:
            self._asked = asked
            self.set_rate(asked)

    # --- what may be asked ---

    async def alter(self, topic: str, index: int, path: str) -> None:
        """Move a replica to the log directory `path`, or cancel its move. Returns once the move has begun.

        Raises ApiError: LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR, INVALID_REPLICA_ASSIGNMENT, REPLICA_NOT_AVAILABLE.
        """
        target = self._target(path)
        replica = self._replica(topic, index)
        self._check_cordoned(target, replica)
        if replica is None or (replica.log is None and not replica.core.failed):
            if replica is None:
                self._store.preferred.prefer((topic, index), target.directory_id)
            raise ApiError(
                ErrorCode.REPLICA_NOT_AVAILABLE,
                f"no log of {topic}-{index} is open on this broker; if it is made later, then in {path}",
            )
        if not replica.is_usable:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{replica.name} is offline on this broker")
        mover = self._movers.get(replica.key)
        if mover is not None and mover.target is target:
            return
        await self._end(replica.key)
        if replica.queue is target:
            self._forget_found(replica.key)
            return
        if self._store.any_offline:
            raise ApiError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                "a log directory of this broker is offline; bring it back (quorumlog log-dirs online) before a move",
            )
        self._forget_found(replica.key)
        name = future_name((topic, index), self._store.fresh_id())
        mover = self._begin(replica, target, name, is_found=False)
        try:
            await asyncio.shield(mover.created)
        except ApiError:
            raise
        except OVER as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def _target(self, path: str) -> DirectoryQueue:
        wanted = path.rstrip("/") or path
        for directory in self._directories:
            if directory.path == wanted:
                queue = self._store.queues.get(directory.directory_id)
                if queue is None or not queue.is_usable or not directory.life.is_online:
                    raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"log directory {path} is offline")
                return queue
        paths = ", ".join(directory.path for directory in self._directories)
        raise ApiError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not in log.dirs of this broker: {paths}")

    def _check_cordoned(self, target: DirectoryQueue, replica: Replica | None) -> None:
        """What is there already, or on its way, may stay: to name it again cancels a move, or changes nothing."""
        path = target.directory.path
        mover = None if replica is None else self._movers.get(replica.key)
        is_there = replica is not None and replica.queue is target
        if path in self._store.cordoned and not is_there and (mover is None or mover.target is not target):
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"log directory {path} is cordoned ({CORDONED})")

    def _replica(self, topic: str, index: int) -> Replica | None:
        try:
            return self._registry.find(topic, index)
        except ApiError:
            return None

    # --- what others know ---

    def under_way(self) -> list[MoveProgress]:
        """By topic and partition."""
        return sorted((mover.progress() for mover in self._movers.values()), key=lambda one: (one.topic, one.index))

    def copies(self, directory: DirectoryQueue) -> list[FutureCopy]:
        """What lies in a directory of moves that are under way."""
        here = [mover.progress() for mover in self._movers.values() if mover.target is directory]
        return [FutureCopy(one.topic, one.index, one.size_bytes, one.lag) for one in here]

    def promised(self, key: PartitionKey) -> Uuid | None:
        """The directory that the controller has to know for this replica, before it lies there."""
        mover = self._movers.get(key)
        return None if mover is None else mover.promised

    # --- what happens ---

    def opened(self, replica: Replica) -> None:
        """Its log is open: an earlier process may have been moving it."""
        found = self._store.futures.by_key.get(replica.key)
        if found is None or not found.queue.is_usable or self._closed or replica.key in self._movers:
            return
        if replica.key in self._cancelled or found.queue is replica.queue:
            self._forget_found(replica.key)
            return
        if is_compacted(replica):
            _log.info("%s: its move to %s begins anew: the source may have been compacted since", replica.name,
                      found.queue.directory.path)  # fmt: skip
            self._forget_found(replica.key)
            name = future_name((replica.topic, replica.key[1]), self._store.fresh_id())
            self._begin(replica, found.queue, name, is_found=False)
            return
        del self._store.futures.by_key[replica.key]
        _log.info("%s: its move to %s goes on", replica.name, found.queue.directory.path)
        self._begin(replica, found.queue, found.name, is_found=True)

    def directory_returned(self) -> None:
        for key in list(self._store.futures.by_key):
            replica = self._registry.replicas.get(key)
            if replica is not None and replica.log is not None and replica.is_usable:
                self.opened(replica)

    def directory_failed(self, queue: DirectoryQueue) -> None:
        """Moves from it and to it end. An exchange is told by its own jobs."""
        for mover in self._movers.values():
            if queue in (mover.source, mover.target):
                if not mover.created.done():
                    mover.created.set_exception(offline_error(queue.directory.path))
                self._stop(mover)

    async def close(self) -> None:
        """Let exchanges end, and leave the future logs in order for the next process."""
        self._closed = True
        movers = list(self._movers.values())
        for mover in movers:
            self._stop(mover)
        for mover in movers:
            if mover.task is not None:
                await _end_of(mover.task)
            if mover.future is None and not mover.is_over:  # found, and not opened yet
                self._store.futures.by_key[mover.key] = FoundFuture(mover.target, mover.partition, mover.name)
            if mover.future is not None and not mover.is_over and mover.target.is_usable:
                try:
                    await mover.target.run(mover.future.close)
                except OVER as error:
                    _log.warning("%s: its copy in %s: %s", mover.replica.name, mover.future.path, error)

    # --- details ---

    def _begin(self, replica: Replica, target: DirectoryQueue, name: str, *, is_found: bool) -> Mover:
        mover = Mover(
            replica,
            target,
            name,
            is_found=is_found,
            registry=self._registry,
            store=self._store,
            clock=self._clock,
            throttle=lambda: self._throttle,
            step=self._step,
            on_promise=self._promises_changed,
        )
        self._movers[replica.key] = mover
        self._store.begin_move(target)
        self._cleaning.pause(replica.key)
        mover.task = self._nursery.start(self._run(mover), f"move of {replica.name}")
        return mover

    def _promises_changed(self) -> None:
        self.on_promises_changed()

    async def _run(self, mover: Mover) -> None:
        moved, why = False, "it was cancelled"
        try:
            await mover.create()
            if not mover.created.done():
                mover.created.set_result(None)
            async with self._places:
                moved = await mover.run()
            why = "the replica has left, or its directory has failed"
        except OVER as error:
            why = str(error)
            if not mover.created.done():
                mover.created.set_exception(error)
        finally:
            if not mover.created.done():
                mover.created.set_exception(ApiError(ErrorCode.REQUEST_TIMED_OUT, "the move was replaced or ended"))
            mover.created.exception()  # nobody may be waiting for it
            self._over(mover, moved, why)

    def _over(self, mover: Mover, moved: bool, why: str) -> None:
        key, replica = mover.key, mover.replica
        if self._movers.get(key) is mover:
            del self._movers[key]
        self._cleaning.resume(key)
        if moved:
            mover.is_over = True
            self.ended += 1
            paths = (mover.source.directory.path, mover.target.directory.path)
            _log.info("%s has moved from %s to %s", replica.name, *paths)
        elif not self._closed:
            self.failed += 1
            _log.warning("%s stays in %s: its move to %s is over: %s", replica.name, mover.source.directory.path,
                         mover.target.directory.path, why)  # fmt: skip
            if not mover.has_exchanged:
                self._store.end_move(mover.target)
            self._leave_copy(mover)
        self.on_promises_changed()

    def _leave_copy(self, mover: Mover) -> None:
        """Where the source has failed, its copy stays for the time when that comes back, and is deleted otherwise."""
        if mover.has_exchanged or not mover.target.is_usable:
            mover.is_over = True
            if not mover.has_exchanged and mover.opened is not None:
                mover.opened.give_up()
            return
        is_wanted = self._registry.replicas.get(mover.key) is mover.replica and not mover.source.is_usable
        if not is_wanted:
            self._delete_copy(mover)
            return
        mover.is_over = True
        self._store.futures.by_key[mover.key] = FoundFuture(mover.target, mover.partition, mover.name)
        if mover.future is not None:
            closing = mover.target.run(mover.future.close, Lane.BACKGROUND)
            mover.target.start(_give_up(mover.future.log, closing), f"close the copy of {mover.replica.name}")
        elif mover.opened is not None:
            mover.opened.give_up()

    def _delete_copy(self, mover: Mover) -> None:
        if mover.is_over or mover.has_exchanged:
            return
        mover.is_over = True
        target, unique = mover.target, self._store.fresh_id()

        def delete() -> str:
            if mover.future is not None:
                return mover.future.delete(unique)
            if mover.opened is not None:
                mover.opened.give_up()
            return delete_future(target.directory.partitions, mover.partition, mover.name, unique)

        deleting = target.run(delete, Lane.BACKGROUND, files=mover.partition)
        target.start(self._free(target, deleting), f"free the copy of {mover.replica.name}")

    async def _free(self, target: DirectoryQueue, deleting: Awaitable[str]) -> None:
        with suppress(Exception):  # told by the queue
            self._store.free(target, await deleting, 0)

    def _leaving(self, key: PartitionKey) -> None:
        """The replica's files are about to go: the copy goes first, before a new partition can take its name."""
        self._cancelled.discard(key)
        mover = self._movers.get(key)
        if mover is not None:
            mover.target.handed_over.when_here(mover.partition, partial(self._delete_copy, mover))
            self._stop(mover)
        self._forget_found(key)

    def _forget_found(self, key: PartitionKey) -> None:
        found = self._store.futures.by_key.get(key)
        if found is None:
            return
        if found.queue.is_usable:
            del self._store.futures.by_key[key]
            self._cancelled.discard(key)
            self._store.futures.discard(found, DELETE)
        else:
            self._cancelled.add(key)

    def _stop(self, mover: Mover) -> None:
        """An exchange is not stopped: it ends soon, and the mover after it."""
        mover.is_stopped = True
        if mover.phase is not Phase.EXCHANGING and mover.task is not None:
            mover.task.cancel()

    async def _end(self, key: PartitionKey) -> None:
        mover = self._movers.get(key)
        if mover is not None and mover.task is not None:
            self._stop(mover)
            await _end_of(mover.task)


def _nobody() -> None:
    """No controller has to know."""


async def _give_up(log: Log, closing: Awaitable[None]) -> None:
    with suppress(Exception):  # told by the queue
        await closing
        log.give_up()


async def _end_of(task: asyncio.Task[None]) -> None:
    """Until a task has ended, in whichever way. (`asyncio.wait` keeps a set of tasks, whose order no seed repeats.)"""
    if not task.done():
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task.add_done_callback(lambda _: None if future.done() else future.set_result(None))
        await future
