"""AlterConfigs, DescribeTopicPartitions, DescribeLogDirs and FindCoordinator: fields that differ from Kafka's."""

from __future__ import annotations

from dataclasses import replace

from quorumlog.messages.admin import (
    Coordinator,
    DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    IncrementalAlterConfigsRequest,
    LogDirsTopic,
    PartitionCursor,
)
from quorumlog.wire.convert.mirror import from_values, to_values
from quorumlog.wire.format.schema import Values


def read_topic_partitions_request(values: Values, _version: int) -> DescribeTopicPartitionsRequest:
    cursor = values["cursor"]
    return DescribeTopicPartitionsRequest(
        topics=tuple([topic["name"] for topic in values["topics"]]),
        response_partition_limit=values["response_partition_limit"],
        cursor=None if cursor is None else from_values(PartitionCursor, cursor),
    )


def write_topic_partitions_request(request: DescribeTopicPartitionsRequest, _version: int) -> Values:
    return {**to_values(request), "topics": [{"name": name} for name in request.topics]}


def read_alter_configs_request(values: Values, _version: int) -> IncrementalAlterConfigsRequest:
    """AlterConfigs replaces all configs of a resource: those that the request does not name are removed."""
    replaced = [{**resource, "replace": True} for resource in values["resources"]]
    request: IncrementalAlterConfigsRequest = from_values(
        IncrementalAlterConfigsRequest, {**values, "resources": replaced}
    )
    return request


def read_log_dirs_request(values: Values, _version: int) -> DescribeLogDirsRequest:
    topics = values["topics"]
    if topics is None:
        return DescribeLogDirsRequest(all_topics=True)
    return DescribeLogDirsRequest(
        all_topics=False, topics=tuple([from_values(LogDirsTopic, topic) for topic in topics])
    )


def write_log_dirs_request(request: DescribeLogDirsRequest, _version: int) -> Values:
    return {"topics": None} if request.all_topics else to_values(request)


def read_coordinator_request(values: Values, _version: int) -> FindCoordinatorRequest:
    """One key before version 4, several from then on."""
    keys = (values["key"],) if "key" in values else tuple(values["coordinator_keys"])
    return FindCoordinatorRequest(key_type=values.get("key_type", 0), keys=keys)


def write_coordinator_request(request: FindCoordinatorRequest, _version: int) -> Values:
    return {"key": request.keys[0] if request.keys else "", "coordinator_keys": request.keys, **to_values(request)}


def write_coordinator_response(
    response: FindCoordinatorResponse, request: FindCoordinatorRequest, version: int
) -> Values:
    if version >= 4:
        return to_values(response)
    (only,) = response.coordinators or (Coordinator(key=request.keys[0]),)
    code = response.error_code or only.error_code
    message = response.error_message or only.error_message
    return {**to_values(response), **to_values(only), "error_code": code, "error_message": message or None}


def read_coordinator_response(values: Values, request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
    response: FindCoordinatorResponse = from_values(FindCoordinatorResponse, values)
    if version >= 4:
        return response
    only = from_values(Coordinator, {**values, "key": request.keys[0]})
    return replace(response, error_code=0, error_message="", coordinators=(only,))


def refuse_coordinator(request: FindCoordinatorRequest, code: int, message: str) -> FindCoordinatorResponse:
    coordinators = [Coordinator(key=key, error_code=code, error_message=message) for key in request.keys]
    return FindCoordinatorResponse(error_code=code, error_message=message, coordinators=tuple(coordinators))
