"""OffsetForLeaderEpoch: where an epoch ends in the logs of partitions that this broker leads (KIP-320).

Consumers ask this after a change of leader. Followers need not: their fetches carry their last epoch.
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


async def handle_offset_for_leader_epoch(
    services: Services, _context: Context, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    check_topic_count(request.topics, services.limits)
    return OffsetForLeaderEpochResponse(topics=tuple(_topic(services, topic) for topic in request.topics))


def _topic(services: Services, topic: EpochTopic) -> EpochTopicResult:
    partitions = tuple(
        services.offset_queries.end_of_epoch(topic.name, asked.index, asked.leader_epoch, asked.current_leader_epoch)
        for asked in topic.partitions
    )
    return EpochTopicResult(name=topic.name, partitions=partitions)
