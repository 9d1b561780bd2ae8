"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: groups of the consumer protocol (KIP-848).

The coordinator of the group decides, and answers when its records are committed. A cluster at level 0 of the feature
`group.version` refuses both with UNSUPPORTED_VERSION, as Kafka does, once its metadata had time to show a new level.
"""

from __future__ import annotations

from dataclasses import replace

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
)
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.authorized_operations import on_group
from quorumlog_broker.api.await_metadata import until_image
from quorumlog_broker.api.group_calls import MAX_NAME_BYTES, ask_groups, begin, is_too_long
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services
from quorumlog_broker.coordinator.groups.shard import GroupShard

CONSUMER_PROTOCOL = 1  # the first level of group.version that has it


async def handle_consumer_group_heartbeat(
    services: Services, context: Context, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    await _until_served(services)
    names = () if request.subscribed_topic_names is None else request.subscribed_topic_names.names
    check_topic_count(names, services.limits)
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the group's id is empty; set group.id")
    own = (request.group_id, request.member_id, request.group_instance_id, request.rack_id, context.client_id)
    if any(
        is_too_long(name) for name in (*own, request.server_assignor, request.subscribed_topic_regex, *names) if name
    ):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"names in a heartbeat have at most {MAX_NAME_BYTES} bytes each")
    await services.groups.until_loaded(request.group_id)
    response: ConsumerGroupHeartbeatResponse = await begin(
        services, context, request.group_id, GroupShard.consumer_heartbeat, request
    )
    return response


async def handle_consumer_group_describe(
    services: Services, context: Context, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    await _until_served(services)
    check_topic_count(request.group_ids, services.limits)
    operations = on_group(request.include_authorized_operations)
    method = GroupShard.describe_consumer_groups
    described = await ask_groups(services, context, request.group_ids, method, _refused)
    return ConsumerGroupDescribeResponse(
        groups=tuple(replace(one, authorized_operations=operations) for one in described)
    )


def _refused(group_id: str, error: ApiError) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(group_id=group_id, error_code=error.code, error_message=error.message)


async def _until_served(services: Services) -> None:
    """A client asks because another broker has shown it the level. Here the metadata may be late, and the client would
    take UNSUPPORTED_VERSION for the end, so the level has a moment to come. Raises ApiError."""
    services.coordinators_image()
    await until_image(services, lambda image: image.group_version >= CONSUMER_PROTOCOL)
    if services.coordinators_image().group_version < CONSUMER_PROTOCOL:
        text = "group.version is 0 in this cluster; use group.protocol=classic, or `quorumlog feature upgrade`"
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
