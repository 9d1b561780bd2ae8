"""The real worker: one thread for one writer of a log directory, and small pools for readers and jobs beside it.

Only the writer thread changes that writer's files. Where a turn has many syncs, helper threads perform some of them.
Answers go to the loop through `post` (`loop.call_soon_threadsafe`), a whole turn in one call. A sick disk blocks these
threads and nothing else.

Of the syncs of one turn, a few run one after the other on the writer's own thread, many are shared among threads
(`SyncPool`). All files are begun before the first sync waits (`File.begin_sync`), so most of the writing is done when a
sync comes. Each sync still waits for a flush of the drive, and syncs that wait together share one flush. One helper per
file costs more processor time; longer shares cost more waiting where the processors are busy. Figures: bench/README.md,
"What was tried".
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import get_ident
from typing import Any

from quorumlog_storage.edge.watched_disk import open_calls
from quorumlog_storage.writer.stall_watch import OpenCall
from quorumlog_storage.writer.worker import (
    Answer,
    Answers,
    JobQueue,
    Submitted,
    WorkerClosed,
    WorkerFull,
    WorkerLimits,
    deliver,
    run_read,
    synced_answers,
    written_answers,
)
from quorumlog_storage.writer.writer import DirectoryWriter, Job, ended

SYNC_THREADS = 8  # the caller's included; each is started when it is first needed
SYNCS_PER_THREAD = 2  # of one thread, before another one helps

Ended = list[Exception | None]


class SyncPool:
    """`quorumlog_storage.writer.writer.RunSyncs` on threads, for one log directory. threads: the helpers that were
    started.
    """

    def __init__(self, path: str) -> None:
        self.threads: list[int] = []
        self._helpers = ThreadPoolExecutor(
            SYNC_THREADS - 1,
            thread_name_prefix=f"sync {path}",
            initializer=lambda: self.threads.append(get_ident()),
        )

    def run(self, syncs: Sequence[Callable[[], None]]) -> Ended:
        """The error of each sync, in order. The caller's thread performs the first share."""
        shares = min(SYNC_THREADS, -(-len(syncs) // SYNCS_PER_THREAD))
        if shares <= 1:
            return _one_by_one(syncs)
        others = [self._helpers.submit(_one_by_one, syncs[share::shares]) for share in range(1, shares)]
        ends: Ended = [None] * len(syncs)
        ends[::shares] = _one_by_one(syncs[::shares])
        for share, other in enumerate(others, start=1):
            ends[share::shares] = other.result()
        return ends

    def close(self, *, wait: bool = True) -> None:
        """wait: until the helpers have ended, which a disk that hangs would prevent."""
        self._helpers.shutdown(wait=wait)


def _one_by_one(syncs: Sequence[Callable[[], None]]) -> Ended:
    return [ended(sync) for sync in syncs]


Post = Callable[[Callable[[], None]], object]


class ThreadWorker:
    """`quorumlog_storage.writer.worker.Worker` on threads. `post` must accept calls from any thread and keep their
    order.
    """

    def __init__(
        self, writer: DirectoryWriter, post: Post, limits: WorkerLimits | None = None, *, soon: Post | None = None
    ) -> None:
        """soon: makes a call at the end of the loop's present callback (`Turn.later`). An idle writer is woken then:
        for all that the turn submits, and when the loop is about to give up the interpreter's lock, not while it holds
        it. None: it is woken at once.
        """
        self.path = writer.path
        self._writer = writer
        self._post = post
        self._soon = soon
        self._limits = limits or WorkerLimits()
        self._queue = JobQueue(self.path, self._limits)
        self._wake = threading.Condition(threading.Lock())
        self._closed = False
        self._idle = False  # the writer waits for work
        self._on_busy: tuple[Callable[[], None], ...] = ()
        self._reads = 0  # queued or running
        self._beside = 0  # queued or running
        self._queued_beside: deque[tuple[Callable[[], Any], Answer]] = deque()
        self._helping = 0  # threads that take from that queue: at most `limits.beside_threads`
        self._beside_threads: set[int] = set()  # as many as ever ran at the same time; only grows
        self._syncs = SyncPool(self.path)
        self._readers = ThreadPoolExecutor(self._limits.read_threads, thread_name_prefix=f"read {self.path}")
        self._helpers = ThreadPoolExecutor(self._limits.queued_beside, thread_name_prefix=f"beside {self.path}")
        self._thread = threading.Thread(target=self._run, name=f"write {self.path}", daemon=True)
        self._thread.start()

    def submit(self, job: Job, on_written: Answer | None, on_synced: Answer | None) -> None:
        submitted = Submitted(job, on_written, on_synced, job.size_bytes)
        with self._wake:
            if self._closed:
                raise WorkerClosed(self.path)
            self._queue.put(submitted)
            if not self._idle:
                return
            self._idle = False  # until the writer is awake, further jobs need not wake it again
        if self._soon is None:
            self._wake_writer()
        else:
            self._soon(self._wake_writer)
        for callback in self._on_busy:
            callback()

    def _wake_writer(self) -> None:
        with self._wake:
            self._wake.notify()

    def read(self, fn: Callable[[], Any], callback: Answer) -> None:
        with self._wake:
            if self._closed:
                raise WorkerClosed(self.path)
            if self._reads >= self._limits.queued_reads:
                raise WorkerFull(self.path, "reads", self._limits.queued_reads)
            self._reads += 1
        self._readers.submit(self._read, fn, callback)

    def beside(self, fn: Callable[[], Any], callback: Answer) -> None:
        with self._wake:
            if self._closed:
                raise WorkerClosed(self.path)
            if self._beside >= self._limits.queued_beside:
                raise WorkerFull(self.path, "jobs beside the writer", self._limits.queued_beside)
            self._beside += 1
            self._queued_beside.append((fn, callback))
            self._call_helpers()
        for each in self._on_busy:
            each()

    @property
    def is_busy(self) -> bool:
        return not self._idle or self._beside > 0

    def on_busy(self, callback: Callable[[], None]) -> None:
        self._on_busy = (*self._on_busy, callback)

    def open_calls(self) -> Sequence[OpenCall]:
        ident = self._thread.ident
        assert ident is not None, "started by the constructor"
        return open_calls((ident, *self._syncs.threads, *list(self._beside_threads)))

    def close(self) -> None:
        """Threads that hang in the disk are left behind; the process must be ended without waiting for them."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        hangs = self._writer.generation.is_stalled
        if hangs:
            self._queued_beside.clear()
        else:
            self._thread.join()
        self._readers.shutdown(wait=not hangs, cancel_futures=hangs)
        self._helpers.shutdown(wait=not hangs, cancel_futures=hangs)
        self._syncs.close(wait=not hangs)

    def _read(self, fn: Callable[[], Any], callback: Answer) -> None:
        outcome = run_read(fn)
        with self._wake:
            self._reads -= 1
        self._post(partial(callback, outcome))

    def _call_helpers(self) -> None:
        """Let as many threads take jobs as may run at the same time. Call it with the lock."""
        wanted = min(len(self._queued_beside), self._limits.beside_threads() - self._helping)
        for _ in range(wanted):
            self._helping += 1
            self._helpers.submit(self._help)

    def _help(self) -> None:
        """Perform jobs beside the writer until none is left, or until fewer may run at the same time."""
        self._beside_threads.add(threading.get_ident())
        while (job := self._next_beside()) is not None:
            fn, callback = job
            outcome = self._writer.attempt(fn)
            with self._wake:
                self._beside -= 1
            self._post(partial(callback, outcome))

    def _next_beside(self) -> tuple[Callable[[], Any], Answer] | None:
        """None: this thread has to stop. Those that help when the worker is closed go on until all is done."""
        with self._wake:
            if not self._queued_beside or self._helping > self._limits.beside_threads():
                self._helping -= 1
                return None
            job = self._queued_beside.popleft()
            if not self._closed:
                self._call_helpers()
            return job

    def _run(self) -> None:
        while turn := self._next_turn():
            outcomes = self._writer.write_phase([submitted.job for submitted in turn])
            answers = written_answers(turn, outcomes)
            if self._writer.has_to_sync:
                self._answer(answers)
                answers = []
            outcomes = self._writer.sync_phase(self._syncs.run)
            self._answer(answers + synced_answers(turn, outcomes))

    def _answer(self, answers: Answers) -> None:
        if answers:
            self._post(partial(deliver, answers))

    def _next_turn(self) -> list[Submitted]:
        """Waits for work; empty once closed and nothing is left."""
        with self._wake:
            while not self._queue and not self._closed:
                self._idle = True
                self._wake.wait()
            self._idle = False
            return self._queue.take_turn()
