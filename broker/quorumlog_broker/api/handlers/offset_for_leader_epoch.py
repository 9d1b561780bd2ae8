"""OffsetForLeaderEpoch: where an epoch ends in the logs of partitions that this broker leads (KIP-320).

Consumers ask this after a change of leader. Followers need not: their fetches carry their last epoch. The request names
no time-out; a partition that this broker is about to lead is waited for (`replicas/upcoming.py`).
"""

from __future__ import annotations

from quorumlog.messages.fetch import (
    EpochTopic,
    EpochTopicResult,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services
from quorumlog_broker.replicas.upcoming import MAX_QUERY_WAIT_MS


async def handle_offset_for_leader_epoch(
    services: Services, _context: Context, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    check_topic_count(request.topics, services.limits)
    deadline_ms = services.clock.now_ms() + MAX_QUERY_WAIT_MS
    topics = [await _topic(services, topic, deadline_ms) for topic in request.topics]
    return OffsetForLeaderEpochResponse(topics=tuple(topics))


async def _topic(services: Services, topic: EpochTopic, deadline_ms: int) -> EpochTopicResult:
    partitions = [
        await services.offset_queries.end_of_epoch(
            topic.name, asked.index, asked.leader_epoch, asked.current_leader_epoch, deadline_ms=deadline_ms
        )
        for asked in topic.partitions
    ]
    return EpochTopicResult(name=topic.name, partitions=tuple(partitions))
