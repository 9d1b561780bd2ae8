"""The calls of a group's members and of its administrators: what older versions of Kafka's messages cannot say.

Sources: Kafka's message definitions; KIP-345 (several members leave at once), KIP-394 and KIP-814 (what a member
understands, told by its version), KIP-559 (protocol in SyncGroup), KIP-1043 (errors of DescribeGroups).
"""

from __future__ import annotations

from dataclasses import replace

from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import (
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
    SyncGroupRequest,
)
from quorumlog.wire.convert.mirror import Mapped, from_values, to_values
from quorumlog.wire.format.schema import Values

FIRST_WITH_MEMBER_ID_REQUIRED = 4
FIRST_WITH_SKIP_ASSIGNMENT = 9
FIRST_WITH_PROTOCOL_IN_SYNC = 5
FIRST_WITH_LEAVING_MEMBERS = 3
FIRST_WITH_UNKNOWN_GROUPS = 6  # of DescribeGroups: before it, a group that does not exist is just Dead


def read_join_request(values: Values, version: int) -> JoinGroupRequest:
    request: JoinGroupRequest = from_values(JoinGroupRequest, values)
    return replace(
        request,
        takes_member_id=version >= FIRST_WITH_MEMBER_ID_REQUIRED,
        takes_skip_assignment=version >= FIRST_WITH_SKIP_ASSIGNMENT,
    )


def read_sync_request(values: Values, version: int) -> SyncGroupRequest:
    """From version 5 on the protocol must be named. A null one becomes the empty one, which no group has, so that the
    coordinator refuses it; None means that the version cannot name it."""
    request: SyncGroupRequest = from_values(SyncGroupRequest, values)
    if version < FIRST_WITH_PROTOCOL_IN_SYNC:
        return request
    return replace(request, protocol_type=request.protocol_type or "", protocol_name=request.protocol_name or "")


def read_leave_request(values: Values, version: int) -> LeaveGroupRequest:
    """One member before version 3, several from then on."""
    if version >= FIRST_WITH_LEAVING_MEMBERS:
        request: LeaveGroupRequest = from_values(LeaveGroupRequest, values)
        return request
    return LeaveGroupRequest(group_id=values["group_id"], members=(LeavingMember(member_id=values["member_id"]),))


def write_leave_request(request: LeaveGroupRequest, _version: int) -> Values:
    return {"member_id": request.members[0].member_id if request.members else "", **to_values(request)}


def write_leave_response(response: LeaveGroupResponse, _request: LeaveGroupRequest, version: int) -> Values:
    """Before version 3 the error of the only member is that of the whole answer."""
    values = to_values(response)
    if version < FIRST_WITH_LEAVING_MEMBERS and response.members and not response.error_code:
        values["error_code"] = response.members[0].error_code
    return values


def read_leave_response(values: Values, request: LeaveGroupRequest, version: int) -> LeaveGroupResponse:
    response: LeaveGroupResponse = from_values(LeaveGroupResponse, values)
    if version >= FIRST_WITH_LEAVING_MEMBERS:
        return response
    members = [LeftMember(member_id=one.member_id, error_code=response.error_code) for one in request.members]
    return replace(response, members=tuple(members))


def write_describe_response(response: DescribeGroupsResponse, _request: DescribeGroupsRequest, version: int) -> Values:
    """Before version 6 a group that does not exist is Dead, and that is no error."""
    if version < FIRST_WITH_UNKNOWN_GROUPS:
        return {**to_values(response), "groups": Mapped(_without_unknown, response.groups)}
    return to_values(response)


def _without_unknown(group: DescribedGroup) -> Values:
    return to_values(replace(group, error_code=0) if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND else group)


def refuse_describe(request: DescribeGroupsRequest, code: int, message: str) -> DescribeGroupsResponse:
    groups = [DescribedGroup(group_id=name, error_code=code, error_message=message) for name in request.groups]
    return DescribeGroupsResponse(error_code=code, error_message=message, groups=tuple(groups))


def refuse_delete(request: DeleteGroupsRequest, code: int, message: str) -> DeleteGroupsResponse:
    results = [DeletedGroup(group_id=name, error_code=code) for name in request.groups]
    return DeleteGroupsResponse(error_code=code, error_message=message, results=tuple(results))
