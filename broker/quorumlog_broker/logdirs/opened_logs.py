"""Logs that were opened beside the writer, as it takes them over: several in one turn, with one round of syncs.

After a node was killed each of its logs may need a sync before anybody builds on it. Thousands of them, one after the
other, take longer than all the rest of the start. The syncs of one turn run side by side and share the flushes of the
drive (quorumlog_storage/edge/worker.py). While a turn syncs, further logs are loaded; the next turn takes those.

Each loaded log queues one job, and each job takes as many logs as wait when it begins. So a log is taken over at the
latest by its own job, before anything that the loop queues after it, such as its deletion.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from quorumlog_broker.logdirs.background_jobs import BackgroundJobs, Callback
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import is_back_pressure
from quorumlog_storage.writer.writer import Outcome

MAX_AT_ONCE = 8  # of one job; appends wait behind those of `background_jobs.MAX_UNDER_WAY` jobs


class CallSynced(Protocol):
    """`DirectoryQueue.call_synced`."""

    def __call__(self, work: Callable[[], Any], logs: list[Log], *, done: Callback, failed: Callback) -> None: ...


@dataclass(slots=True)
class _Loaded:
    """One of done and failed is called, once."""

    log: Log
    work: Callable[[], Any]
    done: Callback
    failed: Callback
    is_answered: bool = False

    def fail(self, error: Exception | None) -> None:
        if not self.is_answered:
            self.is_answered = True
            self.failed(error)

    def end(self, value: Any) -> None:
        if not self.is_answered:
            self.is_answered = True
            self.done(value)


_Taken = list[tuple[_Loaded, Outcome]]


class TakingOver:
    """Of one log directory. Used on the loop."""

    def __init__(
        self, background: BackgroundJobs, call: CallSynced, error_of: Callable[[Outcome], Exception | None]
    ) -> None:
        """error_of: what an outcome means for the directory and for who asked."""
        self._background, self._call, self._error_of = background, call, error_of
        self._waiting: deque[_Loaded] = deque()  # the loop appends, the writer takes

    def add(self, log: Log, work: Callable[[], Any], done: Callback, failed: Callback) -> None:
        """work: in the writer; it leaves the log's sync to the end of the turn. done: after that sync."""
        loaded = _Loaded(log, work, done, failed)
        self._waiting.append(loaded)
        logs: list[Log] = []

        def call(work: Callable[[], Any], *, done: Callback, failed: Callback) -> None:
            self._call(work, logs, done=done, failed=failed)

        self._background.add(lambda: _take(self._waiting, logs), self._answer, loaded.fail, call)

    def _answer(self, taken: _Taken) -> None:
        for loaded, outcome in taken:
            error = self._error_of(outcome)
            if error is None:
                loaded.end(outcome.value)
            else:
                loaded.fail(error)


def _take(waiting: deque[_Loaded], logs: list[Log]) -> _Taken:
    """In the writer. Raises what fails the directory; then every log that waits learns that from its own job."""
    taken: _Taken = []
    while waiting and len(taken) < MAX_AT_ONCE:
        loaded = waiting.popleft()
        logs.append(loaded.log)
        taken.append((loaded, _attempt(loaded.work)))
    return taken


def _attempt(work: Callable[[], Any]) -> Outcome:
    """As a job of its own would end: what concerns one log alone is told to those who wait for it."""
    try:
        return Outcome(value=work())
    except (DiskError, AssertionError) as error:
        if not is_back_pressure(error):
            raise
        return Outcome(error=error)
    except Exception as error:
        return Outcome(error=error)
