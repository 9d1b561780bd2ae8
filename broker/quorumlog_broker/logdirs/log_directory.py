"""A log directory as replicas use it: one door for its jobs, reads beside them, and the moment when it fails.

Everything that changes files goes through `DirectoryQueue.run`, which is awaited. An append alone has callbacks: it has
two answers, and there are thousands each second. The first failed write or sync fails the whole directory
(quorumlog_storage/writer/directory_life.py).

    Lane              thread   order                         a queue that is full
    WRITER            writer   of the calls                  is waited for, then `Busy`
    AT_ONCE           writer   of the calls                  `Busy`
    BACKGROUND        writer   of the calls in this lane     is waited for
    BACKGROUND_FIRST  writer   before BACKGROUND             is waited for
    BESIDE            beside   begun in that of the calls    is waited for

In every lane the job is queued when `run` is called, not when it is awaited, so the order of two calls is that of their
jobs; only what waits for room in WRITER is passed by what comes meanwhile. Reads change nothing and have no order, so
they have doors of their own, `read` and `search`. Whoever is cancelled stops waiting, not the job. A job whose
directory fails ends with DirectoryOffline at once, because a call that hangs may never return; one that comes after
that is refused with KAFKA_STORAGE_ERROR, and so is one that comes while the logs are closed. `Busy` is no error of the
disk: clients retry.

Directory, worker and queue belong to one generation. When it is over, what the worker still answers counts for nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Any, TypeVar

from quorumlog.errors import ApiError
from quorumlog.ids import ZERO_UUID, Uuid
from quorumlog.nursery import Nursery
from quorumlog_broker.logdirs.background_jobs import BackgroundJobs, Work
from quorumlog_broker.logdirs.failures import Busy, fails_the_directory, offline_error, refusal
from quorumlog_broker.logdirs.flush_timers import FlushTimers
from quorumlog_broker.logdirs.free_space import FreeSpace
from quorumlog_broker.logdirs.handed_over import HandedOver, Loan
from quorumlog_broker.logdirs.opened_logs import OpenedLogs
from quorumlog_broker.logdirs.read_gate import ReadGate
from quorumlog_storage.directory.offset_files import TopicPartition
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

FULL_RETRY_MS = 50  # of a job of `Lane.WRITER` where the queue was full
FULL_WAIT_MS = 20_000  # after which that is refused
READS_AT_ONCE = 256  # in the queue of the reader threads; far below its limit, and enough to keep them at work
MAX_WAITING_READS = 10_000  # as many as a listener has connections
READ_WAIT_MS = 1_000
MAX_WAITING_SEARCHES = 200
SEARCH_WAIT_MS = 10_000  # for one slice
MAX_REBUILDS = 10_000  # of indexes that one read finds wrong; then it builds them itself


class Lane(Enum):
    """How a job gets to the directory's threads; see the table above."""

    WRITER = auto()
    AT_ONCE = auto()
    BACKGROUND = auto()  # by the thousand: a few at a time (background_jobs.py)
    BACKGROUND_FIRST = auto()
    BESIDE = auto()  # on files that the writer does not touch meanwhile (handed_over.py); a few run at a time


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
        self._waiting: dict[object, Callable[[Exception], None]] = {}  # by the answer that ends it; in order of calls
        directory.life.on_failed(self._fail)
        self.on_retired: Callable[[], None] = _no_one  # told after a call, on the loop, where segments wait to be freed
        self._background = BackgroundJobs(self._to_writer, lambda: not self.generation.is_usable)
        self._opened_logs = OpenedLogs(self._background, self._error_of)
        self._beside = BackgroundJobs(self._to_beside, lambda: not self.generation.is_usable)
        self._nursery = Nursery(_crashed)
        self.handed_over = HandedOver()
        self._flush_timers = FlushTimers(self._sync_now)
        self._takes_changes = True
        self.logs_to_close = 0  # at the stop, and of those
        self.closed_logs: list[object] = []  # those that are; a thread appends to it
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
        on_synced = self._answer_to(synced, is_last=True)
        self._submit(AppendJob(log, batches, gaps), on_written, on_synced, ends_with=on_synced)
        self._flush_timers.appended(log)

    def run(
        self,
        perform: Callable[[], T],
        lane: Lane = Lane.WRITER,
        *,
        syncs: Log | None = None,
        files: TopicPartition | None = None,
    ) -> asyncio.Future[T]:
        """Queue `perform` now. Raises, where it is awaited, what that raises, DirectoryOffline, ApiError or Busy.

        An error that nobody awaits is not lost: what concerns the directory or a log is told to their owners before.

        syncs: the log whose sync `perform` leaves to the end of the writer's turn, and the answer waits for that. None:
        its changes are durable when it returns. In BACKGROUND several such jobs share a turn (opened_logs.py).
        files: of a partition; if they are handed over, the job is queued when they are given back.
        """
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        work = Work(perform, answer, None if syncs is None else [syncs])
        if files is None:
            self._enter(work, lane)
        else:
            self.handed_over.when_here(files, partial(self._enter, work, lane))
        return answer

    def start(self, following: Coroutine[Any, Any, None], name: str) -> None:
        """Run what follows a job, for those who cannot wait for it. It ends with its job, at the latest."""
        self._nursery.start(following, name)

    async def lend(self, partition: TopicPartition) -> Loan:
        """The partition's files, once the writer has them, for a job beside it. To be used in a `with` statement."""
        lent: asyncio.Future[Loan] = asyncio.get_running_loop().create_future()

        def hand_over() -> None:
            if not lent.done():
                self.handed_over.hand_over(partition)
                give_back = partial(self.handed_over.give_back, partition)
                lent.set_result(Loan(partial(self.run, lane=Lane.BESIDE), give_back))

        self.handed_over.when_here(partition, hand_over)
        try:
            return await lent
        except asyncio.CancelledError:
            if not lent.cancelled():  # it came in the same moment
                lent.result().give_back()
            raise

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
        """From now on background jobs enter the worker's queue at once. Called before the last job of all."""
        self._background.hurry()

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

    # --- how a job gets to its thread ---

    def _enter(self, work: Work, lane: Lane) -> None:
        match lane:
            case Lane.WRITER:
                self._try(work, FULL_WAIT_MS // FULL_RETRY_MS)
            case Lane.AT_ONCE:
                self._try(work, 1)
            case Lane.BESIDE:
                self._beside.add(work)
            case _ if work.logs is not None:
                self._opened_logs.add(work)
            case _:
                self._background.add(work, first=lane is Lane.BACKGROUND_FIRST)

    def _try(self, work: Work, tries_left: int) -> None:
        if work.answer.done():
            return  # cancelled before it was queued
        try:
            self._to_writer(work)
        except Busy as busy:
            if tries_left == 1:
                work.fail(busy)
            else:
                asyncio.get_running_loop().call_later(FULL_RETRY_MS / 1000, self._try, work, tries_left - 1)
        except ApiError as refused:
            work.fail(refused)

    def _to_writer(self, work: Work) -> None:
        """Raises ApiError, Busy."""
        answered = self._answer_of(work)
        if work.logs is None:
            self._submit(CallJob(work.perform), answered, None, ends_with=answered)
        else:
            self._submit(CallJob(work.perform, work.logs), None, answered, ends_with=answered)

    def _to_beside(self, work: Work) -> None:
        """Raises ApiError, Busy."""
        self._refuse_if_failed()
        answered = self._answer_of(work)
        try:
            self.directory.worker.beside(work.perform, answered)
        except (WorkerFull, WorkerClosed) as error:
            self._waiting.pop(answered, None)
            raise refusal(error) from error

    def _submit(self, job: Job, written: Answer | None, synced: Answer | None, *, ends_with: Answer) -> None:
        """ends_with: the answer that ends the wait for this job."""
        try:
            self._refuse_if_failed()
            if not self._takes_changes:
                raise WorkerClosed(self.directory.path)
            self.directory.worker.submit(job, written, synced)
        except (ApiError, WorkerFull, WorkerClosed) as error:
            self._waiting.pop(ends_with, None)
            raise refusal(error) from error

    def _sync_now(self, log: Log) -> bool:
        """False where the queue is full."""
        synced = self.run(log.request_sync, Lane.AT_ONCE, syncs=log)
        return not (synced.done() and isinstance(synced.exception(), Busy))

    # --- answers and failures ---

    def _fail(self, failure: DirectoryOffline) -> None:
        """The directory has failed, perhaps by a call that never returns: tell all that wait."""
        if self.directory.life.generation is not self.generation:
            return
        if isinstance(failure.cause, DiskError) and failure.cause.found_no_room:
            self.space.found_no_room()
        self._on_failed(self, failure)
        waiting = list(self._waiting.values())
        self._waiting.clear()
        for on_ended in waiting:
            on_ended(DirectoryOffline(failure.path, failure.cause))  # each raises its own; see `Generation.failure`

    def _refuse_if_failed(self) -> None:
        if not self.generation.is_usable:
            raise offline_error(self.directory.path)

    def _answer_of(self, work: Work) -> Answer:
        """Ends the work, unless the failure of the directory has."""

        def answered(outcome: Outcome) -> None:
            if self._waiting.pop(answered, None) is None:
                return
            if self.directory.partitions.retired:
                self.on_retired()
            error = self._error_of(outcome)
            if error is None:
                work.end(outcome.value)
            else:
                work.fail(error)

        self._waiting[answered] = work.fail
        return answered

    def _answer_to(self, on_ended: OnEnded, *, is_last: bool = False) -> Answer:
        """Of an append. is_last: the failure of the directory is told at once; then the answer, if it comes, is not."""
        generation, waiting = self.generation, self._waiting

        def answered(outcome: Outcome) -> None:
            if is_last and waiting.pop(answered, None) is None:
                return
            if outcome.error is None and generation.is_usable:
                on_ended(None)
            else:
                on_ended(self._error_of(outcome))

        if is_last:
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


def _crashed(name: str, error: BaseException) -> None:
    """As an error in any callback of the loop: the node's fail-stop hears of it."""
    asyncio.get_running_loop().call_exception_handler({"message": f"{name} has failed", "exception": error})


def offline_ids(directories: Iterable[LogDirectory]) -> list[Uuid]:
    """Of those that are offline now, for a heartbeat. One whose id could not be read is left out."""
    offline = [entry.directory_id for entry in directories if entry.life.is_offline]
    return [directory_id for directory_id in offline if directory_id != ZERO_UUID]
