"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup: members of consumer groups of the classic protocol.

The coordinator of the group decides, and answers when its records are committed; JoinGroup and SyncGroup may wait for
the other members, too. An error that is raised here is the answer's own.
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.groups import (
    GroupHeartbeatRequest,
    GroupHeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.group_calls import MAX_NAME_BYTES, begin, check_group_id, is_too_long
from quorumlog_broker.api.services import Services
from quorumlog_broker.coordinator.groups.shard import GroupShard


async def handle_join_group(services: Services, context: Context, request: JoinGroupRequest) -> JoinGroupResponse:
    check_group_id(request.group_id)
    names = (request.protocol_type, request.group_instance_id or "", context.client_id)
    if any(is_too_long(name) for name in (*names, *(protocol.name for protocol in request.protocols))):
        text = f"client id, instance id, protocol type and names of protocols have at most {MAX_NAME_BYTES} bytes"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    await services.groups.until_loaded(request.group_id)
    try:
        response: JoinGroupResponse = await begin(services, context, request.group_id, GroupShard.join, request)
    except ApiError as error:
        return JoinGroupResponse(error_code=error.code, error_message=error.message, member_id=request.member_id)
    return response


async def handle_sync_group(services: Services, context: Context, request: SyncGroupRequest) -> SyncGroupResponse:
    check_group_id(request.group_id)
    await services.groups.until_loaded(request.group_id)
    response: SyncGroupResponse = await begin(services, context, request.group_id, GroupShard.sync_group, request)
    return response


async def handle_heartbeat(
    services: Services, context: Context, request: GroupHeartbeatRequest
) -> GroupHeartbeatResponse:
    """While the group is loaded, its members are told that all is well, as Kafka does: they would join again."""
    check_group_id(request.group_id)
    try:
        response: GroupHeartbeatResponse = await begin(
            services, context, request.group_id, GroupShard.heartbeat, request
        )
    except ApiError as error:
        if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return GroupHeartbeatResponse()
        raise
    return response


async def handle_leave_group(services: Services, context: Context, request: LeaveGroupRequest) -> LeaveGroupResponse:
    check_group_id(request.group_id)
    response: LeaveGroupResponse = await begin(services, context, request.group_id, GroupShard.leave, request)
    return response
