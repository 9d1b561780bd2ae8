"""The simulated worker: a log directory's turns as events on virtual time.

A turn is three events: the write phase runs; after the disk's latency its jobs are answered; after the duration of the
last sync the sync phase runs and its jobs are answered again. A kill or a power cut between two events leaves the turn
half done. While the disk hangs (hang.py), a phase or a read waits for its release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from jepsen.sim.machine.disk import SimDisk
from quorumlog_storage.writer.stall_watch import OpenCall
from quorumlog_storage.writer.worker import (
    Answer,
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
from quorumlog_storage.writer.writer import DirectoryWriter, Job, Outcome

CallLater = Callable[[int, Callable[[], None]], None]  # delay in virtual ns, callback; equal times run in order


class SimWorker:
    """`quorumlog_storage.writer.worker.Worker` on a scheduler."""

    def __init__(
        self, disk: SimDisk, writer: DirectoryWriter, call_later: CallLater, limits: WorkerLimits | None = None
    ) -> None:
        self.path = writer.path
        self._disk, self._writer, self._call_later = disk, writer, call_later
        self._limits = limits or WorkerLimits()
        self._queue = JobQueue(self.path, self._limits)
        self._life = disk.life
        self._busy = False  # True from a turn's first event to its last
        self._on_busy: tuple[Callable[[], None], ...] = ()
        self._closed = False
        self._reads = 0
        self._beside = 0  # waiting or performed
        self._open: dict[int, OpenCall] = {}  # that hang, by number
        self._hung = 0
        self._sync_ns = 0  # duration of the last sync, and the delay before the next

    def submit(self, job: Job, on_written: Answer | None, on_synced: Answer | None) -> None:
        if self._closed:
            raise WorkerClosed(self.path)
        self._queue.put(Submitted(job, on_written, on_synced, job.size_bytes))
        if not self._busy:
            self._busy = True
            self._after(0, self._write)
            for callback in self._on_busy:
                callback()

    def read(self, fn: Callable[[], Any], callback: Answer) -> None:
        if self._closed:
            raise WorkerClosed(self.path)
        if self._reads >= self._limits.queued_reads:
            raise WorkerFull(self.path, "reads", self._limits.queued_reads)
        self._reads += 1
        self._after(0, partial(self._read, fn, callback))

    def beside(self, fn: Callable[[], Any], callback: Answer) -> None:
        if self._closed:
            raise WorkerClosed(self.path)
        if self._beside >= self._limits.queued_beside:
            raise WorkerFull(self.path, "jobs beside the writer", self._limits.queued_beside)
        self._beside += 1
        self._after(0, partial(self._unless_it_hangs, "write", partial(self._perform_beside, fn, callback)))
        for each in self._on_busy:
            each()

    @property
    def is_busy(self) -> bool:
        return self._busy or self._beside > 0

    def on_busy(self, callback: Callable[[], None]) -> None:
        self._on_busy = (*self._on_busy, callback)

    def open_calls(self) -> Sequence[OpenCall]:
        """Only calls that hang: all others take a moment."""
        return tuple(self._open.values())

    def close(self) -> None:
        """Accepted jobs still run as events. Unlike the real worker, this returns before they have run."""
        self._closed = True

    def kill(self) -> None:
        """The process dies: no event of this worker has an effect any more. A kill of the disk does the same."""
        self._life = -1

    def _after(self, delay_ns: int, event: Callable[[], None]) -> None:
        self._call_later(delay_ns, partial(self._if_alive, event))

    def _if_alive(self, event: Callable[[], None]) -> None:
        if self._life == self._disk.life:
            event()

    def _timed(self, work: Callable[[], Any]) -> tuple[Any, int]:
        self._disk.take_latency_ns()  # of other operations, accounted elsewhere
        result = work()
        return result, self._disk.take_latency_ns()

    def _unless_it_hangs(self, op: str, perform: Callable[[], None]) -> None:
        """Perform a phase now or, if the disk hangs, once it is released."""
        if not self._disk.hang.holds(self.path):
            perform()
            return
        self._hung += 1
        self._open[self._hung] = OpenCall(op, self.path)
        self._disk.hang.wait(partial(self._after, 0, partial(self._released, self._hung, perform)))

    def _released(self, number: int, perform: Callable[[], None]) -> None:
        del self._open[number]
        perform()

    def _write(self) -> None:
        turn = self._queue.take_turn()
        if not turn:
            self._busy = False
            return
        self._unless_it_hangs("write", partial(self._perform_writes, turn))

    def _perform_writes(self, turn: list[Submitted]) -> None:
        outcomes, took_ns = self._timed(lambda: self._writer.write_phase([submitted.job for submitted in turn]))
        self._after(took_ns, partial(self._written, turn, outcomes))

    def _written(self, turn: list[Submitted], outcomes: list[Outcome]) -> None:
        deliver(written_answers(turn, outcomes))
        self._after(self._sync_ns, partial(self._unless_it_hangs, "sync", partial(self._synced, turn)))

    def _synced(self, turn: list[Submitted]) -> None:
        """A sync takes effect at its end; until then a power cut may lose all of it."""
        outcomes, self._sync_ns = self._timed(self._writer.sync_phase)
        deliver(synced_answers(turn, outcomes))
        self._write()

    def _read(self, fn: Callable[[], Any], callback: Answer) -> None:
        if self._disk.hang.holds(self.path, is_read=True):
            self._disk.hang.wait(partial(self._after, 0, partial(self._read, fn, callback)))
            return
        outcome, took_ns = self._timed(partial(run_read, fn))
        self._after(took_ns, partial(self._answer_read, callback, outcome))

    def _perform_beside(self, fn: Callable[[], Any], callback: Answer) -> None:
        outcome, took_ns = self._timed(lambda: self._writer.attempt(fn))
        self._after(took_ns, partial(self._answer_beside, callback, outcome))

    def _answer_beside(self, callback: Answer, outcome: Outcome) -> None:
        self._beside -= 1
        callback(outcome)

    def _answer_read(self, callback: Answer, outcome: Outcome) -> None:
        self._reads -= 1
        callback(outcome)
