"""Questions about the log of a leader that are answered without records.

Offsets by time, where an epoch ends, and how many bytes which offsets take.
"""

from __future__ import annotations

from quorumlog.clock import Clock
from quorumlog.errors import ApiError
from quorumlog.ids import NO_EPOCH, Epoch, Offset, Uuid
from quorumlog.messages.fetch import (
    DescribedRanges,
    EpochPartitionResult,
    ListOffsetsPartitionResponse,
    OffsetRange,
)
from quorumlog_broker.fetch.epoch_ends import end_of_epoch
from quorumlog_broker.fetch.list_offsets import check_time, list_offset
from quorumlog_broker.fetch.range_search import RangeSearch, WantedRanges
from quorumlog_broker.fetch.search_steps import readable_end, take_steps
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.upcoming import MAX_QUERY_WAIT_MS, UpcomingLeaderships
from quorumlog_storage.rules.isolation import Isolation


class OffsetQueries:
    """Errors are in the responses; nothing is raised."""

    def __init__(self, registry: Registry, upcoming: UpcomingLeaderships, clock: Clock) -> None:
        self._registry, self._upcoming, self._clock = registry, upcoming, clock

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
