"""The check in the background on the node's loop: one task for each log directory goes through its logs, slowly.

A slice is one search of the directory's reader threads, so it never holds more than one of them, and other searches
come in between. A pause follows each, for `log.index.check.max.bytes.per.second`. The writer mends what is wrong.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from quorumlog.clock import Clock
from quorumlog.errors import ApiError
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.logdirs.log_directory import DirectoryQueue
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica
from quorumlog_broker.scrub.report import ScrubReport
from quorumlog_broker.scrub.schedule import ScrubSchedule
from quorumlog_storage.checks.log_check import LogCheck, Step, mend
from quorumlog_storage.checks.segment_check import Outcome
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.log.log_errors import LogClosed, LogUnreadable
from quorumlog_storage.segment.log_file import CorruptBatch
from quorumlog_storage.writer.directory_life import DirectoryOffline

BUSY_RETRY_MS = 1_000
BUSY_RETRIES = 60  # then the log waits for the next pass

_log = logging.getLogger("quorumlog.broker")
_EXPECTED = (ApiError, DirectoryOffline, DiskError, LogClosed, LogUnreadable, CorruptBatch)  # the queue has seen them


async def check_indexes_for_ever(
    queue: DirectoryQueue, registry: Registry, clock: Clock, schedule: ScrubSchedule, report: ScrubReport
) -> None:
    scrub = DirectoryScrub(queue, registry, clock, schedule, report)
    while queue.is_usable:
        await asyncio.sleep(max(0, schedule.due_ms - clock.now_ms()) / 1000)
        schedule.begin(clock.now_ms())
        if queue.is_usable:
            await scrub.run()
        schedule.ended(clock.now_ms())


class DirectoryScrub:
    """Of one log directory."""

    def __init__(
        self, queue: DirectoryQueue, registry: Registry, clock: Clock, schedule: ScrubSchedule, report: ScrubReport
    ) -> None:
        self._queue, self._registry, self._clock = queue, registry, clock
        self._schedule, self._report = schedule, report

    async def run(self) -> None:
        """One pass over the logs that are here now."""
        self._report.begin()
        for key, replica in list(self._registry.replicas.items()):
            if self._registry.replicas.get(key) is replica and self._holds(replica):
                await self._check(replica)
        self._report.ended(self._clock.wall_ms())

    def _holds(self, replica: Replica) -> bool:
        return replica.queue is self._queue and replica.log is not None and replica.is_usable

    async def _check(self, replica: Replica) -> None:
        assert replica.log is not None
        check = LogCheck(replica.log)
        try:
            while (step := await self._slice(check)) is not None:
                self._report.looked_at(step.size_bytes)
                if step.outcome is not None:
                    await self._take(replica, check, step.outcome)
                pause_ms = self._schedule.pause_ms(step.batches, step.size_bytes, self._clock.now_ms())
                await asyncio.sleep(pause_ms / 1000)
                if replica.log is not check.log or not self._holds(replica):
                    return
        except _EXPECTED as error:
            _log.debug("%s: the check of its indexes waits for the next pass: %s", replica.name, error)
        else:
            self._report.log()

    async def _slice(self, check: LogCheck) -> Step | None:
        for _ in range(BUSY_RETRIES):
            try:
                return await self._queue.search(partial(check.log.look_up, check.step))
            except Busy:
                await asyncio.sleep(BUSY_RETRY_MS / 1000)
        return await self._queue.search(partial(check.log.look_up, check.step))

    async def _take(self, replica: Replica, check: LogCheck, outcome: Outcome) -> None:
        self._report.segment()
        if not outcome.faults and not outcome.damage:
            return
        if not await self._queue.run(partial(mend, check.log, check.cuts, outcome)):
            return  # it has left the log meanwhile
        self._report.faults += len(outcome.faults)
        for fault in outcome.faults:
            _log.warning("%s: an index was wrong and is built again: %s", replica.name, fault)
        for place in outcome.damage:
            if self._report.found_damage(place):
                _log.error("%s: a batch is damaged, and nothing is changed: %s", replica.name, place)
