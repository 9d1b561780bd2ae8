"""The seam between an event loop and a log directory: jobs go in, two answers come back.

`quorumlog_storage/edge/worker.py` is the real one (a writer thread and a few reader threads),
`jepsen/sim/machine/worker.py` the simulated one (two events on virtual time). Contract, tested for both in
tests/storage/test_worker_contract.py:

- Jobs are performed in the order of their submission. For each, `on_written` and then `on_synced` are called once, on
  the loop, in the order of the jobs; an error goes to both. Either may be None. A phase without a callback does not
  wake the loop, and a turn that has nothing to sync wakes it once for both.
- Once the directory has failed, every job is answered with DirectoryOffline.
- After `on_written` the change may be shown to readers, after `on_synced` it may be acknowledged.
- A job *beside* the writer has its files from the writer: no other job changes them until it is answered.
  Its failures fail the directory as the writer's do; what it has changed is durable when it returns.
- Queues are bounded, in jobs and in bytes. A full one refuses; it never blocks and never grows.
- `close` performs and answers the jobs that were accepted, and accepts no more. If the disk hangs, it does not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from quorumlog.settings.disks import DiskConfig
from quorumlog_storage.files.kept_errors import release_frames
from quorumlog_storage.writer.stall_watch import OpenCall
from quorumlog_storage.writer.writer import Job, Outcome

Answer = Callable[[Outcome], None]

MAX_QUEUED_JOBS = 10_000
MAX_QUEUED_BYTES = 64 << 20
MAX_TURN_BYTES = 8 << 20  # of one write phase; further jobs wait for the next turn
MAX_QUEUED_READS = 1_000
READ_THREADS = 4
MAX_QUEUED_BESIDE = 1_000
_BESIDE_THREADS = DiskConfig().recovery_threads


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLimits:
    """Bounds of one directory's queues. A turn always takes at least one job, however large.

    beside_threads: jobs beside the writer that run at the same time, 1 or more. It may change; it is asked, on any
    thread, whenever a job could begin.
    """

    queued_jobs: int = MAX_QUEUED_JOBS
    queued_bytes: int = MAX_QUEUED_BYTES
    turn_bytes: int = MAX_TURN_BYTES
    queued_reads: int = MAX_QUEUED_READS
    read_threads: int = READ_THREADS
    queued_beside: int = MAX_QUEUED_BESIDE
    beside_threads: Callable[[], int] = lambda: _BESIDE_THREADS


class WorkerFull(Exception):
    """A queue is at its limit. Nothing was accepted; the same job may be submitted later."""

    def __init__(self, path: str, what: str, limit: int) -> None:
        super().__init__(f"log directory {path} has {limit} {what} waiting, its limit; slow down and try again")
        self.path = path


class WorkerClosed(Exception):
    """The worker was closed. Nothing was accepted."""

    def __init__(self, path: str) -> None:
        super().__init__(f"the worker of log directory {path} is closed; the node is shutting down")
        self.path = path


class Worker(Protocol):
    """Performs the changes of one writer, and reads beside them."""

    @property
    def path(self) -> str:
        """The directory of the writer's files."""
        ...

    def submit(self, job: Job, on_written: Answer | None, on_synced: Answer | None) -> None:
        """Queue a change. Raises WorkerFull, WorkerClosed."""
        ...

    def read(self, fn: Callable[[], Any], callback: Answer) -> None:
        """Run `fn`, which may block on the disk and changes nothing, away from the loop. Answers come in any order.

        Raises WorkerFull, WorkerClosed. A read that fails does not fail the directory.
        """
        ...

    def beside(self, fn: Callable[[], Any], callback: Answer) -> None:
        """Run `fn`, which changes files that the writer has handed over. Answers come in any order.

        Raises WorkerFull, WorkerClosed. Once the directory has failed, no further job begins.
        """
        ...

    @property
    def is_busy(self) -> bool:
        """Jobs wait or are performed, also beside the writer. An idle worker makes no changing call."""
        ...

    def on_busy(self, callback: Callable[[], None]) -> None:
        """Call back from `submit` when an idle worker has got a job."""
        ...

    def open_calls(self) -> Sequence[OpenCall]:
        """The changing calls of the disk that are under way now, for the watch on hanging disks."""
        ...

    def close(self) -> None:
        """See the contract. Called on the loop. Returns once all jobs are performed; answers may still be under way."""
        ...


class Submitted(NamedTuple):
    """A job and its callbacks. size_bytes: of the job, computed once."""

    job: Job
    on_written: Answer | None
    on_synced: Answer | None
    size_bytes: int


class JobQueue:
    """The jobs that wait for the next turns of one writer. Not safe for threads: its owner holds a lock."""

    def __init__(self, path: str, limits: WorkerLimits) -> None:
        self._path, self._limits = path, limits
        self._waiting: list[Submitted] = []
        self._bytes = 0  # of the waiting jobs

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, submitted: Submitted) -> None:
        """Raises WorkerFull. A job larger than the limit is accepted while nothing else waits."""
        if len(self._waiting) >= self._limits.queued_jobs:
            raise WorkerFull(self._path, "jobs", self._limits.queued_jobs)
        if self._waiting and self._bytes + submitted.size_bytes > self._limits.queued_bytes:
            raise WorkerFull(self._path, "bytes", self._limits.queued_bytes)
        self._waiting.append(submitted)
        self._bytes += submitted.size_bytes

    def take_turn(self) -> list[Submitted]:
        """The longest run of waiting jobs that fits in one turn; at least one job, if any waits."""
        if self._bytes <= self._limits.turn_bytes:
            turn, self._waiting, self._bytes = self._waiting, [], 0
            return turn
        taken, size = 0, 0
        for submitted in self._waiting:
            if taken and size + submitted.size_bytes > self._limits.turn_bytes:
                break
            size += submitted.size_bytes
            taken += 1
        turn, self._waiting = self._waiting[:taken], self._waiting[taken:]
        self._bytes -= size
        return turn


Answers = list[tuple[Answer, Outcome]]  # callbacks and their arguments


def written_answers(turn: Sequence[Submitted], outcomes: Sequence[Outcome]) -> Answers:
    """For those jobs of a turn that asked for it, in order."""
    answered = zip(turn, outcomes, strict=True)
    return [(submitted.on_written, outcome) for submitted, outcome in answered if submitted.on_written is not None]


def synced_answers(turn: Sequence[Submitted], outcomes: Sequence[Outcome]) -> Answers:
    """For those jobs of a turn that asked for it, in order."""
    answered = zip(turn, outcomes, strict=True)
    return [(submitted.on_synced, outcome) for submitted, outcome in answered if submitted.on_synced is not None]


def deliver(answers: Answers) -> None:
    for answer, outcome in answers:
        answer(outcome)


def run_read(fn: Callable[[], Any]) -> Outcome:
    """The outcome of a read, with any exception that it raised."""
    try:
        return Outcome(value=fn())
    except Exception as error:
        release_frames(error)
        return Outcome(error=error)
