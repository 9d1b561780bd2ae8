"""DescribeGroups, ListGroups and DeleteGroups."""

from __future__ import annotations

from quorumlog.messages import admin, groups
from tests.wire.example import Example, as_base64, since

DESCRIBE = Example(
    15,
    "DescribeGroups",
    0,
    6,
    lambda v: {"groups": ["g", "h"], "includeAuthorizedOperations@3": True},
    lambda v: {
        "throttleTimeMs@1": 7,
        "groups": [
            {
                "errorCode": 0,
                "errorMessage@6": None,
                "groupId": "g",
                "groupState": "Stable",
                "protocolType": "consumer",
                "protocolData": "range",
                "members": [
                    {
                        "memberId": "m1",
                        "groupInstanceId@4": "i1",
                        "clientId": "c",
                        "clientHost": "/127.0.0.1",
                        "memberMetadata": as_base64(b"\1\2"),
                        "memberAssignment": "",
                    }
                ],
                "authorizedOperations@3": 328,
            },
            {
                "errorCode": since(v, 6, 69, 0),
                "errorMessage@6": "no such group",
                "groupId": "h",
                "groupState": "Dead",
                "protocolType": "",
                "protocolData": "",
                "members": [],
                "authorizedOperations@3": -(2**31),
            },
        ],
    },
    lambda v: groups.DescribeGroupsRequest(groups=("g", "h"), include_authorized_operations=v >= 3),
    lambda v: groups.DescribeGroupsResponse(
        throttle_time_ms=7,
        groups=(
            groups.DescribedGroup(
                group_id="g",
                group_state="Stable",
                protocol_type="consumer",
                protocol_data="range",
                members=(
                    groups.DescribedMember(
                        member_id="m1",
                        group_instance_id="i1",
                        client_id="c",
                        client_host="/127.0.0.1",
                        member_metadata=b"\1\2",
                        member_assignment=b"",
                    ),
                ),
                authorized_operations=328,
            ),
            groups.DescribedGroup(error_code=69, error_message="no such group", group_id="h", group_state="Dead"),
        ),
    ),
)
LIST = Example(
    16,
    "ListGroups",
    0,
    5,
    lambda v: {"statesFilter@4": ["Stable", "Empty"], "typesFilter@5": ["classic"]},
    lambda v: {
        "throttleTimeMs@1": 7,
        "errorCode": 14,
        "groups": [
            {"groupId": "g", "protocolType": "consumer", "groupState@4": "Stable", "groupType@5": "classic"},
            {"groupId": "h", "protocolType": "", "groupState@4": "Empty", "groupType@5": "classic"},
        ],
    },
    lambda v: admin.ListGroupsRequest(states=since(v, 4, ("Stable", "Empty"), ()), types=since(v, 5, ("classic",), ())),
    lambda v: admin.ListGroupsResponse(
        throttle_time_ms=7,
        error_code=14,
        groups=(
            admin.ListedGroup(group_id="g", protocol_type="consumer", state="Stable", group_type="classic"),
            admin.ListedGroup(group_id="h", state="Empty", group_type="classic"),
        ),
    ),
)
DELETE = Example(
    42,
    "DeleteGroups",
    0,
    2,
    lambda v: {"groupsNames": ["g", "h"]},
    lambda v: {
        "throttleTimeMs": 7,
        "results": [{"groupId": "g", "errorCode": 0}, {"groupId": "h", "errorCode": 68}],
    },
    lambda v: groups.DeleteGroupsRequest(groups=("g", "h")),
    lambda v: groups.DeleteGroupsResponse(
        throttle_time_ms=7,
        results=(groups.DeletedGroup(group_id="g"), groups.DeletedGroup(group_id="h", error_code=68)),
    ),
)
