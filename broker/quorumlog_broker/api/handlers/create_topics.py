"""CreateTopics: forwarded to the controller; answered once this broker's metadata shows the new topics."""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.messages.cluster import CreateTopicsRequest, CreateTopicsResponse
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.await_metadata import until_image
from quorumlog_broker.api.forwarding import forward
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services


async def handle_create_topics(
    services: Services, _context: Context, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    check_topic_count(request.topics, services.limits)
    response: CreateTopicsResponse = await forward(services.controller, request, request.timeout_ms)
    if not request.validate_only:
        made = [topic.topic_id for topic in response.topics if topic.error_code == ErrorCode.NONE]
        await until_image(services, lambda image: all(topic_id in image.topics for topic_id in made))
    return response
