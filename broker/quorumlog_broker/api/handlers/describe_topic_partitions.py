"""DescribeTopicPartitions: leaders and replicas in pages (KIP-966), for clusters with too many topics for Metadata.

Topics come in order of name, partitions in order of index. A response that is not the last has a cursor, at which the
next one begins; a topic that was deleted in between is skipped. A full page ends also before a topic that is not there.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.admin import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    PartitionCursor,
    PartitionDescription,
    TopicPartitionsDescription,
)
from quorumlog.rpc.transport import Context
from quorumlog.topic_name import is_internal, validate_topic_name
from quorumlog_broker.api.authorized_operations import ON_TOPIC
from quorumlog_broker.api.described_partition import described
from quorumlog_broker.api.endpoints import live_brokers
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services
from quorumlog_quorum.metadata.image import Image, TopicImage
from quorumlog_quorum.metadata.registration import BrokerRegistration

MAX_PARTITIONS = 2_000  # in one response: max.request.partition.size.limit


async def handle_describe_topic_partitions(
    services: Services, _context: Context, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    check_topic_count(request.topics, services.limits)
    cursor = request.cursor
    if cursor is not None and cursor.partition_index < 0:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"cursor at partition {cursor.partition_index}")
    image = services.caught_up_image()
    live = {broker.broker_id: broker for broker in live_brokers(image)}
    left = max(1, min(request.response_partition_limit, MAX_PARTITIONS))
    described_topics: list[TopicPartitionsDescription] = []
    for name in _names(image, request):
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        if left == 0:
            return _page(described_topics, PartitionCursor(topic_name=name, partition_index=first))
        topic = image.topic(name)
        if topic is None:
            described_topics.append(TopicPartitionsDescription(name=name, error_code=_why_not(name)))
            continue
        description = _description(topic, first, left, live)
        described_topics.append(description)
        left -= len(description.partitions)
        end = first + len(description.partitions)
        if end < len(topic.partitions):
            return _page(described_topics, PartitionCursor(topic_name=name, partition_index=end))
    return _page(described_topics, None)


def _page(topics: list[TopicPartitionsDescription], cursor: PartitionCursor | None) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=cursor)


def _names(image: Image, request: DescribeTopicPartitionsRequest) -> list[str]:
    """The topics from the cursor on."""
    names = sorted(dict.fromkeys(request.topics)) if request.topics else sorted(image.topic_ids)
    cursor = request.cursor
    return [name for name in names if cursor is None or name >= cursor.topic_name]


def _why_not(name: str) -> ErrorCode:
    try:
        validate_topic_name(name)
    except ApiError as error:
        return error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _description(
    topic: TopicImage, first: int, limit: int, live: Mapping[NodeId, BrokerRegistration]
) -> TopicPartitionsDescription:
    shown = topic.sorted_partitions()[first : first + limit]
    return TopicPartitionsDescription(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        authorized_operations=ON_TOPIC,
        partitions=tuple(described(PartitionDescription, index, partition, live) for index, partition in shown),
    )
