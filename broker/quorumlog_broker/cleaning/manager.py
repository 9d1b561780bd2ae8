"""The shell of the cleaner: `log.cleaner.threads` loops, each of which takes the filthiest log and does a round of it.

Rules:

1. A round runs beside the writer. It reads closed segments and writes files of its own; the writer swaps each group in
   by one job, and refuses if the log was truncated, closed or shortened since. So nobody has to wait for a round.
2. The checkpoint moves after the last group was swapped in. A crash in between cleans a part again.
3. A round that fails concerns its log only, and is tried again with growing pauses. An error of the disk has the
   consequence that it has everywhere (quorumlog_storage/rules/failure_rule.py).
4. A round ends at the next step once its log is paused, truncated, moved, deleted, or not to be compacted any more;
   also when the cleaner's settings change (`live_config.py`), because it was begun with the old ones.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from functools import partial
from random import Random
from typing import Any, NamedTuple

from quorumlog.clock import Clock
from quorumlog.errors import ApiError
from quorumlog.ids import Offset
from quorumlog_broker.cleaning.choice import Dirt, LogFacts, SegmentFacts, filthiest, judge, needs_times
from quorumlog_broker.cleaning.failures import Failures
from quorumlog_broker.cleaning.live_config import LiveConfig
from quorumlog_broker.cleaning.runner import CleanerDied, Runner
from quorumlog_broker.cleaning.states import CleaningStates
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.cleaning.spec import GroupCleaned, RoundDone, RoundSpec
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.files.disk import DiskError, FileMissing
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogClosed, LogUnreadable, reading
from quorumlog_storage.log.swap import Superseded
from quorumlog_storage.rules.failure_rule import Consequence, consequence_of
from quorumlog_storage.segment.log_file import CorruptBatch
from quorumlog_storage.segment.segment import Segment
from quorumlog_storage.writer.directory_life import DirectoryOffline

HASH_KEY_BYTES = 16
REPLICAS_A_TURN = 200  # looked at before the loop does something else

_log = logging.getLogger("quorumlog.broker")


class LastRound(NamedTuple):
    """What the newest round of a log did. ended_ms: wall clock."""

    done: RoundDone
    bytes_before: int
    bytes_after: int
    ended_ms: int


class LastLook(NamedTuple):
    """What the newest look at all logs found. at_ms: monotonic; None: nobody has looked yet.

    largest_ratio: dirty share, 0 to 1, of the filthiest log that may be compacted. longest_overdue_ms: by how much the
    oldest dirty record of any is older than `max.compaction.lag.ms`.
    """

    at_ms: int | None = None
    largest_ratio: float = 0.0
    longest_overdue_ms: int = 0


class Totals:
    """Since the start."""

    def __init__(self) -> None:
        self.rounds = self.failures = 0
        self.bytes_read = self.bytes_written = self.bytes_freed = self.keyless = 0


class _Ended(Exception):
    """The round has to stop: see rule 4."""


class CleanerManager:
    """Used on the loop. states, failures, last, totals, looked: to read.

    pause, resume: of `states`, for whoever needs a log as it is, such as a move to another directory.
    """

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        rng: Random,
        config: LiveConfig,
        make_runner: Callable[[], Runner] | None,
        start: Callable[[Coroutine[Any, Any, None], str], None],
    ) -> None:
        """make_runner: called once for each thread; None: this broker compacts nothing. start: a task, by its name."""
        self._registry, self._clock, self._rng, self.config = registry, clock, rng, config
        self._changed = asyncio.Event()  # set, and replaced, when the settings change
        self._make_runner, self._start = make_runner, start
        self._running: set[int] | None = None  # numbers of the loops; None before `begin`
        self.states = CleaningStates()
        self.failures = Failures()
        self.last: dict[PartitionKey, LastRound] = {}
        self.totals = Totals()
        self.looked = LastLook()

    @property
    def threads(self) -> int:
        """How many rounds at the same time; 0: nothing is compacted."""
        config = self.config.now
        return config.threads if config.enable and self._make_runner is not None else 0

    @property
    def paused_ms(self) -> int:
        """For how long no round begins, because a backup copies (decision 152); 0: they do."""
        return max(0, self.config.now.paused_until_ms - self._clock.wall_ms())

    def settings_changed(self) -> None:
        """Those of brokers have, perhaps. Rounds begin anew with theirs, and loops begin or end."""
        if self.config.refresh():
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()
            if self._running is not None:
                self._fill()

    def begin(self) -> None:
        """As many loops as there are threads, from now on after each change."""
        self._running = set()
        self._fill()

    def _fill(self) -> None:
        assert self._running is not None
        for number in range(self.threads):
            if number not in self._running:
                self._running.add(number)
                self._start(self._loop(number, self._running), f"cleaner {number}")

    async def _loop(self, number: int, running: set[int]) -> None:
        """One thread, with a runner of its own. It ends when there are fewer."""
        assert self._make_runner is not None
        runner = self._make_runner()
        try:
            while number < self.threads:
                changed, found = self._changed, await self._choose()
                if found is not None:
                    await self._clean(runner, *found)
                    continue
                await runner.rest()
                try:
                    async with asyncio.timeout(self.config.now.backoff_ms / 1000):
                        await changed.wait()
                except TimeoutError:
                    pass
            running.discard(number)
        finally:
            await runner.rest()

    # --- which log ---

    async def judged(self, replica: Replica) -> Dirt | None:
        """What could be cleaned of a log; None where it cannot be looked at. Raises ApiError, LogUnreadable."""
        log, partition_log = replica.log, replica.partition_log
        if log is None or partition_log is None or replica.queue is None or not replica.is_usable:
            return None
        config, view = replica.config, log.view
        segments = [SegmentFacts(segment.base_offset, view.limit(n)) for n, segment in enumerate(view.segments)]
        if needs_times(config.min_compaction_lag_ms, config.max_compaction_lag_ms):
            dirty = [n for n in range(len(segments) - 1) if view.bases[n + 1] > partition_log.first_dirty]
            closed = [view.segments[n] for n in dirty]
            times = await replica.queue.read(partial(_times, log, closed))
            for number, (first_ms, largest_ms) in zip(dirty, times, strict=True):
                segments[number] = segments[number]._replace(first_ms=first_ms, largest_ms=largest_ms)
        return judge(
            LogFacts(
                segments=tuple(segments),
                start_offset=view.start_offset,
                end_offset=view.end_offset,
                last_stable_offset=replica.core.last_stable_offset,
                noted=partition_log.first_dirty,
                min_dirty_ratio=config.min_cleanable_dirty_ratio,
                min_lag_ms=config.min_compaction_lag_ms,
                max_lag_ms=config.max_compaction_lag_ms,
                now_ms=self._clock.wall_ms(),
            )
        )

    async def _choose(self) -> tuple[Replica, Dirt] | None:
        now_ms = self._clock.now_ms()
        found: dict[str, tuple[Replica, Dirt]] = {}
        for number, replica in enumerate(list(self._registry.replicas.values())):
            if number % REPLICAS_A_TURN == REPLICAS_A_TURN - 1:
                await asyncio.sleep(0)
            key = replica.key
            if is_compacted(replica) and self.states.is_free(key) and self.failures.may_try(key, now_ms):
                try:
                    dirt = await self.judged(replica)
                except (ApiError, LogUnreadable, DiskError, CorruptBatch):
                    continue  # offline, or busy: the next look finds it again
                if dirt is not None:
                    found[replica.name] = (replica, dirt)
        self._forget_those_gone()
        dirts = [dirt for _, dirt in found.values()]
        self.looked = LastLook(
            now_ms, max((one.ratio for one in dirts), default=0.0), max((one.overdue_ms for one in dirts), default=0)
        )
        if self.paused_ms:
            return None
        name = filthiest((name, dirt) for name, (replica, dirt) in found.items() if self.states.is_free(replica.key))
        return None if name is None else found[name]

    def _forget_those_gone(self) -> None:
        here = set(self._registry.replicas)
        self.failures.keep_only(here)
        for key in [key for key in self.last if key not in here]:
            del self.last[key]

    # --- a round ---

    async def _clean(self, runner: Runner, replica: Replica, dirt: Dirt) -> None:
        key, log = replica.key, replica.log
        assert log is not None
        cuts, start_offset = log.cuts, log.start_offset
        self.states.begin(key)
        try:
            await self._round(runner, replica, dirt)
        except (DiskError, LogUnreadable, CorruptBatch, CleanerDied, Busy) as error:
            why = self._why_over(replica, log, cuts)
            if not why and isinstance(error, FileMissing) and log.start_offset > start_offset:
                why = "its first segments were deleted"
            if why:  # what was read had gone
                _log.info("%s: a compaction ended early: %s", replica.name, why)
            else:
                self._failed(replica, error)
                self._tell_disk(replica, error)
        except (_Ended, Superseded, LogClosed, DirectoryOffline, ApiError) as ended:
            _log.info("%s: a compaction ended early: %s", replica.name, ended)
        else:
            self.failures.succeeded(key)
        finally:
            self.states.end(key)

    async def _round(self, runner: Runner, replica: Replica, dirt: Dirt) -> None:
        queue, log, partition_log = replica.queue, replica.log, replica.partition_log
        assert queue is not None and log is not None and partition_log is not None
        view, cuts, config = log.view, log.cuts, self.config.now
        if dirt.must_be_noted:
            await queue.run(partial(partition_log.note_cleaned, dirt.first_dirty))
        spec = await queue.run(partial(self._spec, replica, dirt))
        by_base = {segment.base_offset: segment for segment in view.segments}
        before = after = 0
        async with aclosing(runner.steps(spec, queue.read)) as steps:
            async for step in steps:
                if why := self._why_over(replica, log, cuts):
                    raise _Ended(why)
                if config is not self.config.now and config != self.config.now:
                    raise _Ended("the cleaner's settings have changed; it begins anew")
                if isinstance(step, GroupCleaned):
                    before, after = before + step.bytes_before, after + step.bytes_after
                    if step.outputs:
                        sources = [by_base[base] for base in step.sources]
                        replica.tail.drop_before(view.bases[view.segments.index(sources[-1]) + 1])
                        await queue.run(partial(log.replace_segments, sources, step.outputs, cuts))
                elif isinstance(step, RoundDone):
                    await queue.run(partial(_note, log, cuts, partition_log, step.first_dirty))
                    self._ended(replica, step, before, after)

    def _spec(self, replica: Replica, dirt: Dirt) -> RoundSpec:
        """In the directory's worker, because it reads the producers."""
        log, config, cleaner = replica.log, replica.config, self.config.now
        assert log is not None
        threads = max(1, cleaner.threads)
        view, states = log.view, log.producers.states.entries if log.producers is not None else {}
        sizes = [(segment.base_offset, view.limit(number)) for number, segment in enumerate(view.segments)]
        return RoundSpec(
            path=log.path,
            segments=tuple(one for one in sizes if one[0] < dirt.boundary),
            end_offset=dirt.boundary,
            beyond=tuple(one for one in sizes if one[0] >= dirt.boundary),
            first_dirty=dirt.first_dirty,
            producers=tuple((producer, entry.epoch, entry.last_offset) for producer, entry in states.items()),
            hash_key=self._rng.randbytes(HASH_KEY_BYTES),
            now_ms=self._clock.wall_ms(),
            delete_retention_ms=config.delete_retention_ms,
            segment_bytes=config.segment_bytes,
            index_interval_bytes=max(1, config.index_interval_bytes),
            segment_index_bytes=config.segment_index_bytes,
            map_bytes=cleaner.map_bytes,
            load_factor=cleaner.load_factor,
            io_buffer_bytes=cleaner.io_buffer_bytes // threads,
            bytes_per_s=cleaner.bytes_per_s / threads,
        )

    def _why_over(self, replica: Replica, log: Log, cuts: int) -> str:
        """Why a round has to end; "" if it may go on. cuts: of the log when it began."""
        if self.states.is_aborted(replica.key):
            return "it was paused"
        if not self._is_current(replica) or log.guard.is_closed:
            return "the replica has left this broker"
        if log.cuts != cuts:
            return "the log was truncated"
        return "" if is_compacted(replica) else "cleanup.policy or retention.paused has changed"

    def _is_current(self, replica: Replica) -> bool:
        return self._registry.replicas.get(replica.key) is replica

    def _ended(self, replica: Replica, done: RoundDone, before: int, after: int) -> None:
        self.last[replica.key] = LastRound(done, before, after, self._clock.wall_ms())
        totals = self.totals
        totals.rounds += 1
        totals.bytes_read += done.bytes_read
        totals.bytes_written += done.bytes_written
        totals.bytes_freed += before - after
        totals.keyless += done.keyless
        if done.keyless:
            _log.warning("%s: compaction dropped %d records that have no key", replica.name, done.keyless)

    def _failed(self, replica: Replica, error: Exception) -> None:
        now_ms = self._clock.now_ms()
        failure = self.failures.failed(replica.key, str(error), now_ms, self._clock.wall_ms())
        self.totals.failures += 1
        _log.error(
            "%s is not compacted: %s; the next try is in %d s (quorumlog log explain-compaction %s)",
            replica.name,
            failure.reason,
            (failure.retry_ms - now_ms) // 1000,
            replica.name,
        )

    def _tell_disk(self, replica: Replica, error: Exception) -> None:
        """A round that ran elsewhere meets the disk's errors without the directory's queue."""
        queue, log = replica.queue, replica.log
        if queue is None or log is None or not isinstance(error, DiskError) or not self._is_current(replica):
            return
        consequence = consequence_of(error)
        if consequence is Consequence.DIRECTORY_OFFLINE:
            queue.fail(error)
        elif consequence is Consequence.REPLICA_OFFLINE:
            queue.is_unreadable(LogUnreadable(log.path, error, log))


def is_compacted(replica: Replica) -> bool:
    """Not while its retention is paused: an import keeps every record until its operator says otherwise."""
    return "compact" in replica.config.cleanup_policy and not replica.config.retention_paused


def _times(log: Log, segments: Sequence[Segment]) -> list[tuple[int, int]]:
    """(first, largest) timestamp of each, in a reader thread. Raises LogUnreadable, DiskError."""
    with reading(log.path):
        return [(segment.first_timestamp, segment.largest_timestamp) for segment in segments]


def _note(log: Log, cuts: int, partition_log: PartitionLog, first_dirty: Offset) -> None:
    """In the directory's worker. After a truncation the offset may lie above the log's end. Raises Superseded."""
    if log.cuts != cuts:
        raise Superseded(log.path, "the log was truncated while it was cleaned")
    partition_log.note_cleaned(first_dirty)
