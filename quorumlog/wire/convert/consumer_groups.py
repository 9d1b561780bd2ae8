"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: where Kafka's messages and ours differ.

Clients treat an error of a heartbeat that they do not expect as fatal: the application's consumer dies. So errors that
pass by themselves are told as one of the two that every client answers by finding its coordinator again.

Sources: Kafka's message definitions; KIP-848 (version 0); KIP-1082 (from version 1 on the member chooses its id).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
    DescribedConsumerMember,
)
from quorumlog.wire.convert.mirror import Mapped, from_values, to_values
from quorumlog.wire.format.schema import Values

FIRST_WITH_MEMBERS_OWN_ID = 1  # and with regular expressions
ASSIGNMENTS = ("assignment", "target_assignment")

TOLD_AS: Mapping[int, ErrorCode] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.LEADER_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
"""Errors of a heartbeat that would end a client, and what it is told instead."""


def told_as(error_code: int) -> int:
    """The error code of a heartbeat's answer, for both ways of writing it: with the schema, and by the fast path."""
    return TOLD_AS.get(error_code, error_code)


def read_heartbeat_request(values: Values, version: int) -> ConsumerGroupHeartbeatRequest:
    names, owned = values["subscribed_topic_names"], values["topic_partitions"]
    request: ConsumerGroupHeartbeatRequest = from_values(
        ConsumerGroupHeartbeatRequest,
        {
            **values,
            "subscribed_topic_names": None if names is None else {"names": names},
            "topic_partitions": None if owned is None else {"topic_partitions": owned},
        },
    )
    return replace(request, chooses_member_id=version >= FIRST_WITH_MEMBERS_OWN_ID)


def write_heartbeat_request(request: ConsumerGroupHeartbeatRequest, _version: int) -> Values:
    names, values = request.subscribed_topic_names, to_values(request)
    owned = values["topic_partitions"]
    values["subscribed_topic_names"] = None if names is None else names.names
    values["topic_partitions"] = None if owned is None else owned["topic_partitions"]
    return values


def heartbeat_version(request: ConsumerGroupHeartbeatRequest, newest: int) -> int:
    return newest if request.chooses_member_id else 0


def write_heartbeat_response(
    response: ConsumerGroupHeartbeatResponse, _request: ConsumerGroupHeartbeatRequest, _version: int
) -> Values:
    values = to_values(response)
    values["error_code"] = told_as(response.error_code)
    return values


def read_describe_response(
    values: Values, _request: ConsumerGroupDescribeRequest, _version: int
) -> ConsumerGroupDescribeResponse:
    groups = [{**group, "members": [_flat(one) for one in group["members"]]} for group in values["groups"]]
    response: ConsumerGroupDescribeResponse = from_values(ConsumerGroupDescribeResponse, {**values, "groups": groups})
    return response


def write_describe_response(
    response: ConsumerGroupDescribeResponse, _request: ConsumerGroupDescribeRequest, _version: int
) -> Values:
    return {**to_values(response), "groups": Mapped(_group_values, response.groups)}


def _group_values(group: DescribedConsumerGroup) -> Values:
    return {**to_values(group), "members": Mapped(_nested, group.members)}


def _flat(member: Values) -> Values:
    return {**member, **{name: member[name]["topic_partitions"] for name in ASSIGNMENTS}}


def _nested(member: DescribedConsumerMember) -> Values:
    values = to_values(member)
    return {**values, **{name: {"topic_partitions": values[name]} for name in ASSIGNMENTS}}


def refuse_consumer_describe(
    request: ConsumerGroupDescribeRequest, code: int, message: str
) -> ConsumerGroupDescribeResponse:
    groups = [
        DescribedConsumerGroup(group_id=name, error_code=code, error_message=message) for name in request.group_ids
    ]
    return ConsumerGroupDescribeResponse(error_code=code, error_message=message, groups=tuple(groups))
