"""CreateTopics: forwarded to the controller; answered once this broker's metadata shows the new topics.

The answer describes each topic's settings. The controller knows what is in the metadata, and a broker what is in its
file: what a topic does not set itself is described as this broker has it, as DescribeConfigs then does.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from quorumlog.errors import ErrorCode
from quorumlog.messages.cluster import CreateTopicResult, CreateTopicsRequest, CreateTopicsResponse
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.await_metadata import until_image
from quorumlog_broker.api.forwarding import forward
from quorumlog_broker.api.handlers.describe_configs import SETTINGS_A_TURN
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services
from quorumlog_quorum.metadata.topic_settings import SET_ON_TOPIC, Layers


async def handle_create_topics(
    services: Services, context: Context, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    check_topic_count(request.topics, services.limits)
    response: CreateTopicsResponse = await forward(services.controller_for(context), request, request.timeout_ms)
    if not request.validate_only:
        made = [topic.topic_id for topic in response.topics if topic.error_code == ErrorCode.NONE]
        await until_image(services, lambda image: all(topic_id in image.topics for topic_id in made))
    if not any(topic.configs for topic in response.topics):
        return response
    return replace(response, topics=await _described(services, response.topics))


async def _described(services: Services, topics: tuple[CreateTopicResult, ...]) -> tuple[CreateTopicResult, ...]:
    """A request may make thousands of topics: others have their turn in between."""
    layers = Layers(image=services.subscription.image, node_id=services.node_id, file=services.topic_defaults)
    found: list[CreateTopicResult] = []
    described = 0
    for topic in topics:
        if topic.configs:
            own = {config.name: config for config in topic.configs if config.source == SET_ON_TOPIC}
            configs = sorted(layers.of_topic(topic.name), key=lambda config: config.name)
            topic = replace(topic, configs=tuple(own.get(config.name, config) for config in configs))
        found.append(topic)
        described += 1 + len(topic.configs)
        if described >= SETTINGS_A_TURN:
            described = 0
            await asyncio.sleep(0)
    return tuple(found)
