"""CreatePartitions: forwarded to the controller; answered once this broker's metadata shows the new partitions."""

from __future__ import annotations

from collections.abc import Mapping

from broker.api.await_metadata import until_image
from broker.api.forwarding import forward
from broker.api.handlers.limits import check_topic_count
from broker.api.services import Services
from quorum.metadata.image import Image
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import CreatePartitionsRequest, CreatePartitionsResponse
from quorumlog.rpc.transport import Context


async def handle_create_partitions(
    services: Services, _context: Context, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    check_topic_count(request.topics, services.limits)
    response: CreatePartitionsResponse = await forward(services.controller, request, request.timeout_ms)
    if not request.validate_only:
        asked = {topic.name: topic.count for topic in request.topics}
        made = {part.name: asked.get(part.name, 0) for part in response.results if part.error_code == ErrorCode.NONE}
        await until_image(services, lambda image: _has(image, made))
    return response


def _has(image: Image, counts: Mapping[str, int]) -> bool:
    topics = [(image.topic(name), count) for name, count in counts.items()]
    return all(topic is not None and len(topic.partitions) >= count for topic, count in topics)
