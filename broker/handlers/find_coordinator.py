"""FindCoordinator: there is none. Consumer groups and transactions are not there yet, and the answer says so.

The error is one that clients do not retry, so that a consumer that was given a group fails at once, and can be closed.
"""

from __future__ import annotations

from broker.handlers.limits import check_topic_count
from broker.services import Services
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from quorumlog.rpc.transport import Context

NAMES = {
    0: "consumer groups are not supported; assign partitions, and do not commit",
    1: "transactions are not supported",
}


async def handle_find_coordinator(
    services: Services, _context: Context, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    check_topic_count(request.keys, services.limits)
    reason = NAMES.get(request.key_type, f"coordinator type {request.key_type} is not supported")
    coordinators = tuple(
        Coordinator(key=key, error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=reason) for key in request.keys
    )
    return FindCoordinatorResponse(coordinators=coordinators)
