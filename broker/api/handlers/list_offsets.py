"""ListOffsets: the earliest, the latest, or the first offset since a time, for partitions that this broker leads."""

from __future__ import annotations

from broker.api.handlers.limits import check_topic_count
from broker.api.services import Services
from quorumlog.messages.fetch import ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic, ListOffsetsTopicResponse
from quorumlog.rpc.transport import Context


async def handle_list_offsets(
    services: Services, _context: Context, request: ListOffsetsRequest
) -> ListOffsetsResponse:
    check_topic_count(request.topics, services.limits)
    topics = [await _topic(services, request, topic) for topic in request.topics]
    return ListOffsetsResponse(topics=tuple(topics))


async def _topic(services: Services, request: ListOffsetsRequest, topic: ListOffsetsTopic) -> ListOffsetsTopicResponse:
    partitions = [
        await services.offset_queries.list_offset(
            topic.name,
            partition.index,
            partition.timestamp_ms,
            current_leader_epoch=partition.current_leader_epoch,
            replica_id=request.replica_id,
        )
        for partition in topic.partitions
    ]
    return ListOffsetsTopicResponse(name=topic.name, partitions=tuple(partitions))
