"""A log directory as replicas use it: a queue of changes, reads beside it, and the moment when it fails.

Everything that changes files goes through the directory's worker, in the order of calls; callbacks come back on the
loop. The first failed write or sync fails the whole directory (storage/directory_life.py).

Directory, worker and queue belong to one generation. When that is over, its queue refuses every call, and what its
worker still answers counts as a failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from broker.logdirs.background_jobs import BackgroundJobs
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import ZERO_UUID, Uuid
from storage.batch import StoredBatch
from storage.directory_life import DirectoryLife, DirectoryOffline, Generation
from storage.log import Log
from storage.log_config import NEVER
from storage.log_errors import LogClosed
from storage.partition_directories import PartitionDirectories
from storage.worker import Answer, Worker, WorkerClosed, WorkerFull
from storage.writer import AppendJob, CallJob, Job, Outcome

T = TypeVar("T")
OnEnded = Callable[[Exception | None], None]  # None: it went well

MAX_FLUSH_MS = 3_600_000  # of `flush.ms`: sooner is allowed, and a timer holds its log, which may be deleted meanwhile
FLUSH_RETRY_MS = 100  # where the queue was full; not `flush.ms`, which may be 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirectory:
    """One generation of one entry of `log.dirs`, opened and locked by the composition root.

    directory_id: zero where meta.properties could not be read. partitions: used in the worker's turns only.
    """

    directory_id: Uuid
    life: DirectoryLife
    generation: Generation
    partitions: PartitionDirectories
    worker: Worker

    def __post_init__(self) -> None:
        self.partitions.on_broken_log = self.generation.fail

    @property
    def path(self) -> str:
        return self.life.path


def offline_ids(directories: Iterable[LogDirectory]) -> list[Uuid]:
    """Of those that are offline now. One whose id could not be read is left out: the controller knows only ids."""
    offline = [entry.directory_id for entry in directories if entry.life.is_offline]
    return [directory_id for directory_id in offline if directory_id != ZERO_UUID]


class DirectoryQueue:
    """on_failed is called at the first failure. From then on every call is refused or fails."""

    def __init__(self, directory: LogDirectory, on_failed: Callable[[DirectoryQueue, Exception], None]) -> None:
        self.directory = directory
        self.generation = directory.generation
        self._on_failed = on_failed
        self._background = BackgroundJobs(self.call, lambda: not self.generation.is_usable)
        self._sync_timers: dict[Log, asyncio.TimerHandle] = {}

    @property
    def is_usable(self) -> bool:
        """True while the directory takes work in this generation."""
        return self.generation.is_usable

    @property
    def directory_id(self) -> Uuid:
        return self.directory.directory_id

    def append(
        self,
        log: Log,
        batches: Sequence[StoredBatch],
        *,
        written: OnEnded | None = None,
        synced: OnEnded,
        gaps: bool = False,
    ) -> None:
        """Raises ApiError where nothing was queued. synced: also where the topic asks for no sync; then soon.

        written: None if records must not be read before they are synced. gaps: see `AppendJob`.
        """
        on_written = None if written is None else self._answer_to(written)
        self._submit(AppendJob(log, batches, gaps), on_written, self._answer_to(synced))
        if log.config.flush_ms < NEVER and not log.config.durable:
            self._sync_later(log, min(log.config.flush_ms, MAX_FLUSH_MS))

    def call(self, work: Callable[[], T], *, done: Callable[[T], None], failed: OnEnded) -> None:
        """Run `work` in the worker, in the order of calls. One of done and failed is called. Raises ApiError.

        `work` makes its changes durable itself.
        """

        def answered(outcome: Outcome) -> None:
            error = self._error_of(outcome)
            if error is None:
                done(outcome.value)
            else:
                failed(error)

        self._submit(CallJob(work), answered, None)

    def _sync_later(self, log: Log, delay_ms: int) -> None:
        """For `flush.ms`, the longest time from the first append that is not synced. One timer for each log."""
        if log not in self._sync_timers:
            loop = asyncio.get_running_loop()
            self._sync_timers[log] = loop.call_later(delay_ms / 1000, self._sync_now, log)

    def _sync_now(self, log: Log) -> None:
        del self._sync_timers[log]
        if not self.generation.is_usable:
            return
        try:
            self.directory.worker.submit(CallJob(log.request_sync, (log,)), None, self._answer_to(lambda _: None))
        except WorkerFull:
            self._sync_later(log, FLUSH_RETRY_MS)
        except WorkerClosed:
            pass  # closing a log syncs it

    def run_in_background(self, work: Callable[[], T], *, done: Callable[[T], None], failed: OnEnded) -> None:
        """`call` for jobs that come by the thousand (`background_jobs.py`). Never raises: `failed` gets the reason."""
        self._background.add(work, done, failed)

    def hurry(self) -> None:
        """From now on background jobs enter the worker's queue at once. Called before the last call of all."""
        self._background.hurry()

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
        if not self.generation.is_usable:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"log directory {self.directory.path} is offline")

    def _answer_to(self, on_ended: OnEnded) -> Answer:
        generation = self.generation

        def answered(outcome: Outcome) -> None:
            if outcome.error is None and not generation.is_over:
                on_ended(None)
            else:
                on_ended(self._error_of(outcome))

        return answered

    def _error_of(self, outcome: Outcome) -> Exception | None:
        """None for a success of a generation that is not over. on_failed is called first if the directory failed."""
        error = outcome.error
        if error is None:
            return self.generation.failure if self.generation.is_over else None
        if _fails_the_directory(error) and self.directory.life.fail(error, self.generation):
            self._on_failed(self, error)
        return error


def _fails_the_directory(error: Exception) -> bool:
    """A log that is closed without a cause was closed by us: it was deleted, or the broker stops."""
    return isinstance(error, DirectoryOffline) or (isinstance(error, LogClosed) and error.cause is not None)
