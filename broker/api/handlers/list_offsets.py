"""ListOffsets: the earliest, the latest, or the first offset since a time, for partitions that this broker leads."""

from __future__ import annotations

from broker.api.handlers.limits import check_topic_count
from broker.api.services import Services
from broker.fetch.isolation import isolation_of
from quorumlog.messages.fetch import ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic, ListOffsetsTopicResponse
from quorumlog.rpc.transport import Context
from storage.isolation import Isolation


async def handle_list_offsets(
    services: Services, _context: Context, request: ListOffsetsRequest
) -> ListOffsetsResponse:
    check_topic_count(request.topics, services.limits)
    isolation = isolation_of(request.isolation_level, is_replica=request.replica_id >= 0)
    topics = [await _topic(services, topic, isolation) for topic in request.topics]
    return ListOffsetsResponse(topics=tuple(topics))


async def _topic(services: Services, topic: ListOffsetsTopic, isolation: Isolation) -> ListOffsetsTopicResponse:
    partitions = [
        await services.offset_queries.list_offset(
            topic.name,
            partition.index,
            partition.timestamp_ms,
            current_leader_epoch=partition.current_leader_epoch,
            isolation=isolation,
        )
        for partition in topic.partitions
    ]
    return ListOffsetsTopicResponse(name=topic.name, partitions=tuple(partitions))
