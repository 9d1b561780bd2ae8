"""Retention on the node's loop: one task for each log directory performs the passes that the schedule asks for.

Every replica does this by itself, as in Kafka. A follower also follows its leader's start
(`quorumlog_broker/replication/`).
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TypeVar, assert_never

from quorumlog.clock import Clock
from quorumlog.errors import ApiError
from quorumlog.ids import Offset
from quorumlog_broker.logdirs.log_directory import DirectoryQueue, Lane
from quorumlog_broker.partition.events import LogStartMoved
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica
from quorumlog_broker.replicas.replica import Step as StepReplica
from quorumlog_broker.retention.passes import (
    RETIRE_SEGMENTS,
    Find,
    Note,
    RetentionPass,
    RetentionSchedule,
    Retire,
    Step,
)
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.log.log_errors import LogClosed, LogUnreadable
from quorumlog_storage.retention.blocked import Blocked, find_blocked
from quorumlog_storage.retention.expiry import Candidate, Planned, find_expired, note_starts, retire_expired
from quorumlog_storage.retention.policy import Policy
from quorumlog_storage.writer.directory_life import DirectoryOffline

T = TypeVar("T")

_log = logging.getLogger("quorumlog.broker")
_EXPECTED = (ApiError, DirectoryOffline, DiskError, LogClosed, LogUnreadable)  # handled where the queue saw them


async def retain_for_ever(
    queue: DirectoryQueue,
    registry: Registry,
    step: StepReplica,
    clock: Clock,
    interval_ms: int,
    *,
    initial_delay_ms: int,
    blocked: dict[PartitionKey, Blocked],
) -> None:
    """Until the directory fails: one that is back has another queue.

    interval_ms: `log.retention.check.interval.ms`. initial_delay_ms: `log.initial.task.delay.ms`. blocked: see
    `DirectoryRetention`.
    """
    schedule = RetentionSchedule(interval_ms, clock.now_ms(), initial_delay_ms=initial_delay_ms)
    retention = DirectoryRetention(queue, registry, step, blocked)
    while queue.is_usable:
        await asyncio.sleep(max(0, schedule.due_ms - clock.now_ms()) / 1000)
        if queue.is_usable:
            await retention.run(schedule.begin(clock.now_ms(), clock.wall_ms()))
        schedule.ended(clock.now_ms())


class DirectoryRetention:
    """Of one log directory. blocked: logs that keep everything because of their times, at the last look at each."""

    def __init__(
        self, queue: DirectoryQueue, registry: Registry, step: StepReplica, blocked: dict[PartitionKey, Blocked]
    ) -> None:
        self._queue, self._registry, self._step, self._blocked = queue, registry, step, blocked

    async def run(self, wall_ms: int) -> None:
        """One pass. wall_ms: the present, by which ages are judged."""
        replicas = self._registry.replicas
        for key in [key for key in self._blocked if not self._is_candidate_anywhere(key)]:
            del self._blocked[key]
        one = RetentionPass(key for key, replica in replicas.items() if replica.queue is self._queue)
        while (step := one.next_step()) is not None:
            try:
                await self._perform(one, step, wall_ms)
            except _EXPECTED as error:
                _log.debug("%s: retention left out a step: %s", self._queue.directory.path, error)
                one.failed(step)

    async def _perform(self, one: RetentionPass, step: Step, wall_ms: int) -> None:
        match step:
            case Find(keys):
                candidates = {key: found for key in keys if (found := self._candidate(key)) is not None}
                if candidates:
                    await self._note_blocked(candidates, wall_ms)
                    planned = await self._queue.read(partial(find_expired, list(candidates.values()), wall_ms))
                    key_of = {found.held: key for key, found in candidates.items()}
                    one.found({key_of[held]: start for held, start in planned})
            case Note(starts):
                work = partial(note_starts, self._queue.directory.partitions, self._planned(starts))
                await self._queue.run(work, Lane.BACKGROUND)  # appends get their turns in between
                one.noted()
            case Retire(starts):
                held = {key: planned for key in starts for planned in self._planned({key: starts[key]})}
                outcome = await self._queue.run(partial(_retire, held), Lane.BACKGROUND)
                for key, (log, start, _) in outcome.items():
                    self._moved(key, log, start)
                unfinished = {key for key, (_, _, is_done) in outcome.items() if not is_done}
                one.retired([key for key in starts if key not in unfinished])
            case _:
                assert_never(step)

    async def _note_blocked(self, candidates: dict[PartitionKey, Candidate], wall_ms: int) -> None:
        found = await self._queue.read(partial(find_blocked, list(candidates.values()), wall_ms))
        by_log = {one.held: one for one in found}
        for key, candidate in candidates.items():
            self._blocked.pop(key, None)
            if candidate.held in by_log:
                self._blocked[key] = by_log[candidate.held]

    def _is_candidate_anywhere(self, key: PartitionKey) -> bool:
        """Another directory's are that directory's to look at."""
        replica = self._registry.replicas.get(key)
        return replica is not None and (replica.queue is not self._queue or self._candidate(key) is not None)

    def _candidate(self, key: PartitionKey) -> Candidate | None:
        """None where nothing can go: it is compacted only, keeps everything, or is not open here."""
        replica = self._registry.replicas.get(key)
        if replica is None or not self._holds(replica) or "delete" not in replica.config.cleanup_policy:
            return None
        policy = Policy(replica.config.retention_ms, replica.config.retention_bytes)
        if policy.keeps_all:
            return None
        assert replica.partition_log is not None
        return Candidate(replica.partition_log, policy, replica.core.high_watermark)

    def _holds(self, replica: Replica) -> bool:
        """It lies here, and its core knows its log."""
        is_known = replica.log is not None and replica.partition_log is not None
        return is_known and replica.queue is self._queue and replica.is_usable and not replica.is_frozen

    def _planned(self, starts: dict[PartitionKey, Offset]) -> list[Planned]:
        replicas = ((self._registry.replicas.get(key), start) for key, start in starts.items())
        return [
            Planned(replica.partition_log, start)
            for replica, start in replicas
            if replica is not None and self._holds(replica) and replica.partition_log is not None
        ]

    def _moved(self, key: PartitionKey, held: PartitionLog, start: Offset) -> None:
        replica = self._registry.replicas.get(key)
        if replica is not None and replica.log is held.log and start > replica.core.log_start:
            self._step(replica, LogStartMoved(start))


def _retire(planned: dict[PartitionKey, Planned]) -> dict[PartitionKey, tuple[PartitionLog, Offset, bool]]:
    """In the writer. For each log: itself, its start now, and whether nothing is left to do."""
    outcome = {}
    for key, one in planned.items():
        is_done = retire_expired(one, RETIRE_SEGMENTS)
        outcome[key] = (one.held, one.held.log.start_offset, is_done)
    return outcome
