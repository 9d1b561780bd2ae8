"""One move of a replica to another log directory of this broker.

    queued -> copying -> assigning -> exchanging -> over

The copy is filled slice by slice: a read in the source's readers, an append in the target's writer, and a pause where
`replica.alter.log.dirs.io.max.bytes.per.second` asks for one. Once it has caught up, the controller is told where the
replica will lie (KIP-858); when the metadata shows it, the two logs are exchanged. The copy is filled until then.

A replica that leaves, is offline, or lies elsewhere ends the move. A target that fails does, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from quorumlog.clock import Clock
from quorumlog.errors import ApiError
from quorumlog.ids import Offset, Uuid
from quorumlog.records import CorruptRecords
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.logdirs.log_directory import DirectoryQueue
from quorumlog_broker.logdirs.partition_store import PartitionStore
from quorumlog_broker.moves.exchange import RETRY_MS, exchange
from quorumlog_broker.moves.progress import MoveProgress, Phase, Rate, eta_s
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica, Step, log_config
from quorumlog_storage.cleaning.throttle import Throttle
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.files.names import STRAY
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogClosed, LogUnreadable, UnexpectedAppend
from quorumlog_storage.log.log_view import OffsetOutOfRange
from quorumlog_storage.moves import steps
from quorumlog_storage.moves.future_log import FutureLog
from quorumlog_storage.moves.promotion import copied_batches
from quorumlog_storage.segment.batch import StoredBatch
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.writer.directory_life import DirectoryOffline

SLICE_BYTES = 1 << 20  # read and appended at once; one batch may be larger
NOTE_BYTES = 256 << 20  # after which it is noted how far the copy is synced: a restart goes on there
POLL_MS = 20  # while the copy has caught up and the metadata does not show its directory yet

_log = logging.getLogger("quorumlog.broker")

OVER = (ApiError, DirectoryOffline, DiskError, LogUnreadable, LogClosed, CorruptRecords)


class Mover:
    """Used on the loop. phase, problem, future: to read."""

    def __init__(
        self,
        replica: Replica,
        target: DirectoryQueue,
        name: str,
        *,
        is_found: bool,
        registry: Registry,
        store: PartitionStore,
        clock: Clock,
        throttle: Callable[[], Throttle],
        step: Step,
        on_promise: Callable[[], None],
    ) -> None:
        """name: of the `-future` directory. is_found: an earlier process left it.

        throttle: of all moves together. on_promise: the controller has to be told of `promised`.
        """
        assert replica.queue is not None
        self.replica, self.source, self.target, self.name = replica, replica.queue, target, name
        self.phase = Phase.QUEUED
        self.problem = ""
        self.future: FutureLog | None = None
        self.opened: Log | None = None  # the future log's, from a moment before `future` on
        self.task: asyncio.Task[None] | None = None
        self._is_found = is_found
        self._registry, self._store, self._clock = registry, store, clock
        self._throttle, self._step, self._on_promise = throttle, step, on_promise
        self._rate = Rate(clock.now_ms())
        self._unnoted = 0
        self.partition = (replica.topic, replica.key[1])
        self.is_stopped = False  # it ends after the step that is under way
        self.is_over = False  # the future log is promoted, deleted, or another one's to use
        self.created: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._topic_id = replica.key[0]

    @property
    def key(self) -> PartitionKey:
        return self.replica.key

    @property
    def promised(self) -> Uuid | None:
        """The directory that the controller has to know before the exchange."""
        return self.target.directory_id if self.phase in (Phase.ASSIGNING, Phase.EXCHANGING) else None

    @property
    def has_exchanged(self) -> bool:
        """The source has left: the replica lies in the target."""
        return self.replica.queue is self.target

    @property
    def can_go_on(self) -> bool:
        replica = self.replica
        is_here = self._registry.replicas.get(replica.key) is replica and replica.queue is self.source
        return is_here and replica.is_usable and self.target.is_usable and not self.is_stopped

    def progress(self) -> MoveProgress:
        log, future = self.replica.log, self.future
        lag = bytes_left = size = 0
        if log is not None:
            copied = 0 if future is None else future.log.end_offset
            size = 0 if future is None else future.log.size_bytes
            lag = max(0, log.end_offset - max(copied, log.start_offset))
            bytes_left = max(0, log.size_bytes - size) if lag else 0
        rate = self._rate.per_s(self._clock.now_ms())
        return MoveProgress(
            topic=self.replica.topic,
            index=self.replica.key[1],
            source=self.source.directory.path,
            target=self.target.directory.path,
            phase=self.phase,
            size_bytes=size,
            lag=lag,
            bytes_left=bytes_left,
            eta_s=eta_s(bytes_left, rate),
            problem=self.problem,
        )

    async def create(self) -> None:
        """Make the future log, unless an earlier process has. Raises what a job of the target raises."""
        if not self._is_found:
            log = self.replica.log
            assert log is not None
            await self.target.run(partial(self._make, log_config(self.replica.config), log.start_offset))

    async def run(self) -> bool:
        """Copy, and exchange. True: the replica has moved. False: it went away. Raises `OVER` where the move failed."""
        self.phase = Phase.COPYING
        if self.future is None:
            await self._open()
        while self.can_go_on:
            try:
                if await self._go_on():
                    return True
            except Busy as busy:
                self.problem = str(busy)
                await asyncio.sleep(RETRY_MS / 1000)
            except UnexpectedAppend as error:
                self.problem = str(error)
                assert self.future is not None
                await self._start_over(self.future)
            else:
                self.problem = ""
        return False

    async def _open(self) -> None:
        with await self.target.lend(self.partition) as files:
            await files.run(partial(self._load, log_config(self.replica.config)))
        await self.target.run(self._adopt)

    # --- jobs of the target: each notes what it opens itself, because its caller may be cancelled meanwhile ---

    def _make(self, config: LogConfig, start_offset: Offset) -> None:
        here = self.target.directory.partitions
        here.move_away(self.partition, self._store.fresh_id(), STRAY)  # an older copy, if one is there
        self.future = FutureLog.create(here, self.partition, self._topic_id, self.name, config, start_offset)
        self._opens(self.future.log)

    def _load(self, config: LogConfig) -> None:
        here = self.target.directory.partitions
        self._opens(FutureLog.load(here, self.partition, self._topic_id, self.name, config))

    def _adopt(self) -> None:
        assert self.opened is not None
        here = self.target.directory.partitions
        self.future = FutureLog.adopt(here, self.partition, self._topic_id, self.name, self.opened)

    def _opens(self, log: Log) -> None:
        self.opened = log
        if self.is_over:  # its directory has failed
            log.give_up()

    async def _go_on(self) -> bool:
        """One step. True: the logs were exchanged."""
        log, future = self.replica.log, self.future
        assert future is not None
        if log is None:
            await asyncio.sleep(POLL_MS / 1000)
            return False
        cuts, end = log.cuts, log.end_offset
        step = steps.next_step(steps.span_of(log), steps.span_of(future.log))
        match step:
            case steps.StartOver():
                await self._start_over(future)
            case steps.Restart(offset):
                await self.target.run(partial(future.restart_at, offset))
            case steps.Cut(offset):
                await self.target.run(partial(future.cut, offset))
            case steps.RaiseStart(offset):
                await self.target.run(partial(future.raise_start, offset))
            case steps.Read(offset):
                await self._copy(log, cuts, future, offset)
        if future is self.future and future.log.end_offset >= end and not isinstance(step, steps.StartOver):
            return await self._caught_up(future, log)
        return False

    async def _copy(self, log: Log, cuts: int, future: FutureLog, offset: int) -> None:
        if self.target.space.is_short:
            raise Busy(self.target.space.describe(self.target.directory.path))
        try:
            batches = await self.source.read(partial(copied_batches, log, offset, SLICE_BYTES))
        except OffsetOutOfRange:
            return  # records were deleted or cut meanwhile
        if log.cuts != cuts or self.replica.log is not log or not batches:
            return  # what was read may be gone from the source
        await self._append(future, batches)
        size = sum(batch.size for batch in batches)
        now_ms = self._clock.now_ms()
        self._rate.moved(size, now_ms)
        self._unnoted += size
        if self._unnoted >= NOTE_BYTES:
            self._unnoted = 0
            await self.target.run(future.note)
        delay_ms = self._throttle().delay_ms(size, now_ms)
        if delay_ms > 0:
            await asyncio.sleep(delay_ms / 1000)

    async def _append(self, future: FutureLog, batches: list[StoredBatch]) -> None:
        """In the group commit of the target's writer, but for a first batch that begins before the log's start."""
        if batches[0].base_offset < future.log.end_offset:
            await self.target.run(partial(future.append, batches))
            return
        synced: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def ended(error: Exception | None) -> None:
            if not synced.done():
                synced.set_result(None) if error is None else synced.set_exception(error)

        self.target.append(future.log, batches, synced=ended, gaps=True)
        await synced

    async def _start_over(self, future: FutureLog) -> None:
        target, unique = self.target, self._store.fresh_id()
        name = await target.run(partial(future.delete, unique))
        self._store.free(target, name, 0)
        self.future, self.opened, self._is_found = None, None, False
        await self.create()

    async def _caught_up(self, future: FutureLog, log: Log) -> bool:
        if self.phase is Phase.COPYING:
            self.phase = Phase.ASSIGNING
            self._on_promise()
        if self.replica.assigned != self.target.directory_id:
            await asyncio.sleep(POLL_MS / 1000)
            return False
        self.phase = Phase.EXCHANGING
        try:
            return await asyncio.shield(self._exchange(future))
        finally:
            if self.phase is Phase.EXCHANGING:
                self.phase = Phase.ASSIGNING

    async def _exchange(self, future: FutureLog) -> bool:
        return await exchange(self.replica, self.target, future, self._store, self._step)
