"""A log directory as replicas use it: a queue of changes, reads beside it, and the moment when it fails.

Everything that changes files goes through the directory's worker, in the order of calls; callbacks come back on the
loop. The first failed write or sync fails the whole directory (storage/directory_life.py).

A queue that is full holds back. It is no error of the disk: what can wait waits with a deadline, and everything else is
refused with `Busy`, which clients retry.

Directory, worker and queue belong to one generation. When the directory fails, its queue refuses every call and tells
the failure to all that wait, because a call that hangs may never return. What the worker still answers counts for
nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from broker.logdirs.background_jobs import BackgroundJobs
from broker.logdirs.busy import Busy
from broker.logdirs.free_space import FreeSpace
from broker.logdirs.read_gate import ReadGate
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import ZERO_UUID, Uuid
from storage.batch import StoredBatch
from storage.directory_life import DirectoryLife, DirectoryOffline, Generation
from storage.disk import DiskError
from storage.failure_rule import Consequence, consequence_of
from storage.log import Log
from storage.log_config import NEVER
from storage.log_errors import LogClosed, LogUnreadable, is_back_pressure
from storage.partition_directories import PartitionDirectories
from storage.worker import Answer, Worker, WorkerClosed, WorkerFull
from storage.writer import AppendJob, CallJob, Job, Outcome

T = TypeVar("T")
OnEnded = Callable[[Exception | None], None]  # None: it went well

MAX_FLUSH_MS = 3_600_000  # of `flush.ms`: sooner is allowed, and a timer holds its log, which may be deleted meanwhile
FLUSH_RETRY_MS = 100  # where the queue was full; not `flush.ms`, which may be 0
SETTLE_RETRY_MS = 50  # of an awaited job where the queue was full
SETTLE_WAIT_MS = 20_000  # after which that is refused
READS_AT_ONCE = 256  # in the queue of the reader threads; far below its limit, and enough to keep them at work
MAX_WAITING_READS = 10_000  # as many as a listener has connections
READ_WAIT_MS = 1_000
MAX_WAITING_SEARCHES = 200
SEARCH_WAIT_MS = 10_000  # for one slice


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
    """on_failed is called at the first failure, before those that wait are told. From then on every call is refused.

    on_unreadable is called each time when a job or a read could not read a log, before its caller is told.
    """

    def __init__(
        self,
        directory: LogDirectory,
        on_failed: Callable[[DirectoryQueue, Exception], None],
        on_unreadable: Callable[[DirectoryQueue, LogUnreadable], None],
    ) -> None:
        self.directory = directory
        self.generation = directory.generation
        self._on_failed = on_failed
        self._on_unreadable = on_unreadable
        self._waiting: dict[object, OnEnded] = {}  # by the answer that ends the wait, in the order of the calls
        directory.life.on_failed(self._fail)
        self._background = BackgroundJobs(self.call, lambda: not self.generation.is_usable)
        self._sync_timers: dict[Log, asyncio.TimerHandle] = {}
        self.space = FreeSpace()
        self.appends = 0  # since the start
        self.has_appended = asyncio.Event()  # set by each append; `space_checks.py` clears it
        path = directory.path
        self._reads = ReadGate(
            f"reads of {path}", at_once=READS_AT_ONCE, max_waiting=MAX_WAITING_READS, max_wait_ms=READ_WAIT_MS
        )
        self._searches = ReadGate(
            f"searches in {path}", at_once=1, max_waiting=MAX_WAITING_SEARCHES, max_wait_ms=SEARCH_WAIT_MS
        )

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
        """Raises ApiError where nothing was queued; Busy where the queue is full.

        synced: also where the topic asks for no sync; then soon.

        written: None if records must not be read before they are synced. gaps: see `AppendJob`.
        """
        self.appends += 1
        self.has_appended.set()
        on_written = None if written is None else self._answer_to(written)
        on_synced = self._last_answer_to(synced)
        self._submit(AppendJob(log, batches, gaps), on_written, on_synced, ends_with=on_synced)
        if log.config.flush_ms < NEVER and not log.config.durable:
            self._sync_later(log, min(log.config.flush_ms, MAX_FLUSH_MS))

    def call(self, work: Callable[[], T], *, done: Callable[[T], None], failed: OnEnded) -> None:
        """Run `work` in the worker, in the order of calls. One of done and failed is called. Raises ApiError, Busy.

        `work` makes its changes durable itself.
        """

        def answered(outcome: Outcome) -> None:
            if self._waiting.pop(answered, None) is None:
                return
            error = self._error_of(outcome)
            if error is None:
                done(outcome.value)
            else:
                failed(error)

        self._waiting[answered] = failed
        self._submit(CallJob(work), answered, None, ends_with=answered)

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
            self.directory.worker.submit(CallJob(log.request_sync, (log,)), None, self._answer_to(_nothing))
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
        """`call`, awaited; a full queue is waited for. Raises what `work` raises, DirectoryOffline, or ApiError."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        for tries_left in reversed(range(SETTLE_WAIT_MS // SETTLE_RETRY_MS)):
            try:
                self.call(
                    work,
                    done=lambda result: None if future.done() else future.set_result(result),
                    failed=lambda error: None if future.done() or error is None else future.set_exception(error),
                )
            except Busy:
                if not tries_left:
                    raise
                await asyncio.sleep(SETTLE_RETRY_MS / 1000)
            else:
                break
        return await future

    def fail(self, cause: Exception) -> None:
        """Take the directory offline, unless it is."""
        self.directory.life.fail(cause, self.generation)

    async def read(self, work: Callable[[], T]) -> T:
        """Run `work`, which only reads, in the directory's pool. Raises what it raises, or ApiError, Busy."""
        return await self._read(self._reads, work)

    async def search(self, work: Callable[[], T]) -> T:
        """`read`, for one slice of a work that may read a whole log: one slice at a time in each directory."""
        return await self._read(self._searches, work)

    async def _read(self, gate: ReadGate, work: Callable[[], T]) -> T:
        await gate.enter()
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def answered(outcome: Outcome) -> None:
            gate.leave()  # also where the reader was cancelled: its thread was at work until now
            if not future.done():
                future.set_result(outcome)

        try:
            self._refuse_if_failed()
            self.directory.worker.read(work, answered)
        except (ApiError, WorkerFull, WorkerClosed) as error:
            gate.leave()
            raise _refusal(error) from error
        self._waiting[future] = lambda _: None if future.done() else future.set_exception(self._offline_error())
        try:
            outcome = await future
        finally:
            self._waiting.pop(future, None)
        if outcome.error is not None:
            if is_back_pressure(outcome.error):
                raise Busy(str(outcome.error))
            self._on_read_failed(outcome.error)
            raise outcome.error
        result: T = outcome.value
        return result

    def _on_read_failed(self, error: Exception) -> None:
        if isinstance(error, LogUnreadable):
            self._on_unreadable(self, error)
        elif isinstance(error, DiskError) and consequence_of(error) is Consequence.DIRECTORY_OFFLINE:
            self.fail(error)

    def _submit(self, job: Job, written: Answer | None, synced: Answer | None, *, ends_with: Answer) -> None:
        """ends_with: the answer that ends the wait for this job."""
        try:
            self._refuse_if_failed()
            self.directory.worker.submit(job, written, synced)
        except ApiError:
            self._waiting.pop(ends_with, None)
            raise
        except (WorkerFull, WorkerClosed) as error:
            self._waiting.pop(ends_with, None)
            raise _refusal(error) from error

    def _fail(self, failure: DirectoryOffline) -> None:
        """The directory has failed, perhaps by a call that never returns: tell all that wait."""
        if self.directory.life.generation is not self.generation:
            return
        self._on_failed(self, failure)
        waiting = list(self._waiting.values())
        self._waiting.clear()
        for on_ended in waiting:
            on_ended(failure)

    def _refuse_if_failed(self) -> None:
        if not self.generation.is_usable:
            raise self._offline_error()

    def _offline_error(self) -> ApiError:
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"log directory {self.directory.path} is offline")

    def _answer_to(self, on_ended: OnEnded) -> Answer:
        generation = self.generation

        def answered(outcome: Outcome) -> None:
            if outcome.error is None and generation.is_usable:
                on_ended(None)
            else:
                on_ended(self._error_of(outcome))

        return answered

    def _last_answer_to(self, on_ended: OnEnded) -> Answer:
        """The failure of the directory is told at once; then the answer itself, if it ever comes, is not."""
        generation, waiting = self.generation, self._waiting

        def answered(outcome: Outcome) -> None:
            if waiting.pop(answered, None) is None:
                return
            if outcome.error is None and generation.is_usable:
                on_ended(None)
            else:
                on_ended(self._error_of(outcome))

        waiting[answered] = on_ended
        return answered

    def _error_of(self, outcome: Outcome) -> Exception | None:
        """None for a success in a directory that takes work. If the directory fails by it, `_fail` comes first."""
        error = outcome.error
        if error is None:
            return None if self.generation.is_usable else self.generation.failure
        if is_back_pressure(error):
            return Busy(str(error))
        if _fails_the_directory(error):
            self.fail(error)
        elif isinstance(error, LogUnreadable) and self.generation.is_usable:
            self._on_unreadable(self, error)
        return error


def _refusal(error: ApiError | WorkerFull | WorkerClosed) -> ApiError:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, WorkerFull):
        return Busy(str(error))
    return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))


def _nothing(_: Exception | None) -> None:
    """The failure of a directory is told elsewhere."""


def _fails_the_directory(error: Exception) -> bool:
    """A log that is closed without a cause was closed by us: it was deleted, or the broker stops."""
    return isinstance(error, DirectoryOffline) or (isinstance(error, LogClosed) and error.cause is not None)
