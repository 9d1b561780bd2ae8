"""DescribeConfigs: the settings of a topic, or of the broker that is asked, and where each value comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker.handlers.limits import check_topic_count
from broker.services import Services
from quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, TOPIC_RESOURCE, Image
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.cluster import (
    ConfigDescription,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfig,
)
from quorumlog.rpc.transport import Context
from quorumlog.topic_config import TOPIC_CONFIGS

SET_ON_TOPIC, SET_FOR_CLUSTER, SET_IN_FILE, DEFAULT = 1, 3, 4, 5  # Kafka's numbers of config sources


async def handle_describe_configs(
    services: Services, _context: Context, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    check_topic_count(request.resources, services.limits)
    image = services.caught_up_image()
    return DescribeConfigsResponse(results=tuple(_describe(services, image, asked) for asked in request.resources))


def _describe(services: Services, image: Image, asked: ConfigResource) -> ConfigDescription:
    try:
        configs = _chosen(asked, _configs(services, image, asked))
    except ApiError as error:
        return ConfigDescription(
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
            error_code=error.code,
            error_message=error.message,
        )
    return ConfigDescription(resource_type=asked.resource_type, resource_name=asked.resource_name, configs=configs)


def _configs(services: Services, image: Image, asked: ConfigResource) -> Iterable[DescribedConfig]:
    if asked.resource_type == TOPIC_RESOURCE:
        return _topic_configs(services, image, asked.resource_name)
    if asked.resource_type != BROKER_RESOURCE:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"resource type {asked.resource_type}: 2 is a topic, 4 a broker")
    if asked.resource_name != str(services.node_id):
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"this is broker {services.node_id}; ask broker {asked.resource_name} itself"
        )
    return services.settings


def _topic_configs(services: Services, image: Image, name: str) -> Iterable[DescribedConfig]:
    if image.topic(name) is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name!r}")
    layers: tuple[tuple[int, Mapping[str, str]], ...] = (
        (SET_ON_TOPIC, image.configs.get((TOPIC_RESOURCE, name), {})),
        (SET_FOR_CLUSTER, image.configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {})),
        (SET_IN_FILE, services.topic_defaults),
        (DEFAULT, {key.name: key.default for key in TOPIC_CONFIGS.values()}),
    )
    for key in TOPIC_CONFIGS.values():
        source, values = next((source, values) for source, values in layers if key.name in values)
        yield DescribedConfig(name=key.name, value=values[key.name], source=source, documentation=key.doc)


def _chosen(asked: ConfigResource, configs: Iterable[DescribedConfig]) -> tuple[DescribedConfig, ...]:
    return tuple(config for config in configs if not asked.names or config.name in asked.names)
