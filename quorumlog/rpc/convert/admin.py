"""Converts between dataclasses and protobuf.

Written by `./dev proto` from proto/quorumlog/v1/admin.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.admin import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResult,
    AlterReplicaLogDir,
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    AlterReplicaLogDirTopicResult,
    BringLogDirOnlineRequest,
    BringLogDirOnlineResponse,
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
    DescribedFeature,
    DescribeFeaturesRequest,
    DescribeFeaturesResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    ExplainCompactionRequest,
    ExplainCompactionResponse,
    FeatureUpdate,
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
    NodeFeatures,
    PartitionCursor,
    PartitionDescription,
    PartitionsOfTopic,
    TopicPartitionsDescription,
    UpdateFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from quorumlog.messages.buffer import Buffer
from quorumlog.rpc.convert.common import fill_FeatureRange, read_FeatureRange
from quorumlog.rpc.convert.parsing import parse
from quorumlog.rpc.pb import admin_pb2 as pb


def fill_CreatePartitionsRequest(m: CreatePartitionsRequest, p: pb.CreatePartitionsRequest) -> None:
    for x_topics in m.topics:
        fill_PartitionsOfTopic(x_topics, p.topics.add())
    p.timeout_ms = m.timeout_ms
    p.validate_only = m.validate_only
    p.takes_throttling = m.takes_throttling


def read_CreatePartitionsRequest(p: pb.CreatePartitionsRequest) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=tuple([read_PartitionsOfTopic(x) for x in p.topics]),
        timeout_ms=p.timeout_ms,
        validate_only=p.validate_only,
        takes_throttling=p.takes_throttling,
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
    p.leader_recovery_state = m.leader_recovery_state


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
        leader_recovery_state=p.leader_recovery_state,
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
    p.error_message = m.error_message
    p.is_cordoned = m.is_cordoned


def read_LogDirDescription(p: pb.LogDirDescription) -> LogDirDescription:
    return LogDirDescription(
        error_code=p.error_code,
        path=p.path,
        directory_id=p.directory_id,
        topics=tuple([read_LogDirTopic(x) for x in p.topics]),
        total_bytes=p.total_bytes,
        usable_bytes=p.usable_bytes,
        error_message=p.error_message,
        is_cordoned=p.is_cordoned,
    )


def encode_LogDirDescription(m: LogDirDescription) -> bytes:
    p = pb.LogDirDescription()
    fill_LogDirDescription(m, p)
    return p.SerializeToString()


def decode_LogDirDescription(data: Buffer) -> LogDirDescription:
    return read_LogDirDescription(parse(pb.LogDirDescription, data))


def fill_AlterReplicaLogDirsRequest(m: AlterReplicaLogDirsRequest, p: pb.AlterReplicaLogDirsRequest) -> None:
    for x_dirs in m.dirs:
        fill_AlterReplicaLogDir(x_dirs, p.dirs.add())


def read_AlterReplicaLogDirsRequest(p: pb.AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsRequest:
    return AlterReplicaLogDirsRequest(
        dirs=tuple([read_AlterReplicaLogDir(x) for x in p.dirs]),
    )


def encode_AlterReplicaLogDirsRequest(m: AlterReplicaLogDirsRequest) -> bytes:
    p = pb.AlterReplicaLogDirsRequest()
    fill_AlterReplicaLogDirsRequest(m, p)
    return p.SerializeToString()


def decode_AlterReplicaLogDirsRequest(data: Buffer) -> AlterReplicaLogDirsRequest:
    return read_AlterReplicaLogDirsRequest(parse(pb.AlterReplicaLogDirsRequest, data))


def fill_AlterReplicaLogDir(m: AlterReplicaLogDir, p: pb.AlterReplicaLogDir) -> None:
    p.path = m.path
    for x_topics in m.topics:
        fill_AlterReplicaLogDirTopic(x_topics, p.topics.add())


def read_AlterReplicaLogDir(p: pb.AlterReplicaLogDir) -> AlterReplicaLogDir:
    return AlterReplicaLogDir(
        path=p.path,
        topics=tuple([read_AlterReplicaLogDirTopic(x) for x in p.topics]),
    )


def encode_AlterReplicaLogDir(m: AlterReplicaLogDir) -> bytes:
    p = pb.AlterReplicaLogDir()
    fill_AlterReplicaLogDir(m, p)
    return p.SerializeToString()


def decode_AlterReplicaLogDir(data: Buffer) -> AlterReplicaLogDir:
    return read_AlterReplicaLogDir(parse(pb.AlterReplicaLogDir, data))


def fill_AlterReplicaLogDirTopic(m: AlterReplicaLogDirTopic, p: pb.AlterReplicaLogDirTopic) -> None:
    p.name = m.name
    p.partitions.extend(m.partitions)


def read_AlterReplicaLogDirTopic(p: pb.AlterReplicaLogDirTopic) -> AlterReplicaLogDirTopic:
    return AlterReplicaLogDirTopic(
        name=p.name,
        partitions=tuple(p.partitions[:]),
    )


def encode_AlterReplicaLogDirTopic(m: AlterReplicaLogDirTopic) -> bytes:
    p = pb.AlterReplicaLogDirTopic()
    fill_AlterReplicaLogDirTopic(m, p)
    return p.SerializeToString()


def decode_AlterReplicaLogDirTopic(data: Buffer) -> AlterReplicaLogDirTopic:
    return read_AlterReplicaLogDirTopic(parse(pb.AlterReplicaLogDirTopic, data))


def fill_AlterReplicaLogDirsResponse(m: AlterReplicaLogDirsResponse, p: pb.AlterReplicaLogDirsResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_results in m.results:
        fill_AlterReplicaLogDirTopicResult(x_results, p.results.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_AlterReplicaLogDirsResponse(p: pb.AlterReplicaLogDirsResponse) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        results=tuple([read_AlterReplicaLogDirTopicResult(x) for x in p.results]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_AlterReplicaLogDirsResponse(m: AlterReplicaLogDirsResponse) -> bytes:
    p = pb.AlterReplicaLogDirsResponse()
    fill_AlterReplicaLogDirsResponse(m, p)
    return p.SerializeToString()


def decode_AlterReplicaLogDirsResponse(data: Buffer) -> AlterReplicaLogDirsResponse:
    return read_AlterReplicaLogDirsResponse(parse(pb.AlterReplicaLogDirsResponse, data))


def fill_AlterReplicaLogDirTopicResult(m: AlterReplicaLogDirTopicResult, p: pb.AlterReplicaLogDirTopicResult) -> None:
    p.name = m.name
    for x_partitions in m.partitions:
        fill_AlterReplicaLogDirPartitionResult(x_partitions, p.partitions.add())


def read_AlterReplicaLogDirTopicResult(p: pb.AlterReplicaLogDirTopicResult) -> AlterReplicaLogDirTopicResult:
    return AlterReplicaLogDirTopicResult(
        name=p.name,
        partitions=tuple([read_AlterReplicaLogDirPartitionResult(x) for x in p.partitions]),
    )


def encode_AlterReplicaLogDirTopicResult(m: AlterReplicaLogDirTopicResult) -> bytes:
    p = pb.AlterReplicaLogDirTopicResult()
    fill_AlterReplicaLogDirTopicResult(m, p)
    return p.SerializeToString()


def decode_AlterReplicaLogDirTopicResult(data: Buffer) -> AlterReplicaLogDirTopicResult:
    return read_AlterReplicaLogDirTopicResult(parse(pb.AlterReplicaLogDirTopicResult, data))


def fill_AlterReplicaLogDirPartitionResult(
    m: AlterReplicaLogDirPartitionResult, p: pb.AlterReplicaLogDirPartitionResult
) -> None:
    p.index = m.index
    p.error_code = m.error_code
    p.error_message = m.error_message


def read_AlterReplicaLogDirPartitionResult(
    p: pb.AlterReplicaLogDirPartitionResult,
) -> AlterReplicaLogDirPartitionResult:
    return AlterReplicaLogDirPartitionResult(
        index=p.index,
        error_code=p.error_code,
        error_message=p.error_message,
    )


def encode_AlterReplicaLogDirPartitionResult(m: AlterReplicaLogDirPartitionResult) -> bytes:
    p = pb.AlterReplicaLogDirPartitionResult()
    fill_AlterReplicaLogDirPartitionResult(m, p)
    return p.SerializeToString()


def decode_AlterReplicaLogDirPartitionResult(data: Buffer) -> AlterReplicaLogDirPartitionResult:
    return read_AlterReplicaLogDirPartitionResult(parse(pb.AlterReplicaLogDirPartitionResult, data))


def fill_BringLogDirOnlineRequest(m: BringLogDirOnlineRequest, p: pb.BringLogDirOnlineRequest) -> None:
    p.path = m.path


def read_BringLogDirOnlineRequest(p: pb.BringLogDirOnlineRequest) -> BringLogDirOnlineRequest:
    return BringLogDirOnlineRequest(
        path=p.path,
    )


def encode_BringLogDirOnlineRequest(m: BringLogDirOnlineRequest) -> bytes:
    p = pb.BringLogDirOnlineRequest()
    fill_BringLogDirOnlineRequest(m, p)
    return p.SerializeToString()


def decode_BringLogDirOnlineRequest(data: Buffer) -> BringLogDirOnlineRequest:
    return read_BringLogDirOnlineRequest(parse(pb.BringLogDirOnlineRequest, data))


def fill_BringLogDirOnlineResponse(m: BringLogDirOnlineResponse, p: pb.BringLogDirOnlineResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message


def read_BringLogDirOnlineResponse(p: pb.BringLogDirOnlineResponse) -> BringLogDirOnlineResponse:
    return BringLogDirOnlineResponse(
        error_code=p.error_code,
        error_message=p.error_message,
    )


def encode_BringLogDirOnlineResponse(m: BringLogDirOnlineResponse) -> bytes:
    p = pb.BringLogDirOnlineResponse()
    fill_BringLogDirOnlineResponse(m, p)
    return p.SerializeToString()


def decode_BringLogDirOnlineResponse(data: Buffer) -> BringLogDirOnlineResponse:
    return read_BringLogDirOnlineResponse(parse(pb.BringLogDirOnlineResponse, data))


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


def fill_UpdateFeaturesRequest(m: UpdateFeaturesRequest, p: pb.UpdateFeaturesRequest) -> None:
    for x_updates in m.updates:
        fill_FeatureUpdate(x_updates, p.updates.add())
    p.timeout_ms = m.timeout_ms
    p.validate_only = m.validate_only


def read_UpdateFeaturesRequest(p: pb.UpdateFeaturesRequest) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(
        updates=tuple([read_FeatureUpdate(x) for x in p.updates]),
        timeout_ms=p.timeout_ms,
        validate_only=p.validate_only,
    )


def encode_UpdateFeaturesRequest(m: UpdateFeaturesRequest) -> bytes:
    p = pb.UpdateFeaturesRequest()
    fill_UpdateFeaturesRequest(m, p)
    return p.SerializeToString()


def decode_UpdateFeaturesRequest(data: Buffer) -> UpdateFeaturesRequest:
    return read_UpdateFeaturesRequest(parse(pb.UpdateFeaturesRequest, data))


def fill_FeatureUpdate(m: FeatureUpdate, p: pb.FeatureUpdate) -> None:
    p.name = m.name
    p.level = m.level
    p.upgrade_type = m.upgrade_type


def read_FeatureUpdate(p: pb.FeatureUpdate) -> FeatureUpdate:
    return FeatureUpdate(
        name=p.name,
        level=p.level,
        upgrade_type=p.upgrade_type,
    )


def encode_FeatureUpdate(m: FeatureUpdate) -> bytes:
    p = pb.FeatureUpdate()
    fill_FeatureUpdate(m, p)
    return p.SerializeToString()


def decode_FeatureUpdate(data: Buffer) -> FeatureUpdate:
    return read_FeatureUpdate(parse(pb.FeatureUpdate, data))


def fill_UpdateFeaturesResponse(m: UpdateFeaturesResponse, p: pb.UpdateFeaturesResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_results in m.results:
        fill_UpdateFeatureResult(x_results, p.results.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_UpdateFeaturesResponse(p: pb.UpdateFeaturesResponse) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        results=tuple([read_UpdateFeatureResult(x) for x in p.results]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_UpdateFeaturesResponse(m: UpdateFeaturesResponse) -> bytes:
    p = pb.UpdateFeaturesResponse()
    fill_UpdateFeaturesResponse(m, p)
    return p.SerializeToString()


def decode_UpdateFeaturesResponse(data: Buffer) -> UpdateFeaturesResponse:
    return read_UpdateFeaturesResponse(parse(pb.UpdateFeaturesResponse, data))


def fill_UpdateFeatureResult(m: UpdateFeatureResult, p: pb.UpdateFeatureResult) -> None:
    p.name = m.name
    p.error_code = m.error_code
    p.error_message = m.error_message


def read_UpdateFeatureResult(p: pb.UpdateFeatureResult) -> UpdateFeatureResult:
    return UpdateFeatureResult(
        name=p.name,
        error_code=p.error_code,
        error_message=p.error_message,
    )


def encode_UpdateFeatureResult(m: UpdateFeatureResult) -> bytes:
    p = pb.UpdateFeatureResult()
    fill_UpdateFeatureResult(m, p)
    return p.SerializeToString()


def decode_UpdateFeatureResult(data: Buffer) -> UpdateFeatureResult:
    return read_UpdateFeatureResult(parse(pb.UpdateFeatureResult, data))


def fill_DescribeFeaturesRequest(m: DescribeFeaturesRequest, p: pb.DescribeFeaturesRequest) -> None:
    pass


def read_DescribeFeaturesRequest(p: pb.DescribeFeaturesRequest) -> DescribeFeaturesRequest:
    return DescribeFeaturesRequest()


def encode_DescribeFeaturesRequest(m: DescribeFeaturesRequest) -> bytes:
    p = pb.DescribeFeaturesRequest()
    fill_DescribeFeaturesRequest(m, p)
    return p.SerializeToString()


def decode_DescribeFeaturesRequest(data: Buffer) -> DescribeFeaturesRequest:
    return read_DescribeFeaturesRequest(parse(pb.DescribeFeaturesRequest, data))


def fill_DescribeFeaturesResponse(m: DescribeFeaturesResponse, p: pb.DescribeFeaturesResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_features in m.features:
        fill_DescribedFeature(x_features, p.features.add())
    p.epoch = m.epoch
    for x_brokers in m.brokers:
        fill_NodeFeatures(x_brokers, p.brokers.add())
    for x_controllers in m.controllers:
        fill_NodeFeatures(x_controllers, p.controllers.add())


def read_DescribeFeaturesResponse(p: pb.DescribeFeaturesResponse) -> DescribeFeaturesResponse:
    return DescribeFeaturesResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        features=tuple([read_DescribedFeature(x) for x in p.features]),
        epoch=p.epoch,
        brokers=tuple([read_NodeFeatures(x) for x in p.brokers]),
        controllers=tuple([read_NodeFeatures(x) for x in p.controllers]),
    )


def encode_DescribeFeaturesResponse(m: DescribeFeaturesResponse) -> bytes:
    p = pb.DescribeFeaturesResponse()
    fill_DescribeFeaturesResponse(m, p)
    return p.SerializeToString()


def decode_DescribeFeaturesResponse(data: Buffer) -> DescribeFeaturesResponse:
    return read_DescribeFeaturesResponse(parse(pb.DescribeFeaturesResponse, data))


def fill_DescribedFeature(m: DescribedFeature, p: pb.DescribedFeature) -> None:
    p.name = m.name
    p.min_level = m.min_level
    p.max_level = m.max_level
    p.finalized_level = m.finalized_level


def read_DescribedFeature(p: pb.DescribedFeature) -> DescribedFeature:
    return DescribedFeature(
        name=p.name,
        min_level=p.min_level,
        max_level=p.max_level,
        finalized_level=p.finalized_level,
    )


def encode_DescribedFeature(m: DescribedFeature) -> bytes:
    p = pb.DescribedFeature()
    fill_DescribedFeature(m, p)
    return p.SerializeToString()


def decode_DescribedFeature(data: Buffer) -> DescribedFeature:
    return read_DescribedFeature(parse(pb.DescribedFeature, data))


def fill_NodeFeatures(m: NodeFeatures, p: pb.NodeFeatures) -> None:
    p.node_id = m.node_id
    for x_features in m.features:
        fill_FeatureRange(x_features, p.features.add())


def read_NodeFeatures(p: pb.NodeFeatures) -> NodeFeatures:
    return NodeFeatures(
        node_id=p.node_id,
        features=tuple([read_FeatureRange(x) for x in p.features]),
    )


def encode_NodeFeatures(m: NodeFeatures) -> bytes:
    p = pb.NodeFeatures()
    fill_NodeFeatures(m, p)
    return p.SerializeToString()


def decode_NodeFeatures(data: Buffer) -> NodeFeatures:
    return read_NodeFeatures(parse(pb.NodeFeatures, data))


def fill_ExplainCompactionRequest(m: ExplainCompactionRequest, p: pb.ExplainCompactionRequest) -> None:
    p.topic = m.topic
    p.partition = m.partition


def read_ExplainCompactionRequest(p: pb.ExplainCompactionRequest) -> ExplainCompactionRequest:
    return ExplainCompactionRequest(
        topic=p.topic,
        partition=p.partition,
    )


def encode_ExplainCompactionRequest(m: ExplainCompactionRequest) -> bytes:
    p = pb.ExplainCompactionRequest()
    fill_ExplainCompactionRequest(m, p)
    return p.SerializeToString()


def decode_ExplainCompactionRequest(data: Buffer) -> ExplainCompactionRequest:
    return read_ExplainCompactionRequest(parse(pb.ExplainCompactionRequest, data))


def fill_ExplainCompactionResponse(m: ExplainCompactionResponse, p: pb.ExplainCompactionResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.state = m.state
    p.reason = m.reason
    p.first_dirty_offset = m.first_dirty_offset
    p.boundary_offset = m.boundary_offset
    p.clean_bytes = m.clean_bytes
    p.dirty_bytes = m.dirty_bytes
    p.blocked_bytes = m.blocked_bytes
    p.dirty_percent = m.dirty_percent
    p.failures = m.failures
    p.failure = m.failure
    p.retry_in_ms = m.retry_in_ms
    p.last_round_ms = m.last_round_ms
    p.last_bytes_before = m.last_bytes_before
    p.last_bytes_after = m.last_bytes_after


def read_ExplainCompactionResponse(p: pb.ExplainCompactionResponse) -> ExplainCompactionResponse:
    return ExplainCompactionResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        state=p.state,
        reason=p.reason,
        first_dirty_offset=p.first_dirty_offset,
        boundary_offset=p.boundary_offset,
        clean_bytes=p.clean_bytes,
        dirty_bytes=p.dirty_bytes,
        blocked_bytes=p.blocked_bytes,
        dirty_percent=p.dirty_percent,
        failures=p.failures,
        failure=p.failure,
        retry_in_ms=p.retry_in_ms,
        last_round_ms=p.last_round_ms,
        last_bytes_before=p.last_bytes_before,
        last_bytes_after=p.last_bytes_after,
    )


def encode_ExplainCompactionResponse(m: ExplainCompactionResponse) -> bytes:
    p = pb.ExplainCompactionResponse()
    fill_ExplainCompactionResponse(m, p)
    return p.SerializeToString()


def decode_ExplainCompactionResponse(data: Buffer) -> ExplainCompactionResponse:
    return read_ExplainCompactionResponse(parse(pb.ExplainCompactionResponse, data))
