"""Prepares a replica's log for a leader epoch: opens it, then lets it lead or follow.

One job in the directory's worker, after every append that an earlier leadership has queued. If the epoch is over when
the job is done, the core ignores the result; the next epoch has queued its own job already.

A log that is on the disk is opened before that, by a job beside the writer: appends to other logs go on while it is
recovered, and some logs of each directory are opened at once. The job has the partition's files until the log is given
to the writer. A log may be opened before any epoch is known. An epoch that comes meanwhile is served by
the same opening, so that a partition is followed as soon as its log is open, and not behind the last log of the
directory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from quorumlog.errors import ApiError
from quorumlog.ids import Epoch, Offset
from quorumlog.topic_name import is_internal
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.logdirs.log_directory import DirectoryQueue, Lane
from quorumlog_broker.partition.events import LogFailed, LogReady
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica, Step, log_config
from quorumlog_storage.directory.offset_files import TopicPartition
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogClosed, LogUnreadable
from quorumlog_storage.producers.transactions import Unstable
from quorumlog_storage.recovery.recovery import ScanProgress
from quorumlog_storage.writer.directory_life import DirectoryOffline

RETRY_MS = 1_000  # of a log that could not be opened or prepared because too many files are open

_log = logging.getLogger("quorumlog.broker")


@dataclass(frozen=True, slots=True)
class _Ready:
    log: PartitionLog
    log_start: Offset
    end_offset: Offset
    epoch_start: Offset
    unstable: Unstable


@dataclass(slots=True)
class _Opening:
    """The opening of a log. The loop writes the goal, the writer reads it once."""

    replica: Replica
    queue: DirectoryQueue
    goal: tuple[Epoch, bool]  # the newest epoch, and whether this broker leads in it
    progress: ScanProgress = field(default_factory=ScanProgress)
    begun_with: tuple[Epoch, bool] | None = None  # None: the writer's job has not begun

    def load(self) -> Log:
        """Beside the writer."""
        replica, config = self.replica, log_config(self.replica.config)
        directories = self.queue.directory.partitions
        return PartitionLog.load(directories, self.partition, replica.key[0], config, self.progress, defers_sync=True)

    def adopt(self, log: Log) -> _Ready:
        """In the writer. The log's sync is left to the end of the turn."""
        replica = self.replica
        replica.partition_log = PartitionLog.adopt(self.queue.directory.partitions, self.partition, replica.key[0], log)
        return self.make_ready(defers_sync=True)

    def make_ready(self, *, defers_sync: bool = False) -> _Ready:
        """In the writer."""
        goal = self.goal
        self.begun_with = goal
        return _make_ready(self.replica, *goal, defers_sync=defers_sync)

    @property
    def partition(self) -> TopicPartition:
        return self.replica.topic, self.replica.key[1]


class Leaderships:
    def __init__(
        self,
        registry: Registry,
        step: Step,
        *,
        is_found: Callable[[PartitionKey], bool],
        follow: Callable[[Replica], None],
        opened: Callable[[Replica], None],
        settled: Callable[[PartitionKey], None],
        on_failed: Callable[[], None],
    ) -> None:
        """is_found: the log was on a disk at the start. follow: the log is ready to take fetched records.

        opened: called once for each log, before `settled`. settled: the log is open, though perhaps for an epoch that
        is over, or it cannot be opened. on_failed: a replica is offline because its log cannot be opened.
        """
        self._on_failed = on_failed
        self._is_found = is_found
        self._registry = registry
        self._step = step
        self._follow = follow
        self._opened = opened
        self._settled = settled
        self._openings: dict[Replica, _Opening] = {}  # that have not ended; only looked up
        self._closed = False

    def close(self) -> None:
        self._closed = True

    def open(self, replica: Replica) -> None:
        """Open the log of a replica whose core knows no leader epoch yet. The core learns where the log ends."""
        if self._closed or replica.queue is None or replica in self._openings or replica.log is not None:
            return
        self._begin(_Opening(replica, replica.queue, (replica.core.leader_epoch, False)))

    def progress(self) -> dict[DirectoryQueue, list[ScanProgress]]:
        """Of the logs that are being opened now."""
        found: dict[DirectoryQueue, list[ScanProgress]] = {}
        for opening in self._openings.values():
            found.setdefault(opening.queue, []).append(opening.progress)
        return found

    def _begin(self, opening: _Opening) -> None:
        self._openings[opening.replica] = opening
        opening.queue.start(self._open(opening), f"open {opening.replica.name}")

    async def _open(self, opening: _Opening) -> None:
        replica = opening.replica
        try:
            ready = await self._make_log(opening)
        except Busy:
            await asyncio.sleep(RETRY_MS / 1000)  # the node has no descriptors or memory to spare now
            if self._is_current(replica):
                self.open(replica)
                self.prepare(replica, *opening.goal)
        except Exception as error:
            self._cannot_open(replica, error)
        else:
            if ready is None:
                return
            assert opening.begun_with is not None
            self._ready(replica, opening.begun_with[0], ready)
            if opening.goal != opening.begun_with:  # the goal came while the log was being opened
                self.prepare(replica, *opening.goal)

    async def _make_log(self, opening: _Opening) -> _Ready | None:
        """What is not on a disk is made by the writer. None: nobody wants it any more."""
        queue, replica = opening.queue, opening.replica
        try:
            with await queue.lend(opening.partition) as files:
                if self._closed or not self._is_current(replica):
                    return None
                if replica.partition_log is not None or not self._is_found(replica.key):
                    making = queue.run(opening.make_ready, _lane(replica, queue))
                else:
                    log = await files.run(opening.load)
                    if self._closed or not self._is_current(replica):
                        log.give_up()
                        return None
                    # The writer gets the log before what has waited for the files, such as their deletion.
                    making = queue.run(partial(opening.adopt, log), Lane.BACKGROUND, syncs=log)
            return await making
        finally:
            del self._openings[replica]

    def prepare(self, replica: Replica, epoch: Epoch, leads: bool) -> None:
        """Make the log ready for `epoch`, then tell the core LogReady, or LogFailed."""
        queue = replica.queue
        if self._closed or queue is None or replica.core.leader_epoch != epoch or not self._is_current(replica):
            return
        if replica.exchange is not None:
            replica.exchange.waiting.append(partial(self.prepare, replica, epoch, leads))
            return
        if replica in self._openings:
            self._openings[replica].goal = (epoch, leads)
            return
        if replica.log is None and replica.partition_log is None:
            self._begin(_Opening(replica, queue, (epoch, leads)))
            return
        preparing = queue.run(lambda: _make_ready(replica, epoch, leads), _lane(replica, queue))
        queue.start(self._prepare(replica, epoch, leads, preparing), f"prepare {replica.name}")

    async def _prepare(self, replica: Replica, epoch: Epoch, leads: bool, preparing: Awaitable[_Ready]) -> None:
        try:
            ready = await preparing
        except Busy:
            await asyncio.sleep(RETRY_MS / 1000)
            self.prepare(replica, epoch, leads)  # while the epoch lasts
        except Exception as error:
            self._cannot_open(replica, error)
        else:
            self._ready(replica, epoch, ready)

    def _cannot_open(self, replica: Replica, error: Exception) -> None:
        """A directory that failed, or a log that cannot be read, has failed its replicas already.

        Any other error concerns this log alone; the controller learns of it in the same way (unreadable.py).
        """
        if not isinstance(error, DirectoryOffline | LogClosed | LogUnreadable | ApiError) and self._is_current(replica):
            _log.error("%s cannot be opened: %s", replica.name, error)
            self._step(replica, LogFailed())
            self._on_failed()
        self._settled(replica.key)

    def _ready(self, replica: Replica, epoch: Epoch, ready: _Ready) -> None:
        if not self._is_current(replica):
            return
        if replica.log is None:
            self._opened(replica)
        replica.log = ready.log.log
        is_wanted = epoch == replica.core.leader_epoch
        if is_wanted:
            replica.next_offset = ready.end_offset
            replica.series += 1
            replica.sequences.clear()
        self._step(
            replica,
            LogReady(
                leader_epoch=epoch,
                log_start=ready.log_start,
                end_offset=ready.end_offset,
                synced_end=min(ready.log.log.synced_end, ready.end_offset),
                epoch_start=ready.epoch_start,
                high_watermark=ready.log.high_watermark,
                unstable=ready.unstable,
            ),
        )
        if is_wanted and replica.core.is_follower:
            self._follow(replica)
        self._settled(replica.key)

    def _is_current(self, replica: Replica) -> bool:
        return self._registry.replicas.get(replica.key) is replica


def _lane(replica: Replica, queue: DirectoryQueue) -> Lane:
    """Coordinators load once their log is ready, which may not wait until a large topic is made. What leaves under
    the same name goes before.
    """
    goes_first = is_internal(replica.topic) and not queue.handed_over.is_leaving((replica.topic, replica.key[1]))
    return Lane.BACKGROUND_FIRST if goes_first else Lane.BACKGROUND


def _make_ready(replica: Replica, epoch: Epoch, leads: bool, *, defers_sync: bool = False) -> _Ready:
    """In the directory's worker. All its changes are durable when it returns; defers_sync: when the turn has ended."""
    partition_log, config = replica.partition_log, log_config(replica.config)
    if partition_log is None:
        assert replica.queue is not None
        directories = replica.queue.directory.partitions
        partition = (replica.topic, replica.key[1])
        partition_log = PartitionLog.open_or_create(directories, partition, replica.key[0], config)
        replica.partition_log = partition_log
    elif partition_log.log.config != config:  # they changed while it was loaded, and nobody could tell it
        partition_log.configure(config)
    if leads:
        epoch_start = partition_log.lead(epoch, defers_sync=defers_sync)
    else:
        epoch_start = -1
        partition_log.follow(defers_sync=defers_sync)
    view = partition_log.log.view
    return _Ready(partition_log, view.start_offset, view.end_offset, epoch_start, view.unstable)
