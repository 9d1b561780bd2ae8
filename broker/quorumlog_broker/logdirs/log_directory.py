"""A log directory as replicas use it: a queue of changes, reads beside it, and the moment when it fails.

Everything that changes files goes through the directory's worker, in the order of calls; callbacks come back on the
loop. The first failed write or sync fails the whole directory (quorumlog_storage/writer/directory_life.py).

A queue that is full holds back. It is no error of the disk: what can wait waits with a deadline, and everything else is
refused with `Busy`, which clients retry.

Directory, worker and queue belong to one generation. When the directory fails, its queue refuses every call and tells
the failure to all that wait, because a call that hangs may never return. What the worker still answers counts for
nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from quorumlog.errors import ApiError
from quorumlog.ids import Uuid
from quorumlog_broker.logdirs.background_jobs import BackgroundJobs
from quorumlog_broker.logdirs.failures import Busy, fails_the_directory, offline_error, refusal
from quorumlog_broker.logdirs.flush_timers import FlushTimers
from quorumlog_broker.logdirs.free_space import FreeSpace
from quorumlog_broker.logdirs.handed_over import HandedOver
from quorumlog_broker.logdirs.opened_logs import TakingOver
from quorumlog_broker.logdirs.read_gate import ReadGate
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogUnreadable, is_back_pressure
from quorumlog_storage.rules.failure_rule import Consequence, consequence_of
from quorumlog_storage.segment.batch import StoredBatch
from quorumlog_storage.segment.index_pair import RebuildNeeded, leaving_rebuilds
from quorumlog_storage.writer.directory_life import DirectoryLife, DirectoryOffline, Generation
from quorumlog_storage.writer.worker import Answer, Worker, WorkerClosed, WorkerFull
from quorumlog_storage.writer.writer import AppendJob, CallJob, Job, Outcome

T = TypeVar("T")
OnEnded = Callable[[Exception | None], None]  # None: it went well

SETTLE_RETRY_MS = 50  # of an awaited job where the queue was full
SETTLE_WAIT_MS = 20_000  # after which that is refused
READS_AT_ONCE = 256  # in the queue of the reader threads; far below its limit, and enough to keep them at work
MAX_WAITING_READS = 10_000  # as many as a listener has connections
READ_WAIT_MS = 1_000
MAX_WAITING_SEARCHES = 200
SEARCH_WAIT_MS = 10_000  # for one slice
MAX_REBUILDS = 10_000  # of indexes that one read finds wrong; then it builds them itself


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
        self.on_retired: Callable[[], None] = _no_one  # told after a call, on the loop, where segments wait to be freed
        self._background = BackgroundJobs(self.call, lambda: not self.generation.is_usable)
        self._taking_over = TakingOver(self._background, self.call_synced, self._error_of)
        self._beside = BackgroundJobs(self._call_beside, lambda: not self.generation.is_usable)
        self.handed_over = HandedOver()
        self._flush_timers = FlushTimers(self._sync_now)
        self._takes_changes = True
        self.space = FreeSpace()
        self.appends = 0  # since the start
        self.has_appended = asyncio.Event()  # set by each append; `space_checks.py` clears it
        self._reads = ReadGate(
            f"reads of {directory.path}", at_once=READS_AT_ONCE, max_waiting=MAX_WAITING_READS, max_wait_ms=READ_WAIT_MS
        )
        self._searches = ReadGate(
            f"searches in {directory.path}", at_once=1, max_waiting=MAX_WAITING_SEARCHES, max_wait_ms=SEARCH_WAIT_MS
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
        self._flush_timers.appended(log)

    def call(self, work: Callable[[], T], *, done: Callable[[T], None], failed: OnEnded) -> None:
        """Run `work` in the worker, in the order of calls. One of done and failed is called. Raises ApiError, Busy.

        `work` makes its changes durable itself.
        """
        answered = self._one_answer(done, failed)
        self._submit(CallJob(work), answered, None, ends_with=answered)

    def call_synced(
        self, work: Callable[[], T], logs: Sequence[Log], *, done: Callable[[T], None], failed: OnEnded
    ) -> None:
        """`call`, answered after the sync that ends the turn. logs: which `work` leaves to that sync; it may add to
        them."""
        answered = self._one_answer(done, failed)
        self._submit(CallJob(work, logs), None, answered, ends_with=answered)

    def _call_beside(self, work: Callable[[], T], *, done: Callable[[T], None], failed: OnEnded) -> None:
        """`call`, for a job beside the writer."""
        self._refuse_if_failed()
        answered = self._one_answer(done, failed)
        try:
            self.directory.worker.beside(work, answered)
        except (WorkerFull, WorkerClosed) as error:
            self._waiting.pop(answered, None)
            raise refusal(error) from error

    def _sync_now(self, log: Log) -> bool:
        """False where the queue is full."""
        try:
            if self.generation.is_usable:
                with suppress(WorkerClosed):  # closing a log syncs it
                    self.directory.worker.submit(CallJob(log.request_sync, (log,)), None, self._answer_to(_nothing))
        except WorkerFull:
            return False
        return True

    def run_in_background(
        self, work: Callable[[], T], *, done: Callable[[T], None], failed: OnEnded, first: bool = False
    ) -> None:
        """`call` for jobs that come by the thousand (`background_jobs.py`). Never raises: `failed` gets the reason."""
        self._background.add(work, done, failed, first=first)

    def run_beside(self, work: Callable[[], T], *, done: Callable[[T], None], failed: OnEnded) -> None:
        """Run `work` beside the writer, on files that `handed_over` names. Never raises: `failed` gets the reason.

        Its changes are durable when it returns. Jobs begin in the order of the calls, some at a time.
        """
        self._beside.add(work, done, failed)

    def take_over(self, log: Log, work: Callable[[], T], *, done: Callable[[T], None], failed: OnEnded) -> None:
        """`run_in_background` for a log that was opened beside the writer. `work` leaves the sync to the turn's end."""
        self._taking_over.add(log, work, done, failed)

    async def all_given_back(self) -> None:
        """Begin no more jobs beside the writer, and wait for those that run. Called when the directory is closed."""
        self._beside.drop(refusal(WorkerClosed(self.directory.path)))
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.handed_over.when_none(lambda: None if future.done() else future.set_result(None))
        await future

    @contextmanager
    def without_changes(self) -> Iterator[None]:
        """The writer's files are handed over, all of them: meanwhile every change is refused."""
        self._takes_changes = False
        self._flush_timers.cancel()
        try:
            yield
        finally:
            self._takes_changes = True

    def hurry(self) -> None:
        """From now on background jobs enter the worker's queue at once. Called before the last call of all."""
        self._background.hurry()

    async def settle(self, work: Callable[[], T]) -> T:
        """`call`, awaited; a full queue is waited for. Raises what `work` raises, DirectoryOffline, or ApiError."""
        for tries_left in reversed(range(SETTLE_WAIT_MS // SETTLE_RETRY_MS)):
            try:
                future = self.ask(work)
            except Busy:
                if not tries_left:
                    raise
                await asyncio.sleep(SETTLE_RETRY_MS / 1000)
            else:
                break
        return await future

    def ask(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """`call`, to be awaited. Raises ApiError, Busy."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.call(
            work,
            done=lambda result: None if future.done() else future.set_result(result),
            failed=lambda error: None if future.done() or error is None else future.set_exception(error),
        )
        return future

    def fail(self, cause: Exception) -> None:
        """Take the directory offline, unless it is."""
        self.directory.life.fail(cause, self.generation)

    def is_unreadable(self, error: LogUnreadable) -> None:
        """A job elsewhere could not read a log of this directory: its replica goes offline."""
        if self.generation.is_usable:
            self._on_unreadable(self, error)

    async def read(self, work: Callable[[], T]) -> T:
        """Run `work`, which only reads, in the directory's pool. Raises what it raises, or ApiError, Busy.

        Where it finds an index that is wrong, that is built again in slices of `search`, and `work` is repeated.
        """
        return await self._read(self._reads, work)

    async def search(self, work: Callable[[], T]) -> T:
        """`read`, for one slice of a work that may read a whole log: one slice at a time in each directory."""
        return await self._read(self._searches, work)

    async def _read(self, gate: ReadGate, work: Callable[[], T]) -> T:
        for _ in range(MAX_REBUILDS):
            try:
                return await self._read_once(gate, partial(leaving_rebuilds, work))
            except RebuildNeeded as needed:
                try:
                    while not await self._read_once(self._searches, needed.indexes.rebuild_step):
                        pass
                except DiskError:
                    break  # the work meets it, too, and says what it means
        return await self._read_once(gate, work)

    async def _read_once(self, gate: ReadGate, work: Callable[[], T]) -> T:
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
            raise refusal(error) from error
        self._waiting[future] = lambda _: (
            None if future.done() else future.set_exception(offline_error(self.directory.path))
        )
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
            if not self._takes_changes:
                raise WorkerClosed(self.directory.path)
            self.directory.worker.submit(job, written, synced)
        except ApiError:
            self._waiting.pop(ends_with, None)
            raise
        except (WorkerFull, WorkerClosed) as error:
            self._waiting.pop(ends_with, None)
            raise refusal(error) from error

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
            raise offline_error(self.directory.path)

    def _one_answer(self, done: Callable[[Any], None], failed: OnEnded) -> Answer:
        """Calls one of them, once; `failed` also when the directory fails first."""

        def answered(outcome: Outcome) -> None:
            if self._waiting.pop(answered, None) is None:
                return
            if self.directory.partitions.retired:
                self.on_retired()
            error = self._error_of(outcome)
            if error is None:
                done(outcome.value)
            else:
                failed(error)

        self._waiting[answered] = failed
        return answered

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
        if fails_the_directory(error):
            self.fail(error)
        elif isinstance(error, LogUnreadable) and self.generation.is_usable:
            self._on_unreadable(self, error)
        return error


def _no_one() -> None:
    """Nobody frees segments here."""


def _nothing(_: Exception | None) -> None:
    """The failure of a directory is told elsewhere."""
