"""CreateTopics, on a broker: the active controller's to answer."""

from __future__ import annotations

from broker.forwarding import forward
from broker.handlers.limits import check_topic_count
from broker.services import Services
from quorumlog.messages.cluster import CreateTopicsRequest, CreateTopicsResponse
from quorumlog.rpc.transport import Context


async def handle_create_topics(
    services: Services, _context: Context, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    check_topic_count(request.topics, services.limits)
    response: CreateTopicsResponse = await forward(services.controller, request, request.timeout_ms)
    return response
