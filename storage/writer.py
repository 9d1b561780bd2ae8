"""The group commit of one log directory: what waits is written in one phase and made durable in the next.

A turn: `write_phase(jobs)` appends, truncates and runs what was asked, in the order it was asked; several appends to
one log become one write. `sync_phase()` then syncs every log of the directory that the turn made dirty, once. A job is
durable when the sync phase after its write phase returned, for its bytes were written before that sync began
(RELIABILITY 6.1.6).

Rules: the first DiskError takes the directory offline for good: everything of this turn that is not yet durable fails,
and all that comes later (DESIGN §6). Apart from that no job fails another one. Where a directory has two writers, one
of the partitions and one of the metadata log, they write different files and share one `Standing`: a failure that one
of them meets is the end of both.

Runs on a writer thread, or in the simulation; knows neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from quorumlog.ids import Epoch, Offset
from storage.batch import StoredBatch
from storage.checkpoint import RecoveryPoints
from storage.disk import DiskError
from storage.log import Log
from storage.log_errors import LogClosed, UnexpectedAppend

JOB_OVERHEAD_BYTES = 256  # what a job without data counts for in a queue


class DirectoryOffline(Exception):
    """The directory failed; nothing more is written to it, and what was waiting has an unknown outcome on disk."""

    def __init__(self, path: str, cause: BaseException) -> None:
        super().__init__(
            f"log directory {path} is offline: {cause}. Its replicas are served by other brokers; "
            "repair it, then restart the node"
        )
        self.path, self.cause = path, cause


class Standing:
    """Whether a log directory may still be written to: one for all its writers, on whatever threads they are.

    Offline is for good, and the first cause is kept: `setdefault` is one step, whoever else asks at that moment.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._failures: dict[str, DirectoryOffline] = {}  # one at most, by the path

    @property
    def offline(self) -> DirectoryOffline | None:
        return self._failures.get(self._path)

    def take_offline(self, cause: BaseException) -> DirectoryOffline:
        return self._failures.setdefault(self._path, DirectoryOffline(self._path, cause))


class AppendJob(NamedTuple):
    """Append stamped batches. Its value is the log's end offset after them.

    gaps: the offsets may leave gaps, as a follower's may (storage/log_append.py).
    """

    log: Log
    batches: Sequence[StoredBatch]
    gaps: bool = False

    @property
    def size_bytes(self) -> int:
        return JOB_OVERHEAD_BYTES + sum(batch.size for batch in self.batches)


@dataclass(frozen=True, slots=True)
class TruncateJob:
    """Truncate to an offset, the recovery point on disk first. Its value is the log's end offset after that."""

    log: Log
    offset: Offset
    size_bytes: int = JOB_OVERHEAD_BYTES


@dataclass(frozen=True, slots=True)
class CallJob:
    """Anything else that changes files: open, close, delete a log, write a checkpoint. Its value is what `fn` returns.

    logs: those that `fn` may have made dirty; they are synced with the turn.
    """

    fn: Callable[[], Any]
    logs: tuple[Log, ...] = ()
    size_bytes: int = JOB_OVERHEAD_BYTES


Job = AppendJob | TruncateJob | CallJob


class Outcome(NamedTuple):
    """How a job went. An error is UnexpectedAppend, LogClosed, DirectoryOffline, or what a CallJob's `fn` raised."""

    value: Any = None
    error: Exception | None = None


RunSyncs = Callable[[Sequence[Callable[[], None]]], Iterable[Exception | None]]


def one_by_one(syncs: Sequence[Callable[[], None]]) -> Iterator[Exception | None]:
    """How each sync ended, in order; who stops asking stops the rest."""
    return map(ended, syncs)


def ended(sync: Callable[[], None]) -> Exception | None:
    """Perform it, and give its error."""
    try:
        sync()
    except Exception as error:
        return error
    return None


class DirectoryWriter:
    """The turns of one directory, or of the logs in it that are this writer's. The two phases alternate.

    recovery_points: of its logs, nobody else's. standing: of the log directory, shared with its other writer.
    """

    def __init__(
        self, path: str, recovery_points: RecoveryPoints | None = None, standing: Standing | None = None
    ) -> None:
        self.path = path
        self._recovery_points = recovery_points
        self._standing = standing or Standing(path)
        self._dirty: dict[Log, None] = {}  # in the order in which they became so
        self._waiting: list[Outcome] = []  # of the turn's jobs, until their sync

    @property
    def offline(self) -> DirectoryOffline | None:
        """Set from the first failure on."""
        return self._standing.offline

    def write_phase(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Perform the jobs. Returns their outcomes, in order: what a reader may see from now on."""
        assert not self._waiting, "a write phase without the sync phase of the one before"
        turn = _Turn(self, jobs)
        for number, job in enumerate(jobs):
            if isinstance(job, AppendJob):
                turn.collect(number, job)
            else:
                turn.flush()
                turn.outcomes[number] = self.attempt(self._perform, job)
        turn.flush()
        self._waiting = turn.outcomes
        return turn.outcomes

    def sync_phase(self, run: RunSyncs = one_by_one) -> list[Outcome]:
        """Make the turn durable. Returns the outcomes of its jobs again, now failed if the directory is offline.

        run: performs the syncs, each of another log, and returns when all have ended.
        """
        for log in self._dirty:
            if log.failure is not None:  # of any kind: what the turn wrote before it will never be synced
                self._standing.take_offline(log.failure)
        if self.offline is None:
            logs = [log for log in self._dirty if log.must_sync]
            if len(logs) > 1:
                for log in logs:
                    log.begin_sync()
            for error in run([log.sync_unless_closed for log in logs]):
                if error is not None:  # of any kind: the turn must not be told as durable
                    self._standing.take_offline(error)
                    break
        self._dirty.clear()
        outcomes, self._waiting = self._waiting, []
        offline = self.offline
        if offline is None:
            return outcomes
        return [outcome if outcome.error else Outcome(error=offline) for outcome in outcomes]

    def attempt(self, change: Callable[..., Any], *what: Any) -> Outcome:
        """Run one change, unless offline. A DiskError takes the directory offline, and so does a fault of ours."""
        offline = self.offline
        if offline is not None:
            return Outcome(error=offline)
        try:
            return Outcome(value=change(*what))
        except (DiskError, AssertionError) as error:
            return Outcome(error=self._standing.take_offline(error))
        except Exception as error:
            return Outcome(error=error)

    def append(self, log: Log, batches: Sequence[StoredBatch]) -> Offset:
        self._dirty[log] = None
        return log.append_checked(batches)

    def _perform(self, job: TruncateJob | CallJob) -> Any:
        if isinstance(job, CallJob):
            value = job.fn()
            for log in job.logs:
                self._dirty[log] = None
            return value
        if self._recovery_points is not None:
            self._recovery_points.lower(job.log.path, job.offset)
        self._dirty[job.log] = None
        return job.log.truncate_to(job.offset)


class _Group:
    """The appends to one log that wait to become one write."""

    def __init__(self, log: Log) -> None:
        self.end: tuple[Offset, Epoch] = (log.end_offset, log.last_epoch)
        self.numbers: list[int] = []  # of the jobs
        self.ends: list[Offset] = []  # the end offset after each job
        self.batches: list[StoredBatch] = []


class _Turn:
    """Collects appends by log, so that each log gets one write, up to the next job of another kind."""

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
            self.outcomes[number] = Outcome(error=error)
            return
        group.numbers.append(number)
        group.ends.append(group.end[0])
        group.batches.extend(job.batches)

    def flush(self) -> None:
        for log, group in self._groups.items():
            outcome = self._writer.attempt(self._writer.append, log, group.batches)
            for number, end in zip(group.numbers, group.ends, strict=True):
                self.outcomes[number] = Outcome(value=end) if outcome.error is None else outcome
        self._groups.clear()
