"""A log directory as replicas use it: a queue of changes, reads beside it, and the moment when it fails.

Everything that changes files goes through the directory's worker, in the order of calls; callbacks come back on the
loop. The first failed write or sync takes the whole directory offline, for good (DESIGN 6).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from broker.logdirs.background_jobs import BackgroundJobs
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Uuid
from storage.batch import StoredBatch
from storage.checkpoint import RecoveryPoints
from storage.disk import Disk
from storage.log import Log
from storage.log_config import NEVER
from storage.log_errors import LogClosed
from storage.log_starts import LogStarts
from storage.worker import Answer, Worker, WorkerClosed, WorkerFull
from storage.writer import AppendJob, CallJob, DirectoryOffline, Job, Outcome, TruncateJob

T = TypeVar("T")
Told = Callable[[Exception | None], None]  # None: it went well

MAX_FLUSH_MS = 3_600_000  # of `flush.ms`: sooner is allowed, and a timer holds its log, which may be deleted meanwhile
FLUSH_RETRY_MS = 100  # where the queue was full; not `flush.ms`, which may be 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirectory:
    """One entry of `log.dirs`, opened and locked by the composition root.

    recovery_points: the same object that the worker's DirectoryWriter has; used in the worker's turns only.
    clean: its last stop was clean (the marker was there, and has been removed since).
    online: False where opening failed; its partitions are offline until a restart.
    """

    directory_id: Uuid
    path: str
    disk: Disk
    worker: Worker
    recovery_points: RecoveryPoints
    clean: bool = False
    online: bool = True


class DirectoryQueue:
    """`failed` is set, and `on_failed` called, at the first failure; from then on every call is refused or told so."""

    def __init__(self, directory: LogDirectory, on_failed: Callable[[DirectoryQueue, Exception], None]) -> None:
        self.directory = directory
        self.failed = not directory.online
        self._on_failed = on_failed
        self._gentle = BackgroundJobs(self.call, lambda: self.failed)
        self._sync_timers: dict[Log, asyncio.TimerHandle] = {}
        self.log_starts = LogStarts(directory.disk, directory.path)  # used in the worker's turns only

    @property
    def directory_id(self) -> Uuid:
        return self.directory.directory_id

    def append(
        self,
        log: Log,
        batches: Sequence[StoredBatch],
        *,
        written: Told | None = None,
        synced: Told,
        gaps: bool = False,
    ) -> None:
        """Raises ApiError where nothing was queued. synced: also where the topic asks for no sync; then soon.

        written: None where nobody may read what is not synced yet. gaps: see `AppendJob`.
        """
        on_written = None if written is None else self._told(written)
        self._submit(AppendJob(log, batches, gaps), on_written, self._told(synced))
        if log.config.flush_ms < NEVER and not log.config.durable:
            self._sync_later(log, min(log.config.flush_ms, MAX_FLUSH_MS))

    def truncate(self, log: Log, offset: int, *, told: Told) -> None:
        """Durable when told."""
        self._submit(TruncateJob(log, offset), self._told(told), None)

    def call(self, work: Callable[[], T], *, done: Callable[[T], None], failed: Told) -> None:
        """Run `work` in its turn; it makes durable itself what has to be. One of done and failed is called."""

        def answered(outcome: Outcome) -> None:
            if outcome.error is None:
                done(outcome.value)
            else:
                self._look_at(outcome.error)
                failed(outcome.error)

        self._submit(CallJob(work), answered, None)

    def _sync_later(self, log: Log, delay_ms: int) -> None:
        """`flush.ms`: at the latest so long after the first append that is not synced. One timer for each log."""
        if log not in self._sync_timers:
            loop = asyncio.get_running_loop()
            self._sync_timers[log] = loop.call_later(delay_ms / 1000, self._sync_now, log)

    def _sync_now(self, log: Log) -> None:
        del self._sync_timers[log]
        if self.failed:
            return
        try:
            self.directory.worker.submit(CallJob(log.request_sync, (log,)), None, self._told(lambda _: None))
        except WorkerFull:
            self._sync_later(log, FLUSH_RETRY_MS)
        except WorkerClosed:
            pass  # closing a log syncs it

    def run_in_background(self, work: Callable[[], T], *, done: Callable[[T], None], failed: Told) -> None:
        """`call` for jobs that come by the thousand (`background_jobs.py`). Never raises: `failed` gets the reason."""
        self._gentle.add(work, done, failed)

    def hurry(self) -> None:
        """From now on gentle calls are in the queue before what is called behind them. Before the last call of all."""
        self._gentle.hurry()

    async def settle(self, work: Callable[[], T]) -> T:
        """`call`, awaited. Raises what `work` raises, DirectoryOffline, or ApiError."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.call(
            work,
            done=lambda result: None if future.done() else future.set_result(result),
            failed=lambda error: None if future.done() or error is None else future.set_exception(error),
        )
        return await future

    async def read(self, work: Callable[[], T]) -> T:
        """Run `work`, which only reads, in the directory's pool. Raises what it raises, or ApiError."""
        self._refuse_if_failed()
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        try:
            self.directory.worker.read(work, lambda outcome: None if future.done() else future.set_result(outcome))
        except (WorkerFull, WorkerClosed) as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        outcome = await future
        if outcome.error is not None:
            raise outcome.error
        result: T = outcome.value
        return result

    def _submit(self, job: Job, written: Answer | None, synced: Answer | None) -> None:
        self._refuse_if_failed()
        try:
            self.directory.worker.submit(job, written, synced)
        except (WorkerFull, WorkerClosed) as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def _refuse_if_failed(self) -> None:
        if self.failed:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"log directory {self.directory.path} is offline")

    def _told(self, tell: Told) -> Answer:
        def answered(outcome: Outcome) -> None:
            if outcome.error is not None:
                self._look_at(outcome.error)
            tell(outcome.error)

        return answered

    def _look_at(self, error: Exception) -> None:
        if self.failed or not isinstance(error, DirectoryOffline | LogClosed):
            return
        if isinstance(error, LogClosed) and error.cause is None:
            return  # closed by us: deleted, or the broker stops
        self.failed = True
        self._on_failed(self, error)
