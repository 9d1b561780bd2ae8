"""DescribeEvents (not in Kafka): what has happened at this node."""

from __future__ import annotations

from quorumlog.messages.events import DescribeEventsRequest, DescribeEventsResponse
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.services import Services


async def handle_describe_events(
    services: Services, _context: Context, request: DescribeEventsRequest
) -> DescribeEventsResponse:
    return services.events.find(request.since_ms, request.kinds, request.subject, request.limit)
