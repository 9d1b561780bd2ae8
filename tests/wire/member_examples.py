"""FindCoordinator, and what the members of a group call."""

from __future__ import annotations

from quorumlog.messages import admin, groups
from tests.wire.example import Example, as_base64, since

FIND = Example(
    10,
    "FindCoordinator",
    0,
    6,
    lambda v: {"key@0-3": "g", "keyType@1": 1, "coordinatorKeys@4": ["g", "h"]},
    lambda v: {
        "throttleTimeMs@1": 7,
        "errorCode@0-3": 15,
        "errorMessage@1-3": "later",
        "nodeId@0-3": -1,
        "host@0-3": "",
        "port@0-3": -1,
        "coordinators@4": [
            {"key": "g", "nodeId": -1, "host": "", "port": -1, "errorCode": 15, "errorMessage": "later"},
            {"key": "h", "nodeId": 2, "host": "b2", "port": 9092, "errorCode": 0, "errorMessage": None},
        ],
    },
    lambda v: admin.FindCoordinatorRequest(key_type=since(v, 1, 1, 0), keys=since(v, 4, ("g", "h"), ("g",))),
    lambda v: admin.FindCoordinatorResponse(
        throttle_time_ms=7,
        coordinators=(
            admin.Coordinator(key="g", error_code=15, error_message="later"),
            *([admin.Coordinator(key="h", node_id=2, host="b2", port=9092)] if v >= 4 else []),
        ),
    ),
)
JOIN = Example(
    11,
    "JoinGroup",
    0,
    9,
    lambda v: {
        "groupId": "g",
        "sessionTimeoutMs": 45_000,
        "rebalanceTimeoutMs@1": 300_000,
        "memberId": "m1",
        "groupInstanceId@5": "i1",
        "protocolType": "consumer",
        "protocols": [
            {"name": "range", "metadata": as_base64(b"\1\2")},
            {"name": "sticky", "metadata": ""},
            {"name": "zeros", "metadata": as_base64(bytes(16))},
        ],
        "reason@8": None,
    },
    lambda v: {
        "throttleTimeMs@2": 7,
        "errorCode": 0,
        "generationId": 3,
        "protocolType@7": "consumer",
        "protocolName": "range",
        "leader": "m1",
        "skipAssignment@9": True,
        "memberId": "m1",
        "members": [
            {"memberId": "m1", "groupInstanceId@5": "i1", "metadata": as_base64(b"\1\2")},
            {"memberId": "m2", "groupInstanceId@5": None, "metadata": ""},
        ],
    },
    lambda v: groups.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=since(v, 1, 300_000, -1),
        member_id="m1",
        group_instance_id=since(v, 5, "i1", None),
        protocol_type="consumer",
        protocols=(
            groups.GroupProtocol(name="range", metadata=b"\1\2"),
            groups.GroupProtocol(name="sticky", metadata=b""),
            groups.GroupProtocol(name="zeros", metadata=bytes(16)),
        ),
        takes_member_id=v >= 4,
        takes_skip_assignment=v >= 9,
    ),
    lambda v: groups.JoinGroupResponse(
        throttle_time_ms=7,
        generation_id=3,
        protocol_type="consumer",
        protocol_name="range",
        leader="m1",
        skip_assignment=True,
        member_id="m1",
        members=(
            groups.JoinedMember(member_id="m1", group_instance_id="i1", metadata=b"\1\2"),
            groups.JoinedMember(member_id="m2", metadata=b""),
        ),
    ),
)
SYNC = Example(
    14,
    "SyncGroup",
    0,
    5,
    lambda v: {
        "groupId": "g",
        "generationId": 3,
        "memberId": "m1",
        "groupInstanceId@3": "i1",
        "protocolType@5": "consumer",
        "protocolName@5": "range",
        "assignments": [
            {"memberId": "m1", "assignment": as_base64(bytes(16))},
            {"memberId": "m2", "assignment": ""},
        ],
    },
    lambda v: {
        "throttleTimeMs@1": 7,
        "errorCode": 27,
        "protocolType@5": "consumer",
        "protocolName@5": None,
        "assignment": as_base64(b"\5"),
    },
    lambda v: groups.SyncGroupRequest(
        group_id="g",
        generation_id=3,
        member_id="m1",
        group_instance_id=since(v, 3, "i1", None),
        protocol_type=since(v, 5, "consumer", None),
        protocol_name=since(v, 5, "range", None),
        assignments=(
            groups.MemberAssignment(member_id="m1", assignment=bytes(16)),
            groups.MemberAssignment(member_id="m2", assignment=b""),
        ),
    ),
    lambda v: groups.SyncGroupResponse(throttle_time_ms=7, error_code=27, protocol_type="consumer", assignment=b"\5"),
)
HEARTBEAT = Example(
    12,
    "Heartbeat",
    0,
    4,
    lambda v: {"groupId": "g", "generationId": 3, "memberId": "m1", "groupInstanceId@3": "i1"},
    lambda v: {"throttleTimeMs@1": 7, "errorCode": 25},
    lambda v: groups.GroupHeartbeatRequest(
        group_id="g", generation_id=3, member_id="m1", group_instance_id=since(v, 3, "i1", None)
    ),
    lambda v: groups.GroupHeartbeatResponse(throttle_time_ms=7, error_code=25),
)
LEAVE = Example(
    13,
    "LeaveGroup",
    0,
    5,
    lambda v: {
        "groupId": "g",
        "memberId@0-2": "m1",
        "members@3": [
            {"memberId": "m1", "groupInstanceId": None, "reason@5": None},
            {"memberId": "", "groupInstanceId": "i2", "reason@5": None},
        ],
    },
    lambda v: {
        "throttleTimeMs@1": 7,
        "errorCode": since(v, 3, 0, 25),
        "members@3": [
            {"memberId": "m1", "groupInstanceId": None, "errorCode": 25},
            {"memberId": "", "groupInstanceId": "i2", "errorCode": 0},
        ],
    },
    lambda v: groups.LeaveGroupRequest(
        group_id="g",
        members=(
            groups.LeavingMember(member_id="m1"),
            *([groups.LeavingMember(group_instance_id="i2")] if v >= 3 else []),
        ),
    ),
    lambda v: groups.LeaveGroupResponse(
        throttle_time_ms=7,
        members=(
            groups.LeftMember(member_id="m1", error_code=25),
            *([groups.LeftMember(member_id="", group_instance_id="i2")] if v >= 3 else []),
        ),
    ),
)
