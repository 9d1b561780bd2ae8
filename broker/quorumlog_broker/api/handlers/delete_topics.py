"""DeleteTopics: forwarded to the controller; answered once the topics are gone from this broker's metadata."""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.messages.cluster import DeleteTopicsRequest, DeleteTopicsResponse
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.await_metadata import until_image
from quorumlog_broker.api.forwarding import forward
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services


async def handle_delete_topics(
    services: Services, context: Context, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    check_topic_count(request.topics, services.limits)
    response: DeleteTopicsResponse = await forward(services.controller_for(context), request, request.timeout_ms)
    gone = [topic.topic_id for topic in response.topics if topic.error_code == ErrorCode.NONE]
    await until_image(services, lambda image: not any(topic_id in image.topics for topic_id in gone))
    return response
