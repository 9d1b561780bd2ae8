"""DescribeQuorum, on a broker: only the quorum's leader knows how far the others are."""

from __future__ import annotations

from broker.forwarding import forward
from broker.services import Services
from quorumlog.messages.quorum import DescribeQuorumRequest, DescribeQuorumResponse
from quorumlog.rpc.transport import Context

DESCRIBE_TIMEOUT_MS = 5_000


async def handle_describe_quorum(
    services: Services, _context: Context, request: DescribeQuorumRequest
) -> DescribeQuorumResponse:
    response: DescribeQuorumResponse = await forward(services.controller, request, DESCRIBE_TIMEOUT_MS)
    return response
