"""DeleteTopics, on a broker: the active controller's to answer."""

from __future__ import annotations

from broker.forwarding import forward
from broker.handlers.limits import check_topic_count
from broker.services import Services
from quorumlog.messages.cluster import DeleteTopicsRequest, DeleteTopicsResponse
from quorumlog.rpc.transport import Context


async def handle_delete_topics(
    services: Services, _context: Context, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    check_topic_count(request.topics, services.limits)
    response: DeleteTopicsResponse = await forward(services.controller, request, request.timeout_ms)
    return response
