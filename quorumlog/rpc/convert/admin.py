"""Converts between dataclasses and protobuf.

Written by `./dev proto` from proto/quorumlog/v1/admin.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.admin import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResult,
    Coordinator,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsResult,
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    LogDirDescription,
    LogDirPartition,
    LogDirsTopic,
    LogDirTopic,
    NewPartition,
    PartitionCursor,
    PartitionDescription,
    PartitionsOfTopic,
    TopicPartitionsDescription,
)
from quorumlog.messages.buffer import Buffer
from quorumlog.rpc.convert.parsing import parse
from quorumlog.rpc.pb import admin_pb2 as pb


def fill_CreatePartitionsRequest(m: CreatePartitionsRequest, p: pb.CreatePartitionsRequest) -> None:
    for x_topics in m.topics:
        fill_PartitionsOfTopic(x_topics, p.topics.add())
    p.timeout_ms = m.timeout_ms
    p.validate_only = m.validate_only


def read_CreatePartitionsRequest(p: pb.CreatePartitionsRequest) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=tuple([read_PartitionsOfTopic(x) for x in p.topics]),
        timeout_ms=p.timeout_ms,
        validate_only=p.validate_only,
    )


def encode_CreatePartitionsRequest(m: CreatePartitionsRequest) -> bytes:
    p = pb.CreatePartitionsRequest()
    fill_CreatePartitionsRequest(m, p)
    return p.SerializeToString()


def decode_CreatePartitionsRequest(data: Buffer) -> CreatePartitionsRequest:
    return read_CreatePartitionsRequest(parse(pb.CreatePartitionsRequest, data))


def fill_PartitionsOfTopic(m: PartitionsOfTopic, p: pb.PartitionsOfTopic) -> None:
    p.name = m.name
    p.count = m.count
    for x_assignments in m.assignments:
        fill_NewPartition(x_assignments, p.assignments.add())


def read_PartitionsOfTopic(p: pb.PartitionsOfTopic) -> PartitionsOfTopic:
    return PartitionsOfTopic(
        name=p.name,
        count=p.count,
        assignments=tuple([read_NewPartition(x) for x in p.assignments]),
    )


def encode_PartitionsOfTopic(m: PartitionsOfTopic) -> bytes:
    p = pb.PartitionsOfTopic()
    fill_PartitionsOfTopic(m, p)
    return p.SerializeToString()


def decode_PartitionsOfTopic(data: Buffer) -> PartitionsOfTopic:
    return read_PartitionsOfTopic(parse(pb.PartitionsOfTopic, data))


def fill_NewPartition(m: NewPartition, p: pb.NewPartition) -> None:
    p.broker_ids.extend(m.broker_ids)


def read_NewPartition(p: pb.NewPartition) -> NewPartition:
    return NewPartition(
        broker_ids=tuple(p.broker_ids[:]),
    )


def encode_NewPartition(m: NewPartition) -> bytes:
    p = pb.NewPartition()
    fill_NewPartition(m, p)
    return p.SerializeToString()


def decode_NewPartition(data: Buffer) -> NewPartition:
    return read_NewPartition(parse(pb.NewPartition, data))


def fill_CreatePartitionsResponse(m: CreatePartitionsResponse, p: pb.CreatePartitionsResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_results in m.results:
        fill_CreatePartitionsResult(x_results, p.results.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_CreatePartitionsResponse(p: pb.CreatePartitionsResponse) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        results=tuple([read_CreatePartitionsResult(x) for x in p.results]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_CreatePartitionsResponse(m: CreatePartitionsResponse) -> bytes:
    p = pb.CreatePartitionsResponse()
    fill_CreatePartitionsResponse(m, p)
    return p.SerializeToString()


def decode_CreatePartitionsResponse(data: Buffer) -> CreatePartitionsResponse:
    return read_CreatePartitionsResponse(parse(pb.CreatePartitionsResponse, data))


def fill_CreatePartitionsResult(m: CreatePartitionsResult, p: pb.CreatePartitionsResult) -> None:
    p.name = m.name
    p.error_code = m.error_code
    p.error_message = m.error_message


def read_CreatePartitionsResult(p: pb.CreatePartitionsResult) -> CreatePartitionsResult:
    return CreatePartitionsResult(
        name=p.name,
        error_code=p.error_code,
        error_message=p.error_message,
    )


def encode_CreatePartitionsResult(m: CreatePartitionsResult) -> bytes:
    p = pb.CreatePartitionsResult()
    fill_CreatePartitionsResult(m, p)
    return p.SerializeToString()


def decode_CreatePartitionsResult(data: Buffer) -> CreatePartitionsResult:
    return read_CreatePartitionsResult(parse(pb.CreatePartitionsResult, data))


def fill_IncrementalAlterConfigsRequest(
    m: IncrementalAlterConfigsRequest, p: pb.IncrementalAlterConfigsRequest
) -> None:
    for x_resources in m.resources:
        fill_AlterConfigsResource(x_resources, p.resources.add())
    p.validate_only = m.validate_only


def read_IncrementalAlterConfigsRequest(p: pb.IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
        resources=tuple([read_AlterConfigsResource(x) for x in p.resources]),
        validate_only=p.validate_only,
    )


def encode_IncrementalAlterConfigsRequest(m: IncrementalAlterConfigsRequest) -> bytes:
    p = pb.IncrementalAlterConfigsRequest()
    fill_IncrementalAlterConfigsRequest(m, p)
    return p.SerializeToString()


def decode_IncrementalAlterConfigsRequest(data: Buffer) -> IncrementalAlterConfigsRequest:
    return read_IncrementalAlterConfigsRequest(parse(pb.IncrementalAlterConfigsRequest, data))


def fill_AlterConfigsResource(m: AlterConfigsResource, p: pb.AlterConfigsResource) -> None:
    p.resource_type = m.resource_type
    p.resource_name = m.resource_name
    for x_configs in m.configs:
        fill_AlterableConfig(x_configs, p.configs.add())
    p.replace = m.replace


def read_AlterConfigsResource(p: pb.AlterConfigsResource) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=p.resource_type,
        resource_name=p.resource_name,
        configs=tuple([read_AlterableConfig(x) for x in p.configs]),
        replace=p.replace,
    )


def encode_AlterConfigsResource(m: AlterConfigsResource) -> bytes:
    p = pb.AlterConfigsResource()
    fill_AlterConfigsResource(m, p)
    return p.SerializeToString()


def decode_AlterConfigsResource(data: Buffer) -> AlterConfigsResource:
    return read_AlterConfigsResource(parse(pb.AlterConfigsResource, data))


def fill_AlterableConfig(m: AlterableConfig, p: pb.AlterableConfig) -> None:
    p.name = m.name
    p.operation = m.operation
    if m.value is not None:
        p.value = m.value


def read_AlterableConfig(p: pb.AlterableConfig) -> AlterableConfig:
    return AlterableConfig(
        name=p.name,
        operation=p.operation,
        value=p.value if p.HasField("value") else None,
    )


def encode_AlterableConfig(m: AlterableConfig) -> bytes:
    p = pb.AlterableConfig()
    fill_AlterableConfig(m, p)
    return p.SerializeToString()


def decode_AlterableConfig(data: Buffer) -> AlterableConfig:
    return read_AlterableConfig(parse(pb.AlterableConfig, data))


def fill_IncrementalAlterConfigsResponse(
    m: IncrementalAlterConfigsResponse, p: pb.IncrementalAlterConfigsResponse
) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_results in m.results:
        fill_AlterConfigsResult(x_results, p.results.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_IncrementalAlterConfigsResponse(p: pb.IncrementalAlterConfigsResponse) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        results=tuple([read_AlterConfigsResult(x) for x in p.results]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_IncrementalAlterConfigsResponse(m: IncrementalAlterConfigsResponse) -> bytes:
    p = pb.IncrementalAlterConfigsResponse()
    fill_IncrementalAlterConfigsResponse(m, p)
    return p.SerializeToString()


def decode_IncrementalAlterConfigsResponse(data: Buffer) -> IncrementalAlterConfigsResponse:
    return read_IncrementalAlterConfigsResponse(parse(pb.IncrementalAlterConfigsResponse, data))


def fill_AlterConfigsResult(m: AlterConfigsResult, p: pb.AlterConfigsResult) -> None:
    p.resource_type = m.resource_type
    p.resource_name = m.resource_name
    p.error_code = m.error_code
    p.error_message = m.error_message


def read_AlterConfigsResult(p: pb.AlterConfigsResult) -> AlterConfigsResult:
    return AlterConfigsResult(
        resource_type=p.resource_type,
        resource_name=p.resource_name,
        error_code=p.error_code,
        error_message=p.error_message,
    )


def encode_AlterConfigsResult(m: AlterConfigsResult) -> bytes:
    p = pb.AlterConfigsResult()
    fill_AlterConfigsResult(m, p)
    return p.SerializeToString()


def decode_AlterConfigsResult(data: Buffer) -> AlterConfigsResult:
    return read_AlterConfigsResult(parse(pb.AlterConfigsResult, data))


def fill_DescribeTopicPartitionsRequest(
    m: DescribeTopicPartitionsRequest, p: pb.DescribeTopicPartitionsRequest
) -> None:
    p.topics.extend(m.topics)
    p.response_partition_limit = m.response_partition_limit
    if m.cursor is not None:
        p.cursor.SetInParent()
        fill_PartitionCursor(m.cursor, p.cursor)


def read_DescribeTopicPartitionsRequest(p: pb.DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=tuple(p.topics[:]),
        response_partition_limit=p.response_partition_limit,
        cursor=read_PartitionCursor(p.cursor) if p.HasField("cursor") else None,
    )


def encode_DescribeTopicPartitionsRequest(m: DescribeTopicPartitionsRequest) -> bytes:
    p = pb.DescribeTopicPartitionsRequest()
    fill_DescribeTopicPartitionsRequest(m, p)
    return p.SerializeToString()


def decode_DescribeTopicPartitionsRequest(data: Buffer) -> DescribeTopicPartitionsRequest:
    return read_DescribeTopicPartitionsRequest(parse(pb.DescribeTopicPartitionsRequest, data))


def fill_PartitionCursor(m: PartitionCursor, p: pb.PartitionCursor) -> None:
    p.topic_name = m.topic_name
    p.partition_index = m.partition_index


def read_PartitionCursor(p: pb.PartitionCursor) -> PartitionCursor:
    return PartitionCursor(
        topic_name=p.topic_name,
        partition_index=p.partition_index,
    )


def encode_PartitionCursor(m: PartitionCursor) -> bytes:
    p = pb.PartitionCursor()
    fill_PartitionCursor(m, p)
    return p.SerializeToString()


def decode_PartitionCursor(data: Buffer) -> PartitionCursor:
    return read_PartitionCursor(parse(pb.PartitionCursor, data))


def fill_DescribeTopicPartitionsResponse(
    m: DescribeTopicPartitionsResponse, p: pb.DescribeTopicPartitionsResponse
) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_topics in m.topics:
        fill_TopicPartitionsDescription(x_topics, p.topics.add())
    if m.next_cursor is not None:
        p.next_cursor.SetInParent()
        fill_PartitionCursor(m.next_cursor, p.next_cursor)
    p.throttle_time_ms = m.throttle_time_ms


def read_DescribeTopicPartitionsResponse(p: pb.DescribeTopicPartitionsResponse) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        topics=tuple([read_TopicPartitionsDescription(x) for x in p.topics]),
        next_cursor=read_PartitionCursor(p.next_cursor) if p.HasField("next_cursor") else None,
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_DescribeTopicPartitionsResponse(m: DescribeTopicPartitionsResponse) -> bytes:
    p = pb.DescribeTopicPartitionsResponse()
    fill_DescribeTopicPartitionsResponse(m, p)
    return p.SerializeToString()


def decode_DescribeTopicPartitionsResponse(data: Buffer) -> DescribeTopicPartitionsResponse:
    return read_DescribeTopicPartitionsResponse(parse(pb.DescribeTopicPartitionsResponse, data))


def fill_TopicPartitionsDescription(m: TopicPartitionsDescription, p: pb.TopicPartitionsDescription) -> None:
    p.error_code = m.error_code
    p.name = m.name
    p.topic_id = m.topic_id
    p.is_internal = m.is_internal
    for x_partitions in m.partitions:
        fill_PartitionDescription(x_partitions, p.partitions.add())
    p.authorized_operations = m.authorized_operations


def read_TopicPartitionsDescription(p: pb.TopicPartitionsDescription) -> TopicPartitionsDescription:
    return TopicPartitionsDescription(
        error_code=p.error_code,
        name=p.name,
        topic_id=p.topic_id,
        is_internal=p.is_internal,
        partitions=tuple([read_PartitionDescription(x) for x in p.partitions]),
        authorized_operations=p.authorized_operations,
    )


def encode_TopicPartitionsDescription(m: TopicPartitionsDescription) -> bytes:
    p = pb.TopicPartitionsDescription()
    fill_TopicPartitionsDescription(m, p)
    return p.SerializeToString()


def decode_TopicPartitionsDescription(data: Buffer) -> TopicPartitionsDescription:
    return read_TopicPartitionsDescription(parse(pb.TopicPartitionsDescription, data))


def fill_PartitionDescription(m: PartitionDescription, p: pb.PartitionDescription) -> None:
    p.error_code = m.error_code
    p.index = m.index
    p.leader_id = m.leader_id
    p.leader_epoch = m.leader_epoch
    p.replicas.extend(m.replicas)
    p.isr.extend(m.isr)
    p.eligible_leader_replicas.extend(m.eligible_leader_replicas)
    p.last_known_elr.extend(m.last_known_elr)
    p.offline_replicas.extend(m.offline_replicas)


def read_PartitionDescription(p: pb.PartitionDescription) -> PartitionDescription:
    return PartitionDescription(
        error_code=p.error_code,
        index=p.index,
        leader_id=p.leader_id,
        leader_epoch=p.leader_epoch,
        replicas=tuple(p.replicas[:]),
        isr=tuple(p.isr[:]),
        eligible_leader_replicas=tuple(p.eligible_leader_replicas[:]),
        last_known_elr=tuple(p.last_known_elr[:]),
        offline_replicas=tuple(p.offline_replicas[:]),
    )


def encode_PartitionDescription(m: PartitionDescription) -> bytes:
    p = pb.PartitionDescription()
    fill_PartitionDescription(m, p)
    return p.SerializeToString()


def decode_PartitionDescription(data: Buffer) -> PartitionDescription:
    return read_PartitionDescription(parse(pb.PartitionDescription, data))


def fill_DeleteRecordsRequest(m: DeleteRecordsRequest, p: pb.DeleteRecordsRequest) -> None:
    for x_topics in m.topics:
        fill_DeleteRecordsTopic(x_topics, p.topics.add())
    p.timeout_ms = m.timeout_ms


def read_DeleteRecordsRequest(p: pb.DeleteRecordsRequest) -> DeleteRecordsRequest:
    return DeleteRecordsRequest(
        topics=tuple([read_DeleteRecordsTopic(x) for x in p.topics]),
        timeout_ms=p.timeout_ms,
    )


def encode_DeleteRecordsRequest(m: DeleteRecordsRequest) -> bytes:
    p = pb.DeleteRecordsRequest()
    fill_DeleteRecordsRequest(m, p)
    return p.SerializeToString()


def decode_DeleteRecordsRequest(data: Buffer) -> DeleteRecordsRequest:
    return read_DeleteRecordsRequest(parse(pb.DeleteRecordsRequest, data))


def fill_DeleteRecordsTopic(m: DeleteRecordsTopic, p: pb.DeleteRecordsTopic) -> None:
    p.name = m.name
    for x_partitions in m.partitions:
        fill_DeleteRecordsPartition(x_partitions, p.partitions.add())


def read_DeleteRecordsTopic(p: pb.DeleteRecordsTopic) -> DeleteRecordsTopic:
    return DeleteRecordsTopic(
        name=p.name,
        partitions=tuple([read_DeleteRecordsPartition(x) for x in p.partitions]),
    )


def encode_DeleteRecordsTopic(m: DeleteRecordsTopic) -> bytes:
    p = pb.DeleteRecordsTopic()
    fill_DeleteRecordsTopic(m, p)
    return p.SerializeToString()


def decode_DeleteRecordsTopic(data: Buffer) -> DeleteRecordsTopic:
    return read_DeleteRecordsTopic(parse(pb.DeleteRecordsTopic, data))


def fill_DeleteRecordsPartition(m: DeleteRecordsPartition, p: pb.DeleteRecordsPartition) -> None:
    p.index = m.index
    p.offset = m.offset


def read_DeleteRecordsPartition(p: pb.DeleteRecordsPartition) -> DeleteRecordsPartition:
    return DeleteRecordsPartition(
        index=p.index,
        offset=p.offset,
    )


def encode_DeleteRecordsPartition(m: DeleteRecordsPartition) -> bytes:
    p = pb.DeleteRecordsPartition()
    fill_DeleteRecordsPartition(m, p)
    return p.SerializeToString()


def decode_DeleteRecordsPartition(data: Buffer) -> DeleteRecordsPartition:
    return read_DeleteRecordsPartition(parse(pb.DeleteRecordsPartition, data))


def fill_DeleteRecordsResponse(m: DeleteRecordsResponse, p: pb.DeleteRecordsResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_topics in m.topics:
        fill_DeleteRecordsTopicResult(x_topics, p.topics.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_DeleteRecordsResponse(p: pb.DeleteRecordsResponse) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        topics=tuple([read_DeleteRecordsTopicResult(x) for x in p.topics]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_DeleteRecordsResponse(m: DeleteRecordsResponse) -> bytes:
    p = pb.DeleteRecordsResponse()
    fill_DeleteRecordsResponse(m, p)
    return p.SerializeToString()


def decode_DeleteRecordsResponse(data: Buffer) -> DeleteRecordsResponse:
    return read_DeleteRecordsResponse(parse(pb.DeleteRecordsResponse, data))


def fill_DeleteRecordsTopicResult(m: DeleteRecordsTopicResult, p: pb.DeleteRecordsTopicResult) -> None:
    p.name = m.name
    for x_partitions in m.partitions:
        fill_DeleteRecordsPartitionResult(x_partitions, p.partitions.add())


def read_DeleteRecordsTopicResult(p: pb.DeleteRecordsTopicResult) -> DeleteRecordsTopicResult:
    return DeleteRecordsTopicResult(
        name=p.name,
        partitions=tuple([read_DeleteRecordsPartitionResult(x) for x in p.partitions]),
    )


def encode_DeleteRecordsTopicResult(m: DeleteRecordsTopicResult) -> bytes:
    p = pb.DeleteRecordsTopicResult()
    fill_DeleteRecordsTopicResult(m, p)
    return p.SerializeToString()


def decode_DeleteRecordsTopicResult(data: Buffer) -> DeleteRecordsTopicResult:
    return read_DeleteRecordsTopicResult(parse(pb.DeleteRecordsTopicResult, data))


def fill_DeleteRecordsPartitionResult(m: DeleteRecordsPartitionResult, p: pb.DeleteRecordsPartitionResult) -> None:
    p.index = m.index
    p.error_code = m.error_code
    p.low_watermark = m.low_watermark


def read_DeleteRecordsPartitionResult(p: pb.DeleteRecordsPartitionResult) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        index=p.index,
        error_code=p.error_code,
        low_watermark=p.low_watermark,
    )


def encode_DeleteRecordsPartitionResult(m: DeleteRecordsPartitionResult) -> bytes:
    p = pb.DeleteRecordsPartitionResult()
    fill_DeleteRecordsPartitionResult(m, p)
    return p.SerializeToString()


def decode_DeleteRecordsPartitionResult(data: Buffer) -> DeleteRecordsPartitionResult:
    return read_DeleteRecordsPartitionResult(parse(pb.DeleteRecordsPartitionResult, data))


def fill_DescribeLogDirsRequest(m: DescribeLogDirsRequest, p: pb.DescribeLogDirsRequest) -> None:
    p.all_topics = m.all_topics
    for x_topics in m.topics:
        fill_LogDirsTopic(x_topics, p.topics.add())


def read_DescribeLogDirsRequest(p: pb.DescribeLogDirsRequest) -> DescribeLogDirsRequest:
    return DescribeLogDirsRequest(
        all_topics=p.all_topics,
        topics=tuple([read_LogDirsTopic(x) for x in p.topics]),
    )


def encode_DescribeLogDirsRequest(m: DescribeLogDirsRequest) -> bytes:
    p = pb.DescribeLogDirsRequest()
    fill_DescribeLogDirsRequest(m, p)
    return p.SerializeToString()


def decode_DescribeLogDirsRequest(data: Buffer) -> DescribeLogDirsRequest:
    return read_DescribeLogDirsRequest(parse(pb.DescribeLogDirsRequest, data))


def fill_LogDirsTopic(m: LogDirsTopic, p: pb.LogDirsTopic) -> None:
    p.name = m.name
    p.partitions.extend(m.partitions)


def read_LogDirsTopic(p: pb.LogDirsTopic) -> LogDirsTopic:
    return LogDirsTopic(
        name=p.name,
        partitions=tuple(p.partitions[:]),
    )


def encode_LogDirsTopic(m: LogDirsTopic) -> bytes:
    p = pb.LogDirsTopic()
    fill_LogDirsTopic(m, p)
    return p.SerializeToString()


def decode_LogDirsTopic(data: Buffer) -> LogDirsTopic:
    return read_LogDirsTopic(parse(pb.LogDirsTopic, data))


def fill_DescribeLogDirsResponse(m: DescribeLogDirsResponse, p: pb.DescribeLogDirsResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_directories in m.directories:
        fill_LogDirDescription(x_directories, p.directories.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_DescribeLogDirsResponse(p: pb.DescribeLogDirsResponse) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        directories=tuple([read_LogDirDescription(x) for x in p.directories]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_DescribeLogDirsResponse(m: DescribeLogDirsResponse) -> bytes:
    p = pb.DescribeLogDirsResponse()
    fill_DescribeLogDirsResponse(m, p)
    return p.SerializeToString()


def decode_DescribeLogDirsResponse(data: Buffer) -> DescribeLogDirsResponse:
    return read_DescribeLogDirsResponse(parse(pb.DescribeLogDirsResponse, data))


def fill_LogDirDescription(m: LogDirDescription, p: pb.LogDirDescription) -> None:
    p.error_code = m.error_code
    p.path = m.path
    p.directory_id = m.directory_id
    for x_topics in m.topics:
        fill_LogDirTopic(x_topics, p.topics.add())
    p.total_bytes = m.total_bytes
    p.usable_bytes = m.usable_bytes


def read_LogDirDescription(p: pb.LogDirDescription) -> LogDirDescription:
    return LogDirDescription(
        error_code=p.error_code,
        path=p.path,
        directory_id=p.directory_id,
        topics=tuple([read_LogDirTopic(x) for x in p.topics]),
        total_bytes=p.total_bytes,
        usable_bytes=p.usable_bytes,
    )


def encode_LogDirDescription(m: LogDirDescription) -> bytes:
    p = pb.LogDirDescription()
    fill_LogDirDescription(m, p)
    return p.SerializeToString()


def decode_LogDirDescription(data: Buffer) -> LogDirDescription:
    return read_LogDirDescription(parse(pb.LogDirDescription, data))


def fill_LogDirTopic(m: LogDirTopic, p: pb.LogDirTopic) -> None:
    p.name = m.name
    for x_partitions in m.partitions:
        fill_LogDirPartition(x_partitions, p.partitions.add())


def read_LogDirTopic(p: pb.LogDirTopic) -> LogDirTopic:
    return LogDirTopic(
        name=p.name,
        partitions=tuple([read_LogDirPartition(x) for x in p.partitions]),
    )


def encode_LogDirTopic(m: LogDirTopic) -> bytes:
    p = pb.LogDirTopic()
    fill_LogDirTopic(m, p)
    return p.SerializeToString()


def decode_LogDirTopic(data: Buffer) -> LogDirTopic:
    return read_LogDirTopic(parse(pb.LogDirTopic, data))


def fill_LogDirPartition(m: LogDirPartition, p: pb.LogDirPartition) -> None:
    p.index = m.index
    p.size_bytes = m.size_bytes
    p.offset_lag = m.offset_lag
    p.is_future = m.is_future


def read_LogDirPartition(p: pb.LogDirPartition) -> LogDirPartition:
    return LogDirPartition(
        index=p.index,
        size_bytes=p.size_bytes,
        offset_lag=p.offset_lag,
        is_future=p.is_future,
    )


def encode_LogDirPartition(m: LogDirPartition) -> bytes:
    p = pb.LogDirPartition()
    fill_LogDirPartition(m, p)
    return p.SerializeToString()


def decode_LogDirPartition(data: Buffer) -> LogDirPartition:
    return read_LogDirPartition(parse(pb.LogDirPartition, data))


def fill_ListGroupsRequest(m: ListGroupsRequest, p: pb.ListGroupsRequest) -> None:
    p.states.extend(m.states)
    p.types.extend(m.types)


def read_ListGroupsRequest(p: pb.ListGroupsRequest) -> ListGroupsRequest:
    return ListGroupsRequest(
        states=tuple(p.states[:]),
        types=tuple(p.types[:]),
    )


def encode_ListGroupsRequest(m: ListGroupsRequest) -> bytes:
    p = pb.ListGroupsRequest()
    fill_ListGroupsRequest(m, p)
    return p.SerializeToString()


def decode_ListGroupsRequest(data: Buffer) -> ListGroupsRequest:
    return read_ListGroupsRequest(parse(pb.ListGroupsRequest, data))


def fill_ListGroupsResponse(m: ListGroupsResponse, p: pb.ListGroupsResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_groups in m.groups:
        fill_ListedGroup(x_groups, p.groups.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_ListGroupsResponse(p: pb.ListGroupsResponse) -> ListGroupsResponse:
    return ListGroupsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        groups=tuple([read_ListedGroup(x) for x in p.groups]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_ListGroupsResponse(m: ListGroupsResponse) -> bytes:
    p = pb.ListGroupsResponse()
    fill_ListGroupsResponse(m, p)
    return p.SerializeToString()


def decode_ListGroupsResponse(data: Buffer) -> ListGroupsResponse:
    return read_ListGroupsResponse(parse(pb.ListGroupsResponse, data))


def fill_ListedGroup(m: ListedGroup, p: pb.ListedGroup) -> None:
    p.group_id = m.group_id
    p.protocol_type = m.protocol_type
    p.state = m.state
    p.group_type = m.group_type


def read_ListedGroup(p: pb.ListedGroup) -> ListedGroup:
    return ListedGroup(
        group_id=p.group_id,
        protocol_type=p.protocol_type,
        state=p.state,
        group_type=p.group_type,
    )


def encode_ListedGroup(m: ListedGroup) -> bytes:
    p = pb.ListedGroup()
    fill_ListedGroup(m, p)
    return p.SerializeToString()


def decode_ListedGroup(data: Buffer) -> ListedGroup:
    return read_ListedGroup(parse(pb.ListedGroup, data))


def fill_FindCoordinatorRequest(m: FindCoordinatorRequest, p: pb.FindCoordinatorRequest) -> None:
    p.key_type = m.key_type
    p.keys.extend(m.keys)


def read_FindCoordinatorRequest(p: pb.FindCoordinatorRequest) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(
        key_type=p.key_type,
        keys=tuple(p.keys[:]),
    )


def encode_FindCoordinatorRequest(m: FindCoordinatorRequest) -> bytes:
    p = pb.FindCoordinatorRequest()
    fill_FindCoordinatorRequest(m, p)
    return p.SerializeToString()


def decode_FindCoordinatorRequest(data: Buffer) -> FindCoordinatorRequest:
    return read_FindCoordinatorRequest(parse(pb.FindCoordinatorRequest, data))


def fill_FindCoordinatorResponse(m: FindCoordinatorResponse, p: pb.FindCoordinatorResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_coordinators in m.coordinators:
        fill_Coordinator(x_coordinators, p.coordinators.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_FindCoordinatorResponse(p: pb.FindCoordinatorResponse) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        coordinators=tuple([read_Coordinator(x) for x in p.coordinators]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_FindCoordinatorResponse(m: FindCoordinatorResponse) -> bytes:
    p = pb.FindCoordinatorResponse()
    fill_FindCoordinatorResponse(m, p)
    return p.SerializeToString()


def decode_FindCoordinatorResponse(data: Buffer) -> FindCoordinatorResponse:
    return read_FindCoordinatorResponse(parse(pb.FindCoordinatorResponse, data))


def fill_Coordinator(m: Coordinator, p: pb.Coordinator) -> None:
    p.key = m.key
    p.node_id = m.node_id
    p.host = m.host
    p.port = m.port
    p.error_code = m.error_code
    p.error_message = m.error_message


def read_Coordinator(p: pb.Coordinator) -> Coordinator:
    return Coordinator(
        key=p.key,
        node_id=p.node_id,
        host=p.host,
        port=p.port,
        error_code=p.error_code,
        error_message=p.error_message,
    )


def encode_Coordinator(m: Coordinator) -> bytes:
    p = pb.Coordinator()
    fill_Coordinator(m, p)
    return p.SerializeToString()


def decode_Coordinator(data: Buffer) -> Coordinator:
    return read_Coordinator(parse(pb.Coordinator, data))
