"""DescribeRanges: how many bytes which offsets take, of partitions that this broker leads; for plans of reads.

An answer has at most `max_described_ranges`, shared by its partitions in the order of the request. What has no room any
more says from where to ask again.
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.fetch import (
    DescribedRanges,
    DescribeRangesRequest,
    DescribeRangesResponse,
    DescribeRangesTopicResponse,
)
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services
from quorumlog_broker.fetch.isolation import isolation_of
from quorumlog_broker.fetch.range_search import WantedRanges
from quorumlog_broker.replicas.upcoming import MAX_QUERY_WAIT_MS


async def handle_describe_ranges(
    services: Services, _context: Context, request: DescribeRangesRequest
) -> DescribeRangesResponse:
    """Raises ApiError for bounds that are below zero."""
    check_topic_count(request.topics, services.limits)
    if any(min(p.max_range_bytes, p.enough_bytes) < 0 for topic in request.topics for p in topic.partitions):
        raise ApiError(ErrorCode.INVALID_REQUEST, "max_range_bytes and enough_bytes must be 0, for none, or above")
    isolation = isolation_of(request.isolation_level, is_replica=False)
    deadline_ms = services.clock.now_ms() + MAX_QUERY_WAIT_MS
    room = services.limits.max_described_ranges
    topics = []
    for topic in request.topics:
        described = []
        for part in topic.partitions:
            if room <= 0:
                described.append(DescribedRanges(index=part.index, next_offset=max(part.start_offset, 0)))
                continue
            wanted = WantedRanges(max_bytes=part.max_range_bytes, enough_bytes=part.enough_bytes, most=room)
            one = await services.offset_queries.describe_ranges(
                topic.topic_id or topic.name,
                part.index,
                part.start_offset,
                part.end_offset,
                wanted,
                isolation=isolation,
                deadline_ms=deadline_ms,
            )
            described.append(one)
            room -= len(one.ranges)
        topics.append(DescribeRangesTopicResponse(name=topic.name, partitions=tuple(described)))
    return DescribeRangesResponse(topics=tuple(topics))
