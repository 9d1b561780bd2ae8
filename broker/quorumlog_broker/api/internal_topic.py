"""Topics of the cluster's own: each is made when somebody first asks for a coordinator that has its log there."""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from quorumlog_broker.api.await_metadata import until_image
from quorumlog_broker.api.forwarding import forward
from quorumlog_broker.api.services import Services

CREATE_TIMEOUT_MS = 5_000


async def ensure_topic(services: Services, wanted: CreatableTopic) -> None:
    """Return once this broker's metadata has the topic. Raises ApiError(COORDINATOR_NOT_AVAILABLE), which clients
    retry."""
    image = services.subscription.image
    if image.offset <= 0:
        raise _not_available(wanted, f"broker {services.node_id} is still reading the metadata log")
    if wanted.name in image.topic_ids:
        return
    request = CreateTopicsRequest(topics=(wanted,), timeout_ms=CREATE_TIMEOUT_MS)
    try:
        response: CreateTopicsResponse = await forward(services.controller, request, CREATE_TIMEOUT_MS)
    except ApiError as error:
        raise _not_available(wanted, str(error)) from error
    for code, message in [
        (response.error_code, response.error_message),
        *((topic.error_code, topic.error_message) for topic in response.topics),
    ]:
        if code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise _not_available(wanted, f"{ErrorCode(code).name}: {message}")
    await until_image(services, lambda image: wanted.name in image.topic_ids)
    if wanted.name not in services.subscription.image.topic_ids:
        raise _not_available(wanted, "this broker's metadata does not have it yet")


def _not_available(wanted: CreatableTopic, reason: str) -> ApiError:
    return ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{wanted.name} cannot be used yet: {reason}")
