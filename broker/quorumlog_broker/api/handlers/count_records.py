"""CountRecords: how many records are to be read from an offset on, of partitions that this broker leads; for the lag.

An answer reads at most `max_counted_headers` of batches, shared by its partitions in the order of the request. Where
that is too little, it is an estimate, and says so; the leader remembers what it has counted, so the next one is better.
"""

from __future__ import annotations

from quorumlog.messages.fetch import CountRecordsRequest, CountRecordsResponse, CountRecordsTopicResponse
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services
from quorumlog_broker.fetch.isolation import isolation_of
from quorumlog_broker.replicas.upcoming import MAX_QUERY_WAIT_MS


async def handle_count_records(
    services: Services, _context: Context, request: CountRecordsRequest
) -> CountRecordsResponse:
    return await answer_count(services, request)


async def answer_count(services: Services, request: CountRecordsRequest) -> CountRecordsResponse:
    """Also of this broker's own question."""
    check_topic_count(request.topics, services.limits)
    isolation = isolation_of(request.isolation_level, is_replica=False)
    deadline_ms = services.clock.now_ms() + MAX_QUERY_WAIT_MS
    room, topics = services.limits.max_counted_headers, []
    for topic in request.topics:
        counted = []
        for part in topic.partitions:
            one, headers = await services.offset_queries.count_records(
                topic.topic_id or topic.name,
                part.index,
                part.start_offset,
                isolation=isolation,
                deadline_ms=deadline_ms,
                max_headers=max(0, room),
            )
            counted.append(one)
            room -= headers
        topics.append(CountRecordsTopicResponse(name=topic.name, partitions=tuple(counted)))
    return CountRecordsResponse(topics=tuple(topics))
