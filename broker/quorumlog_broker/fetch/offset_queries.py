"""Questions about the log of a leader that are answered without records.

Offsets by time, where an epoch ends, how many bytes which offsets take, and how many records are to be read.

What searches in the log of a leader have in common: up to where they may look, and how they take turns.

Offsets by time and by name: earliest, latest, the first record at or after a time, the record of the largest time.

A time is searched through batch headers, away from the loop (`time_search.py`). No offset past the end that the
reader's isolation allows is answered, and none but the earliest before the high watermark has reached the start of this
leadership (KIP-207).

Where an epoch ends in the log of its partition's leader (OffsetForLeaderEpoch, KIP-101, KIP-320): a reader finds out
by it whether the records that it has read are still in the log. A fetch is answered by the same epochs
(`quorumlog_storage/rules/fetch_rule.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_EPOCH, Epoch, Offset, Uuid
from quorumlog.messages.fetch import (
    CountedRecords,
    DescribedRanges,
    EpochPartitionResult,
    ListOffsetsPartitionResponse,
    OffsetRange,
)
from quorumlog.records import CorruptRecords
from quorumlog_broker.fetch.range_search import RangeSearch, WantedRanges
from quorumlog_broker.fetch.time_search import FirstSince, Found, LatestTime
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica
from quorumlog_broker.replicas.upcoming import MAX_QUERY_WAIT_MS, UpcomingLeaderships
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogUnreadable
from quorumlog_storage.log.log_view import OffsetOutOfRange
from quorumlog_storage.rules.isolation import Isolation, upper_bound
from quorumlog_storage.segment.log_file import CorruptBatch

if TYPE_CHECKING:
    from quorumlog_storage.log.record_counts import LogCounts


def readable_end(replica: Replica, isolation: Isolation) -> Offset:
    """Exclusive. Raises ApiError before the high watermark has reached the start of this leadership (KIP-207)."""
    if not replica.core.offset_available:
        text = f"{replica.name}: the high watermark has not reached the start of epoch {replica.core.leader_epoch} yet"
        raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE, text)
    return upper_bound(isolation, replica.core)


async def take_steps(replica: Replica, step: Callable[[], bool]) -> None:
    """One slice after the other, so that searches in one directory take turns, and fetches go on beside them.

    step: True once it is over. Raises ApiError.
    """
    assert replica.queue is not None
    try:
        while not await replica.queue.search(step):
            replica.leading()  # else the log may be cut, or leave, under the search
    except (Busy, OffsetOutOfRange) as error:
        replica.leading()
        raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE, str(error)) from error
    except (LogUnreadable, DiskError, CorruptBatch, CorruptRecords) as error:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error


LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6
"""Of tiered storage (KIP-405, KIP-1005, KIP-1023): here every record is local, and none waits to be moved elsewhere."""


def check_time(timestamp_ms: int) -> None:
    """Raises ApiError."""
    if timestamp_ms < EARLIEST_PENDING_UPLOAD:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp_ms}: must be 0 or later, or -1 to -6")


async def list_offset(
    replica: Replica, index: int, timestamp_ms: int, current_leader_epoch: Epoch, isolation: Isolation
) -> ListOffsetsPartitionResponse:
    """timestamp_ms: a time, or one of the names above (`check_time`). Offset -1 if there is no such record.

    current_leader_epoch: NO_EPOCH asks for no check. Raises ApiError.
    """
    epoch = None if current_leader_epoch == NO_EPOCH else current_leader_epoch
    log = replica.leading(epoch)
    if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
        return _answer(replica, index, log, (-1, log.start_offset))
    end = readable_end(replica, isolation)
    if timestamp_ms == LATEST:
        return _answer(replica, index, log, (-1, end))
    if timestamp_ms in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _answer(replica, index, log, None)
    found = await _search(replica, log, timestamp_ms, end)
    replica.leading(epoch)
    return _answer(replica, index, log, found)


async def _search(replica: Replica, log: Log, timestamp_ms: int, end: Offset) -> Found | None:
    search = LatestTime(log, end) if timestamp_ms == MAX_TIMESTAMP else FirstSince(log, end, timestamp_ms)
    await take_steps(replica, search.step)
    return search.found


def _answer(replica: Replica, index: int, log: Log, found: Found | None) -> ListOffsetsPartitionResponse:
    if found is None:
        return ListOffsetsPartitionResponse(index=index)
    timestamp_ms, offset = found
    epoch = log.epochs.epoch_for(offset)
    if offset >= log.end_offset or epoch is None:
        epoch = replica.core.leader_epoch
    return ListOffsetsPartitionResponse(index=index, timestamp_ms=timestamp_ms, offset=offset, leader_epoch=epoch)


def end_of_epoch(replica: Replica, index: int, epoch: Epoch, current_leader_epoch: Epoch) -> EpochPartitionResult:
    """Epoch and end offset are -1 if the log does not know the epoch, nor one before it.

    current_leader_epoch: NO_EPOCH asks for no check. Raises ApiError.
    """
    log = replica.leading(None if current_leader_epoch == NO_EPOCH else current_leader_epoch)
    if epoch == replica.core.leader_epoch:
        return EpochPartitionResult(index=index, leader_epoch=epoch, end_offset=log.end_offset)
    found = log.epochs.end_offset_for(epoch, log.end_offset)
    if found is None:
        return EpochPartitionResult(index=index)
    return EpochPartitionResult(index=index, leader_epoch=found.epoch, end_offset=found.end_offset)


class _Counts(NamedTuple):
    """Of one leadership: within it the log is never cut."""

    leader_epoch: Epoch
    counts: LogCounts


class OffsetQueries:
    """Errors are in the responses; nothing is raised."""

    def __init__(self, registry: Registry, upcoming: UpcomingLeaderships, clock: Clock) -> None:
        self._registry, self._upcoming, self._clock = registry, upcoming, clock
        self._counts: WeakKeyDictionary[Log, _Counts] = WeakKeyDictionary()

    async def list_offset(
        self,
        topic: Uuid | str,
        index: int,
        timestamp_ms: int,
        *,
        current_leader_epoch: Epoch = NO_EPOCH,
        isolation: Isolation = Isolation.HIGH_WATERMARK,
        deadline_ms: int = 0,
    ) -> ListOffsetsPartitionResponse:
        """timestamp_ms: a time, or -1 for the latest offset, -2 the earliest, -3 that of the largest timestamp.

        deadline_ms: until then it waits for a log that this broker is about to lead; on the clock of `now_ms`.
        """
        deadline_ms = min(deadline_ms, self._clock.now_ms() + MAX_QUERY_WAIT_MS)
        while True:
            try:
                check_time(timestamp_ms)  # first, as in Kafka: also of a topic that does not exist
                replica = self._registry.find(topic, index)
                return await list_offset(replica, index, timestamp_ms, current_leader_epoch, isolation)
            except ApiError as error:
                if not await self._upcoming.wait(error, topic, index, deadline_ms):
                    return ListOffsetsPartitionResponse(index=index, error_code=error.code)

    async def end_of_epoch(
        self, topic: Uuid | str, index: int, epoch: Epoch, current_leader_epoch: Epoch, *, deadline_ms: int = 0
    ) -> EpochPartitionResult:
        """deadline_ms: as in `list_offset`."""
        while True:
            try:
                return end_of_epoch(self._registry.find(topic, index), index, epoch, current_leader_epoch)
            except ApiError as error:
                if not await self._upcoming.wait(error, topic, index, deadline_ms):
                    return EpochPartitionResult(index=index, error_code=error.code)

    async def describe_ranges(
        self,
        topic: Uuid | str,
        index: int,
        start: Offset,
        end: Offset,
        wanted: WantedRanges,
        *,
        isolation: Isolation,
        deadline_ms: int,
    ) -> DescribedRanges:
        """end: exclusive; -1: that of what the reader may see. deadline_ms: as in `list_offset`."""
        while True:
            try:
                return await self._ranges(topic, index, start, end, wanted, isolation)
            except ApiError as error:
                if not await self._upcoming.wait(error, topic, index, deadline_ms):
                    return DescribedRanges(index=index, error_code=error.code, error_message=str(error))

    async def _ranges(
        self, topic: Uuid | str, index: int, start: Offset, end: Offset, wanted: WantedRanges, isolation: Isolation
    ) -> DescribedRanges:
        replica = self._registry.find(topic, index)
        log = replica.leading()
        readable = readable_end(replica, isolation)
        search = RangeSearch(log, start, readable if end < 0 else min(end, readable), wanted)
        await take_steps(replica, search.step)
        replica.leading()
        ranges = [
            OffsetRange(start_offset=o.start, end_offset=o.end, size_bytes=o.size, max_timestamp_ms=o.max_timestamp)
            for o in search.found
        ]
        next_offset = -1 if search.has_reached_the_end else search.next_offset
        return DescribedRanges(index=index, ranges=tuple(ranges), next_offset=next_offset)

    async def count_records(
        self,
        topic: Uuid | str,
        index: int,
        start: Offset,
        *,
        isolation: Isolation,
        deadline_ms: int,
        max_headers: int,
    ) -> tuple[CountedRecords, int]:
        """The readable records from `start` on, and how many headers were read for that. deadline_ms: as in
        `list_offset`."""
        while True:
            try:
                return await self._count(topic, index, start, isolation, max_headers)
            except ApiError as error:
                if not await self._upcoming.wait(error, topic, index, deadline_ms):
                    return CountedRecords(index=index, error_code=error.code, error_message=str(error)), 0

    async def _count(
        self, topic: Uuid | str, index: int, start: Offset, isolation: Isolation, max_headers: int
    ) -> tuple[CountedRecords, int]:
        from quorumlog_storage.log.record_count import Bounds, RecordCount  # at the first question

        replica = self._registry.find(topic, index)
        log = replica.leading()
        end = readable_end(replica, isolation)
        bounds = Bounds(max(start, log.start_offset), end, replica.core.last_stable_offset)
        count = RecordCount(log, self._counts_of(replica, log), bounds, max_headers)
        await take_steps(replica, count.step)
        replica.leading()
        first_ms = -1 if count.first_ms is None else count.first_ms
        answer = CountedRecords(
            index=index,
            records=count.records,
            is_estimate=not count.is_exact,
            first_timestamp_ms=first_ms,
            age_ms=0 if first_ms < 0 else max(0, self._clock.wall_ms() - first_ms),
            log_start_offset=log.start_offset,
            end_offset=end,
        )
        return answer, count.headers

    def _counts_of(self, replica: Replica, log: Log) -> LogCounts:
        from quorumlog_storage.log.record_counts import LogCounts

        found = self._counts.get(log)
        if found is None or found.leader_epoch != replica.core.leader_epoch:
            found = self._counts[log] = _Counts(replica.core.leader_epoch, LogCounts())
        return found.counts
