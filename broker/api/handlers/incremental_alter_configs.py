"""IncrementalAlterConfigs: forwarded to the controller. Brokers get the new settings with the metadata."""

from __future__ import annotations

from broker.api.forwarding import forward
from broker.api.handlers.limits import check_topic_count
from broker.api.services import Services
from quorumlog.messages.admin import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from quorumlog.rpc.transport import Context

ALTER_TIMEOUT_MS = 10_000


async def handle_incremental_alter_configs(
    services: Services, _context: Context, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    check_topic_count(request.resources, services.limits)
    response: IncrementalAlterConfigsResponse = await forward(services.controller, request, ALTER_TIMEOUT_MS)
    return response
