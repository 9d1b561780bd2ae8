"""DescribeGroups, ListGroups and DeleteGroups: of the groups whose coordinators are on this broker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import ListedGroup, ListGroupsRequest, ListGroupsResponse
from quorumlog.messages.groups import (
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from quorumlog.rpc.transport import Context
from quorumlog.slices import Pace, Sliced
from quorumlog.turn import in_turns
from quorumlog_broker.api.authorized_operations import on_group
from quorumlog_broker.api.group_calls import ask_groups
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services
from quorumlog_broker.coordinator.groups.shard import GroupShard
from quorumlog_broker.coordinator.runtime.group_coordinator import GroupCoordinator
from quorumlog_broker.coordinator.runtime.many_calls import all_or_none

GROUPS_A_TURN = 4_096  # compared with what was asked for


async def handle_describe_groups(
    services: Services, context: Context, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    check_topic_count(request.groups, services.limits)
    operations = on_group(request.include_authorized_operations)
    described = await ask_groups(services, context, request.groups, GroupShard.describe, _not_described)
    return DescribeGroupsResponse(groups=tuple(replace(one, authorized_operations=operations) for one in described))


def _not_described(group_id: str, error: ApiError) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)


async def handle_list_groups(services: Services, _context: Context, request: ListGroupsRequest) -> ListGroupsResponse:
    services.groups.check_all_taken_up()
    found = await all_or_none(services.groups.all, GroupCoordinator.list)
    return ListGroupsResponse(groups=await in_turns(_asked_for(request, found)))


def _asked_for(request: ListGroupsRequest, found: Sequence[ListedGroup]) -> Sliced[tuple[ListedGroup, ...]]:
    states = {state.lower() for state in request.states}
    types = {type_.lower() for type_ in request.types}
    groups, pace = [], Pace(GROUPS_A_TURN)
    for group in found:
        if (not states or group.state.lower() in states) and (not types or group.group_type.lower() in types):
            groups.append(group)
        if pace.is_over():
            yield
    return tuple(groups)


async def handle_delete_groups(
    services: Services, context: Context, request: DeleteGroupsRequest
) -> DeleteGroupsResponse:
    """A group that is named twice is deleted, and answered, once."""
    check_topic_count(request.groups, services.limits)
    groups = tuple(dict.fromkeys(request.groups))
    codes = await ask_groups(services, context, groups, GroupShard.delete_group, _not_deleted)
    results = (DeletedGroup(group_id=group, error_code=code) for group, code in zip(groups, codes, strict=True))
    return DeleteGroupsResponse(results=tuple(results))


def _not_deleted(_group_id: str, error: ApiError) -> ErrorCode:
    return error.code
