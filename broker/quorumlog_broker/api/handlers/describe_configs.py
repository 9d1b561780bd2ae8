"""DescribeConfigs: settings of a topic, a group, this broker or all brokers, with sources; and levels of loggers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from quorumlog.configs.group import in_file
from quorumlog.configs.live import ASSIGNMENT_INTERVAL
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.cluster import (
    ConfigDescription,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfig,
)
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services
from quorumlog_broker.replicas.own_settings import own_setting
from quorumlog_quorum.metadata.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    Image,
)
from quorumlog_quorum.metadata.topic_settings import Layers, of_all_brokers, of_group

SETTINGS_A_TURN = 200  # some 10 us each; a broker's own settings are about as many


async def handle_describe_configs(
    services: Services, _context: Context, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    check_topic_count(request.resources, services.limits)
    image = services.caught_up_image()
    results: list[ConfigDescription] = []
    described = 0
    for asked in request.resources:
        results.append(_describe(services, image, asked, request))
        described += 1 + len(results[-1].configs)
        if described >= SETTINGS_A_TURN:  # a request may ask for every topic there is
            described = 0
            await asyncio.sleep(0)
    return DescribeConfigsResponse(results=tuple(results))


def _describe(
    services: Services, image: Image, asked: ConfigResource, request: DescribeConfigsRequest
) -> ConfigDescription:
    try:
        found = [config for config in _configs(services, image, asked) if not asked.names or config.name in asked.names]
    except ApiError as error:
        return ConfigDescription(
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
            error_code=error.code,
            error_message=error.message,
        )
    return ConfigDescription(
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=tuple(_shown(config, request) for config in found),
    )


def _configs(services: Services, image: Image, asked: ConfigResource) -> Iterable[DescribedConfig]:
    """Raises ApiError."""
    layers = Layers(image=image, node_id=services.node_id, file=services.topic_defaults)
    if asked.resource_type == TOPIC_RESOURCE:
        if image.topic(asked.resource_name) is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {asked.resource_name!r}")
        return layers.of_topic(asked.resource_name, asked.names)
    if asked.resource_type == GROUP_RESOURCE:
        if not asked.resource_name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the name of a group is needed")
        ours = services.consumer_groups
        interval_ms = own_setting(image, services.node_id, ASSIGNMENT_INTERVAL, ours.assignment_interval_ms)
        return of_group(image, asked.resource_name, in_file(replace(ours, assignment_interval_ms=interval_ms)))
    if asked.resource_type == BROKER_LOGGER_RESOURCE:
        from quorumlog_broker.api import log_levels  # seldom needed

        return log_levels.describe(asked.resource_name, services.node_id)
    if asked.resource_type != BROKER_RESOURCE:
        text = f"resource type {asked.resource_type}: 2 is a topic, 4 a broker, 8 its loggers, 32 a group"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    if asked.resource_name == CLUSTER_DEFAULT:
        return of_all_brokers(image)
    if asked.resource_name != str(services.node_id):
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"this is broker {services.node_id}; ask broker {asked.resource_name} itself"
        )
    own = [layers.own(setting) for setting in services.settings]
    of_listeners = layers.of_listeners({setting.name for setting in own})
    return [*own, *of_listeners, *layers.of_broker(), *layers.of_throttles(), *layers.of_idle()]


def _shown(config: DescribedConfig, request: DescribeConfigsRequest) -> DescribedConfig:
    return replace(
        config,
        synonyms=config.synonyms if request.include_synonyms else (),
        documentation=config.documentation if request.include_documentation else "",
    )
