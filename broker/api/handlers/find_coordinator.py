"""FindCoordinator: consumer groups and transactions are not supported yet.

For a group this broker names itself. It does not announce JoinGroup, so that a consumer which subscribes fails at once
with its own client's message. An error here would be as clear, but librdkafka looks for a coordinator for every
consumer, and would report the error to applications that only assign partitions. For other coordinator types the
response is an error that clients do not retry.
"""

from __future__ import annotations

from broker.api.endpoints import endpoint_for
from broker.api.handlers.limits import check_topic_count
from broker.api.services import Services
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from quorumlog.rpc.transport import Context

GROUP = 0  # Kafka's number for this type of coordinator
REFUSED = {1: "transactions are not supported"}


async def handle_find_coordinator(
    services: Services, context: Context, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    check_topic_count(request.keys, services.limits)
    if request.key_type == GROUP:
        return FindCoordinatorResponse(coordinators=tuple(_itself(services, context, key) for key in request.keys))
    reason = REFUSED.get(request.key_type, f"coordinator type {request.key_type} is not supported")
    coordinators = tuple(
        Coordinator(key=key, error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=reason) for key in request.keys
    )
    return FindCoordinatorResponse(coordinators=coordinators)


def _itself(services: Services, context: Context, key: str) -> Coordinator:
    own = services.caught_up_image().brokers.get(services.node_id)
    endpoint = endpoint_for(services, context, own) if own is not None else None
    if endpoint is None:
        return Coordinator(key=key, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, error_message="not registered yet")
    return Coordinator(key=key, node_id=services.node_id, host=endpoint.host, port=endpoint.port)
