"""ListOffsets: the earliest, the latest, or the first offset since a time, for partitions that this broker leads.

Only a broker that has proven which one it is learns of offsets above the high watermark. Any other caller that names a
`replica_id` is answered as a consumer. A partition that this broker is about to lead is waited for, within the
request's time-out (`replicas/upcoming.py`). A partition that a request names twice is refused, as in Kafka. A topic
that is named by its id is that one only: in metadata that are behind, its name may still be that of a former one
(KIP-516).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from quorumlog.errors import ErrorCode
from quorumlog.messages.fetch import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services
from quorumlog_broker.fetch.isolation import isolation_of
from quorumlog_storage.rules.isolation import Isolation


async def handle_list_offsets(services: Services, context: Context, request: ListOffsetsRequest) -> ListOffsetsResponse:
    check_topic_count(request.topics, services.limits)
    isolation = isolation_of(request.isolation_level, is_replica=_is_replica(context, request))
    timeout_ms = max(0, min(request.timeout_ms, services.limits.max_wait_ms))
    deadline_ms = services.clock.now_ms() + timeout_ms
    named = Counter((topic.name, partition.index) for topic in request.topics for partition in topic.partitions)
    twice = {partition for partition, times in named.items() if times > 1}
    topics = [await _topic(services, topic, isolation, deadline_ms, twice) for topic in request.topics]
    return ListOffsetsResponse(topics=tuple(topics))


def _is_replica(context: Context, request: ListOffsetsRequest) -> bool:
    peer = context.peer
    return context.listener.internal and peer is not None and peer.node_id == request.replica_id


async def _topic(
    services: Services,
    topic: ListOffsetsTopic,
    isolation: Isolation,
    deadline_ms: int,
    twice: Container[tuple[str, int]],
) -> ListOffsetsTopicResponse:
    partitions = [
        ListOffsetsPartitionResponse(index=partition.index, error_code=ErrorCode.INVALID_REQUEST)
        if (topic.name, partition.index) in twice
        else await services.offset_queries.list_offset(
            topic.topic_id or topic.name,
            partition.index,
            partition.timestamp_ms,
            current_leader_epoch=partition.current_leader_epoch,
            isolation=isolation,
            deadline_ms=deadline_ms,
        )
        for partition in topic.partitions
    ]
    return ListOffsetsTopicResponse(name=topic.name, partitions=tuple(partitions))
