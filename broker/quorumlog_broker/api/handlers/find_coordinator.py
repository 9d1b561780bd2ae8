"""FindCoordinator: the broker that leads the partition of a group, or of a transactional id, in their topic.

Any broker answers, from its image. The first call makes the topic.
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from quorumlog.messages.cluster import CreatableTopic
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.endpoints import endpoint_for
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.internal_topic import ensure_topic
from quorumlog_broker.api.services import Services
from quorumlog_broker.coordinator.placement import partition_of

GROUP, TRANSACTION = 0, 1  # Kafka's numbers for types of coordinators


async def handle_find_coordinator(
    services: Services, context: Context, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    check_topic_count(request.keys, services.limits)
    if request.key_type == GROUP:
        wanted = services.offsets_topic.creatable()
    elif request.key_type == TRANSACTION:
        wanted = services.transactions_topic.creatable()
    else:
        error = ApiError(ErrorCode.INVALID_REQUEST, f"coordinator type {request.key_type} is not known")
        return FindCoordinatorResponse(coordinators=tuple(_refused(key, error) for key in request.keys))
    return FindCoordinatorResponse(coordinators=await _found(services, context, wanted, request.keys))


async def _found(
    services: Services, context: Context, wanted: CreatableTopic, keys: tuple[str, ...]
) -> tuple[Coordinator, ...]:
    try:
        await ensure_topic(services, wanted)
    except ApiError as error:
        return tuple(_refused(key, error) for key in keys)
    return tuple(_of(services, context, wanted.name, key) for key in keys)


def _of(services: Services, context: Context, name: str, key: str) -> Coordinator:
    """name: of the topic."""
    image = services.subscription.image
    topic = image.topic(name)
    if topic is None:
        return _refused(key, ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{name} was deleted"))
    index = partition_of(key, len(topic.partitions))
    broker = image.brokers.get(topic.partitions[index].leader)
    endpoint = None if broker is None or broker.fenced else endpoint_for(services, context, broker)
    if broker is None or endpoint is None:
        text = f"{name}-{index} has no live leader that this listener reaches"
        return _refused(key, ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, text))
    return Coordinator(key=key, node_id=broker.broker_id, host=endpoint.host, port=endpoint.port)


def _refused(key: str, error: ApiError) -> Coordinator:
    return Coordinator(key=key, error_code=error.code, error_message=error.message)
