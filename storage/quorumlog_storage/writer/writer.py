"""The group commit of one log directory: jobs that wait are written in one phase and made durable in the next.

A turn: `write_phase(jobs)` performs the jobs in their order; several appends to one log become one write.
`sync_phase()` then syncs every log that the turn made dirty, once. A job is durable when the sync phase of its turn has
returned, because its bytes were written before that sync began.

Rules, first what fails the directory for this generation:

- A DiskError or a failed assertion in any job, and any exception in a sync. A log that an AppendJob or `CallJob.logs`
  named and that has failed, by an exception of any kind, when the turn ends. A partition's log says so at once
  (`PartitionDirectories.on_broken_log`), because a follower would go on to acknowledge what a broken cut removed.
- A read that fails before anything was changed (LogUnreadable) fails its own job only, and its replica.
- Everything of this turn that is not yet durable then fails, and so does all that comes later. Any other
  exception fails its own job only. A log that failed by it refuses every later change with LogClosed.
- A process that is short of descriptors or memory fails no directory. The job gets the DiskError, its log ends where
  the last whole write ended, and the caller tries again. A log that was in the middle of a change has failed.
- Where more files hold unsynced bytes than may be open, the turn syncs them before it writes to another one.
- A directory may have two writers, one for the partitions and one for the metadata log. They write different files and
  share one `Generation`: a failure that one of them meets stops both.

Each file has one changer at a time: the writer whose job changes it, or a job to which the writer has handed it over.

Runs on a writer thread, or in the simulation; knows neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from quorumlog.ids import Epoch, Offset
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.files.kept_errors import release_frames
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogClosed, UnexpectedAppend, is_back_pressure
from quorumlog_storage.segment.batch import StoredBatch
from quorumlog_storage.writer.directory_life import Generation

SYNC_TRIES = 3  # of one log in one turn, where there are too many open files; each try has waited for a descriptor
JOB_OVERHEAD_BYTES = 256  # what a job without data counts for in a queue


class AppendJob(NamedTuple):
    """Append stamped batches. Its value is the log's end offset after them.

    gaps: the offsets may leave gaps, as a follower's may (quorumlog_storage/log/log_append.py).
    """

    log: Log
    batches: Sequence[StoredBatch]
    gaps: bool = False

    @property
    def size_bytes(self) -> int:
        return JOB_OVERHEAD_BYTES + sum(batch.size for batch in self.batches)


@dataclass(frozen=True, slots=True)
class CallJob:
    """Any other change of files: open, truncate, close, delete a log, write an offset file. Its value is `fn`'s.

    logs: those that the turn must sync, because `fn` leaves them dirty. Most jobs are durable when `fn` returns. It may
    be a list that `fn` adds to.
    """

    fn: Callable[[], Any]
    logs: Sequence[Log] = ()
    size_bytes: int = JOB_OVERHEAD_BYTES


Job = AppendJob | CallJob


class Outcome(NamedTuple):
    """A job's result. An error is UnexpectedAppend, LogClosed, DirectoryOffline, or what a CallJob's `fn` raised.

    A DiskError is back-pressure (quorumlog_storage/rules/failure_rule.py); any other would have taken the directory
    offline.
    """

    value: Any = None
    error: Exception | None = None


RunSyncs = Callable[[Sequence[Callable[[], None]]], Iterable[Exception | None]]


def one_by_one(syncs: Sequence[Callable[[], None]]) -> Iterator[Exception | None]:
    """The error of each sync, in order. A caller that stops iterating leaves the rest undone."""
    return map(ended, syncs)


def ended(sync: Callable[[], None]) -> Exception | None:
    """Perform a sync; returns its error."""
    try:
        sync()
    except Exception as error:
        release_frames(error)
        return error
    return None


class DirectoryWriter:
    """The turns of one directory, or of those logs in it that are this writer's. The two phases alternate.

    path: the directory of this writer's files. generation: of the log directory, shared with its other writer.
    """

    def __init__(self, path: str, generation: Generation | None = None) -> None:
        self.path = path
        self.generation = generation or Generation(path)
        self._dirty: dict[Log, None] = {}  # in the order in which they became so
        self._waiting: list[Outcome] = []  # of the turn's jobs, until their sync

    def write_phase(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Perform the jobs. Returns their outcomes, in order; readers may see the changes from now on."""
        assert not self._waiting, "a write phase without the sync phase of the one before"
        turn = _Turn(self, jobs)
        for number, job in enumerate(jobs):
            if isinstance(job, AppendJob):
                turn.collect(number, job)
            else:
                turn.flush()
                turn.outcomes[number] = self.attempt(self._call, job)
        turn.flush()
        self._waiting = turn.outcomes
        return turn.outcomes

    @property
    def has_to_sync(self) -> bool:
        """Between the phases of a turn: the second one may wait for the disk."""
        return any(log.must_sync or log.has_too_many_files() for log in self._dirty)

    def sync_phase(self, run: RunSyncs = one_by_one) -> list[Outcome]:
        """Make the turn durable. Returns the outcomes of its jobs again, now failed if the directory is offline.

        run: performs the syncs, each of another log, and returns when all have ended.
        """
        for log in self._dirty:
            if log.change_failure is not None:  # of any kind: what the turn wrote before it will never be synced
                self.generation.fail(log.change_failure)
        if self.generation.failure is None:
            logs = [log for log in self._dirty if log.must_sync or log.has_too_many_files()]
            if len(logs) > 1:
                for log in logs:
                    log.begin_sync()
            for error in run([partial(_sync, log) for log in logs]):
                if error is not None:  # of any kind: the turn must not be acknowledged
                    self.generation.fail(error)
                    break
        self._dirty.clear()
        outcomes, self._waiting = self._waiting, []
        offline = self.generation.failure
        if offline is None:
            return outcomes
        return [outcome if outcome.error else Outcome(error=offline) for outcome in outcomes]

    def attempt(self, change: Callable[..., Any], *what: Any) -> Outcome:
        """Run one change, unless offline. A DiskError fails the directory, unless it is back-pressure, and so does an
        assertion of ours."""
        offline = self.generation.failure
        if offline is not None:
            return Outcome(error=offline)
        try:
            return Outcome(value=change(*what))
        except (DiskError, AssertionError) as error:
            release_frames(error)
            return Outcome(error=error if is_back_pressure(error) else self.generation.fail(error))
        except Exception as error:
            release_frames(error)
            return Outcome(error=self.generation.failure or error)  # a log that broke off fails the directory

    def append(self, log: Log, batches: Sequence[StoredBatch]) -> Offset:
        if log.has_too_many_files():
            for dirty in self._dirty:
                dirty.sync_unless_closed()
        self._dirty[log] = None
        return log.append_checked(batches)

    def _call(self, job: CallJob) -> Any:
        try:
            return job.fn()
        finally:
            self._dirty.update(dict.fromkeys(job.logs))


class _Group:
    """The appends to one log that wait to become one write."""

    def __init__(self, log: Log) -> None:
        self.end: tuple[Offset, Epoch] = (log.end_offset, log.last_epoch)
        self.numbers: list[int] = []  # of the jobs
        self.ends: list[Offset] = []  # the end offset after each job
        self.batches: list[StoredBatch] = []


class _Turn:
    """Groups appends by log, up to the next job of another kind, so that each log gets one write."""

    def __init__(self, writer: DirectoryWriter, jobs: Sequence[Job]) -> None:
        self.outcomes = [Outcome()] * len(jobs)
        self._writer = writer
        self._groups: dict[Log, _Group] = {}

    def collect(self, number: int, job: AppendJob) -> None:
        """A job that cannot follow the ones before it fails alone."""
        group = self._groups.get(job.log)
        if group is None:
            group = self._groups[job.log] = _Group(job.log)
        try:
            group.end = job.log.check(job.batches, *group.end, gaps=job.gaps)
        except (UnexpectedAppend, LogClosed) as error:
            self.outcomes[number] = Outcome(error=error.with_traceback(None))  # its frame holds this turn
            return
        group.numbers.append(number)
        group.ends.append(group.end[0])
        group.batches.extend(job.batches)

    def flush(self) -> None:
        for log, group in self._groups.items():
            outcome = self._writer.attempt(self._writer.append, log, group.batches)
            error, reached = outcome.error, -1
            if error is not None and is_back_pressure(error):
                reached = log.end_offset  # it may have run out of descriptors between two segments
            for number, end in zip(group.numbers, group.ends, strict=True):
                self.outcomes[number] = Outcome(value=end) if error is None or end <= reached else outcome
        self._groups.clear()


def _sync(log: Log) -> None:
    for tries_left in reversed(range(SYNC_TRIES)):
        try:
            log.sync_unless_closed()
            return
        except DiskError as error:
            if not tries_left or log.change_failure is not None or not is_back_pressure(error):
                raise
