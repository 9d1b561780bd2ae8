"""Logs that were opened beside the writer, as it takes them over: several in one turn, with one round of syncs.

After a node was killed each of its logs may need a sync before anybody builds on it. Thousands of them, one after the
other, take longer than all the rest of the start. The syncs of one turn run side by side and share the flushes of the
drive (quorumlog_storage/edge/worker.py). While a turn syncs, further logs are loaded; the next turn takes those.

Each loaded log queues one job, and each job takes as many logs as wait when it begins. So a log is taken over at the
latest by its own job, before anything that the loop queues after it, such as its deletion.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from quorumlog_broker.logdirs.background_jobs import BackgroundJobs, Work
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import is_back_pressure
from quorumlog_storage.writer.writer import Outcome

MAX_AT_ONCE = 8  # of one job; appends wait behind those of `background_jobs.MAX_UNDER_WAY` jobs

_Taken = list[tuple[Work, Outcome]]


class OpenedLogs:
    """Of one log directory. Used on the loop."""

    def __init__(self, background: BackgroundJobs, error_of: Callable[[Outcome], Exception | None]) -> None:
        """error_of: what an outcome means for the directory and for who asked."""
        self._background, self._error_of = background, error_of
        self._waiting: deque[Work] = deque()  # the loop appends, the writer takes

    def add(self, work: Work) -> None:
        """It leaves its log's sync to the end of the turn, and is answered after that."""
        self._waiting.append(work)
        logs: list[Log] = []
        taken: asyncio.Future[_Taken] = asyncio.get_running_loop().create_future()
        taken.add_done_callback(partial(self._answer, work))
        self._background.add(Work(partial(_take, self._waiting, logs), taken, logs))

    def _answer(self, work: Work, taken: asyncio.Future[_Taken]) -> None:
        """work: for which this job was queued; an earlier one may have taken it."""
        failure = taken.exception()
        if isinstance(failure, Exception):
            work.fail(failure)
            return
        for one, outcome in taken.result():
            error = self._error_of(outcome)
            if error is None:
                one.end(outcome.value)
            else:
                one.fail(error)


def _take(waiting: deque[Work], logs: list[Log]) -> _Taken:
    """In the writer. Raises what fails the directory; then every log that waits learns that from its own job."""
    taken: _Taken = []
    while waiting and len(taken) < MAX_AT_ONCE:
        work = waiting.popleft()
        logs.extend(work.logs or ())
        taken.append((work, _attempt(work.perform)))
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
