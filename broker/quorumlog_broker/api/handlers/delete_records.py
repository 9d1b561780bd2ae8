"""DeleteRecords: moves the log start of partitions that this broker leads (KIP-107).

All partitions are begun before the first is awaited. The response is sent once the low watermark shows that
no live replica, and none that may lead without loss, has the records any more. Records of internal topics cannot be
deleted.
"""

from __future__ import annotations

from collections.abc import Awaitable
from itertools import chain

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Offset
from quorumlog.messages.admin import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from quorumlog.rpc.transport import Context
from quorumlog.topic_name import is_internal
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services
from quorumlog_broker.replicas.upcoming import give_up

_Begun = Awaitable[Offset] | ApiError


async def handle_delete_records(
    services: Services, _context: Context, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    check_topic_count(request.topics, services.limits)
    timeout_ms = max(0, min(request.timeout_ms, services.limits.max_wait_ms))
    begun = [
        [_begin(services, topic.name, partition, timeout_ms) for partition in topic.partitions]
        for topic in request.topics
    ]
    topics = []
    try:
        for topic, of_topic in zip(request.topics, begun, strict=True):
            results = [await _answer(partition, one) for partition, one in zip(topic.partitions, of_topic, strict=True)]
            topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=tuple(results)))
    finally:
        give_up(chain.from_iterable(begun))  # only a cancellation leaves any
    return DeleteRecordsResponse(topics=tuple(topics))


def _begin(services: Services, name: str, partition: DeleteRecordsPartition, timeout_ms: int) -> _Begun:
    try:
        if is_internal(name):
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is the cluster's own")
        return services.delete_path.delete(name, partition.index, partition.offset, timeout_ms)
    except ApiError as error:
        return error


async def _answer(partition: DeleteRecordsPartition, begun: _Begun) -> DeleteRecordsPartitionResult:
    try:
        if isinstance(begun, ApiError):
            raise begun
        low_watermark = await begun
    except ApiError as error:
        return DeleteRecordsPartitionResult(index=partition.index, error_code=error.code)
    return DeleteRecordsPartitionResult(index=partition.index, low_watermark=low_watermark)
