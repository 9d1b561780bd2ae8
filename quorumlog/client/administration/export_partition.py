"""Reads the bytes of one partition, as they are stored, from its leader: an in-sync replica, up to its high watermark.

The high watermark is that of the first answer, so an export of a partition that is written to ends. A backup gives an
end of its own, which was a high watermark before. Batches come as
they lie in the log: offsets, leader epochs, producers, control batches and compression stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from quorumlog.client.cluster.link import Link, check
from quorumlog.client.errors import QuorumlogError, RequestFailed
from quorumlog.client.offsets import EARLIEST, by_leader, resolve_offsets
from quorumlog.errors import ErrorCode
from quorumlog.ids import Offset, Uuid
from quorumlog.messages.fetch import (
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from quorumlog.records import CorruptRecords, headers, verify_crc

FETCH_BYTES = 4 << 20
STILL_MS = 60_000  # an export that got nothing for so long gives up


class ExportFailed(QuorumlogError):
    """The partition cannot be read to its end."""


class RecordsDeleted(ExportFailed):
    """Records that were not read yet are gone: the log starts behind them now."""


class TopicDeleted(ExportFailed):
    """The topic is gone, or another one has its name."""


@dataclass(frozen=True, slots=True)
class ExportedPart:
    """Whole batches, verified. log_start, high_watermark: of the partition when the export began."""

    records: bytes
    log_start: Offset
    high_watermark: Offset


Take = Callable[[ExportedPart], float | None]


class PartitionExport:
    """take: called with each part in order; at least once, also for a partition without records. It says for how many
    seconds the next part has to wait, which keeps a rate; None: it need not."""

    def __init__(
        self,
        link: Link,
        topic: str,
        index: int,
        take: Take,
        *,
        end: Offset | None = None,
        topic_id: Uuid | None = None,
    ) -> None:
        """end: exclusive, at most the high watermark; None: the high watermark. topic_id: None: whatever it is."""
        self._link, self._topic, self._index, self._take = link, topic, index, take
        self._end, self._wanted_id = end, topic_id

    async def run(self) -> Uuid:
        """Returns the topic's id. Raises RequestFailed, Unavailable, ExportFailed."""
        key = (self._topic, self._index)
        start, topic_id = (await resolve_offsets(self._link, {key: EARLIEST}))[key].place
        if self._wanted_id is not None and topic_id != self._wanted_id:
            raise TopicDeleted(f"topic {self._topic} was deleted and created again meanwhile")
        offset, end = start, -1 if self._end is None else self._end
        if self._end is not None and start >= end:
            self._take(ExportedPart(b"", min(start, end), end))
            return topic_id
        while end < 0 or offset < end:
            answer = await self._link.until(lambda: self._fetch(topic_id, offset), STILL_MS)  # noqa: B023
            if end < 0:
                end = answer.high_watermark
            records, next_offset = self._whole(answer, offset, end)
            wait_s = self._take(ExportedPart(records, start, end))
            if next_offset == offset < end:
                raise ExportFailed(f"{self._topic}-{self._index}: nothing is readable at offset {offset}")
            offset = next_offset
            if wait_s and offset < end:
                await asyncio.sleep(wait_s)
        return topic_id

    async def _fetch(self, topic_id: Uuid, offset: Offset) -> FetchPartitionResponse:
        key = (self._topic, self._index)
        (node,) = await by_leader(self._link, [key])
        if self._link.cache.topics[self._topic].topic_id != topic_id:
            raise TopicDeleted(f"topic {self._topic} was deleted and created again meanwhile")
        partition = FetchPartition(index=self._index, fetch_offset=offset, max_bytes=FETCH_BYTES)
        response: FetchResponse = await self._link.call_node(
            node,
            FetchRequest(
                max_wait_ms=500, min_bytes=1, max_bytes=FETCH_BYTES,
                topics=(FetchTopic(topic_id=topic_id, name=self._topic, partitions=(partition,)),),
            ),
        )  # fmt: skip
        check(response)
        ((answer,),) = (topic.partitions for topic in response.topics)
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise RecordsDeleted(f"{self._topic}-{self._index}: offset {offset} was deleted meanwhile; export again")
        if answer.error_code != ErrorCode.NONE:
            raise RequestFailed(ErrorCode(answer.error_code), f"{self._topic}-{self._index}")
        return answer

    def _whole(self, answer: FetchPartitionResponse, offset: Offset, end: Offset) -> tuple[bytes, Offset]:
        """The batches before `end`, and where the next fetch begins. Raises ExportFailed."""
        data = bytes(answer.records)
        kept, next_offset = 0, offset
        try:
            for header in headers(data, partial_tail=True):
                verify_crc(data, header)
                if header.base_offset >= end:  # compaction has taken what was between
                    next_offset = end
                    break
                if header.next_offset > end:
                    break
                kept, next_offset = header.end, max(next_offset, header.next_offset)
        except CorruptRecords as error:
            raise ExportFailed(f"{self._topic}-{self._index}: {error}") from error
        return data[:kept], next_offset
