"""CreatePartitions: forwarded to the controller; answered once this broker's metadata shows the new partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsResult
from quorumlog.rpc.transport import Context
from quorumlog.topic_name import is_internal
from quorumlog_broker.api.await_metadata import until_image
from quorumlog_broker.api.forwarding import forward
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services
from quorumlog_quorum.metadata.image import Image


async def handle_create_partitions(
    services: Services, context: Context, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    check_topic_count(request.topics, services.limits)
    own = tuple(_refused(topic.name) for topic in request.topics if is_internal(topic.name))
    if own:
        request = replace(request, topics=tuple(topic for topic in request.topics if not is_internal(topic.name)))
        if not request.topics:
            return CreatePartitionsResponse(results=own)
    response: CreatePartitionsResponse = await forward(services.controller_for(context), request, request.timeout_ms)
    if own:
        response = replace(response, results=(*response.results, *own))
    if not request.validate_only:
        asked = {topic.name: topic.count for topic in request.topics}
        made = {part.name: asked.get(part.name, 0) for part in response.results if part.error_code == ErrorCode.NONE}
        await until_image(services, lambda image: _has(image, made))
    return response


def _refused(name: str) -> CreatePartitionsResult:
    text = f"a group or a transactional id finds its partition by their number, so {name} keeps the ones that it has"
    return CreatePartitionsResult(name=name, error_code=ErrorCode.INVALID_TOPIC_EXCEPTION, error_message=text)


def _has(image: Image, counts: Mapping[str, int]) -> bool:
    topics = [(image.topic(name), count) for name, count in counts.items()]
    return all(topic is not None and len(topic.partitions) >= count for topic, count in topics)
