"""Converts between dataclasses and protobuf.

Written by `./dev proto` from proto/quorumlog/v1/cluster.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.cluster import (
    BrokerMetadata,
    ClusterBroker,
    ConfigDescription,
    ConfigResource,
    ConfigSynonym,
    CreatableTopic,
    CreateTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfig,
    ImageHash,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    ReplicaAssignment,
    TopicMetadata,
    TopicQuery,
)
from quorumlog.rpc.convert.common import (
    fill_ConfigEntry,
    fill_Endpoint,
    fill_FeatureRange,
    read_ConfigEntry,
    read_Endpoint,
    read_FeatureRange,
)
from quorumlog.rpc.convert.parsing import parse
from quorumlog.rpc.pb import cluster_pb2 as pb


def fill_MetadataRequest(m: MetadataRequest, p: pb.MetadataRequest) -> None:
    p.all_topics = m.all_topics
    for x_topics in m.topics:
        fill_TopicQuery(x_topics, p.topics.add())
    p.allow_auto_topic_creation = m.allow_auto_topic_creation
    p.include_topic_authorized_operations = m.include_topic_authorized_operations
    p.include_cluster_authorized_operations = m.include_cluster_authorized_operations
    p.wants_metadata_offset = m.wants_metadata_offset


def read_MetadataRequest(p: pb.MetadataRequest) -> MetadataRequest:
    return MetadataRequest(
        all_topics=p.all_topics,
        topics=tuple([read_TopicQuery(x) for x in p.topics]),
        allow_auto_topic_creation=p.allow_auto_topic_creation,
        include_topic_authorized_operations=p.include_topic_authorized_operations,
        include_cluster_authorized_operations=p.include_cluster_authorized_operations,
        wants_metadata_offset=p.wants_metadata_offset,
    )


def encode_MetadataRequest(m: MetadataRequest) -> bytes:
    p = pb.MetadataRequest()
    fill_MetadataRequest(m, p)
    return p.SerializeToString()


def decode_MetadataRequest(data: Buffer) -> MetadataRequest:
    return read_MetadataRequest(parse(pb.MetadataRequest, data))


def fill_TopicQuery(m: TopicQuery, p: pb.TopicQuery) -> None:
    p.name = m.name
    p.topic_id = m.topic_id


def read_TopicQuery(p: pb.TopicQuery) -> TopicQuery:
    return TopicQuery(
        name=p.name,
        topic_id=p.topic_id,
    )


def encode_TopicQuery(m: TopicQuery) -> bytes:
    p = pb.TopicQuery()
    fill_TopicQuery(m, p)
    return p.SerializeToString()


def decode_TopicQuery(data: Buffer) -> TopicQuery:
    return read_TopicQuery(parse(pb.TopicQuery, data))


def fill_MetadataResponse(m: MetadataResponse, p: pb.MetadataResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_brokers in m.brokers:
        fill_BrokerMetadata(x_brokers, p.brokers.add())
    p.cluster_id = m.cluster_id
    p.controller_id = m.controller_id
    for x_topics in m.topics:
        fill_TopicMetadata(x_topics, p.topics.add())
    p.metadata_offset = m.metadata_offset
    p.throttle_time_ms = m.throttle_time_ms
    p.cluster_authorized_operations = m.cluster_authorized_operations


def read_MetadataResponse(p: pb.MetadataResponse) -> MetadataResponse:
    return MetadataResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        brokers=tuple([read_BrokerMetadata(x) for x in p.brokers]),
        cluster_id=p.cluster_id,
        controller_id=p.controller_id,
        topics=tuple([read_TopicMetadata(x) for x in p.topics]),
        metadata_offset=p.metadata_offset,
        throttle_time_ms=p.throttle_time_ms,
        cluster_authorized_operations=p.cluster_authorized_operations,
    )


def encode_MetadataResponse(m: MetadataResponse) -> bytes:
    p = pb.MetadataResponse()
    fill_MetadataResponse(m, p)
    return p.SerializeToString()


def decode_MetadataResponse(data: Buffer) -> MetadataResponse:
    return read_MetadataResponse(parse(pb.MetadataResponse, data))


def fill_BrokerMetadata(m: BrokerMetadata, p: pb.BrokerMetadata) -> None:
    p.node_id = m.node_id
    p.host = m.host
    p.port = m.port
    if m.rack is not None:
        p.rack = m.rack
    for x_endpoints in m.endpoints:
        fill_Endpoint(x_endpoints, p.endpoints.add())


def read_BrokerMetadata(p: pb.BrokerMetadata) -> BrokerMetadata:
    return BrokerMetadata(
        node_id=p.node_id,
        host=p.host,
        port=p.port,
        rack=p.rack if p.HasField("rack") else None,
        endpoints=tuple([read_Endpoint(x) for x in p.endpoints]),
    )


def encode_BrokerMetadata(m: BrokerMetadata) -> bytes:
    p = pb.BrokerMetadata()
    fill_BrokerMetadata(m, p)
    return p.SerializeToString()


def decode_BrokerMetadata(data: Buffer) -> BrokerMetadata:
    return read_BrokerMetadata(parse(pb.BrokerMetadata, data))


def fill_TopicMetadata(m: TopicMetadata, p: pb.TopicMetadata) -> None:
    p.error_code = m.error_code
    p.name = m.name
    p.topic_id = m.topic_id
    p.is_internal = m.is_internal
    for x_partitions in m.partitions:
        fill_PartitionMetadata(x_partitions, p.partitions.add())
    p.error_message = m.error_message
    p.authorized_operations = m.authorized_operations


def read_TopicMetadata(p: pb.TopicMetadata) -> TopicMetadata:
    return TopicMetadata(
        error_code=p.error_code,
        name=p.name,
        topic_id=p.topic_id,
        is_internal=p.is_internal,
        partitions=tuple([read_PartitionMetadata(x) for x in p.partitions]),
        error_message=p.error_message,
        authorized_operations=p.authorized_operations,
    )


def encode_TopicMetadata(m: TopicMetadata) -> bytes:
    p = pb.TopicMetadata()
    fill_TopicMetadata(m, p)
    return p.SerializeToString()


def decode_TopicMetadata(data: Buffer) -> TopicMetadata:
    return read_TopicMetadata(parse(pb.TopicMetadata, data))


def fill_PartitionMetadata(m: PartitionMetadata, p: pb.PartitionMetadata) -> None:
    p.error_code = m.error_code
    p.index = m.index
    p.leader_id = m.leader_id
    p.leader_epoch = m.leader_epoch
    p.replicas.extend(m.replicas)
    p.isr.extend(m.isr)
    p.offline_replicas.extend(m.offline_replicas)
    p.eligible_leader_replicas.extend(m.eligible_leader_replicas)
    p.last_known_elr.extend(m.last_known_elr)
    p.leader_recovery_state = m.leader_recovery_state


def read_PartitionMetadata(p: pb.PartitionMetadata) -> PartitionMetadata:
    return PartitionMetadata(
        error_code=p.error_code,
        index=p.index,
        leader_id=p.leader_id,
        leader_epoch=p.leader_epoch,
        replicas=tuple(p.replicas[:]),
        isr=tuple(p.isr[:]),
        offline_replicas=tuple(p.offline_replicas[:]),
        eligible_leader_replicas=tuple(p.eligible_leader_replicas[:]),
        last_known_elr=tuple(p.last_known_elr[:]),
        leader_recovery_state=p.leader_recovery_state,
    )


def encode_PartitionMetadata(m: PartitionMetadata) -> bytes:
    p = pb.PartitionMetadata()
    fill_PartitionMetadata(m, p)
    return p.SerializeToString()


def decode_PartitionMetadata(data: Buffer) -> PartitionMetadata:
    return read_PartitionMetadata(parse(pb.PartitionMetadata, data))


def fill_DescribeClusterRequest(m: DescribeClusterRequest, p: pb.DescribeClusterRequest) -> None:
    p.include_fenced_brokers = m.include_fenced_brokers
    p.endpoint_type = m.endpoint_type
    p.include_cluster_authorized_operations = m.include_cluster_authorized_operations
    p.max_recent_images = m.max_recent_images
    p.include_partition_counts = m.include_partition_counts


def read_DescribeClusterRequest(p: pb.DescribeClusterRequest) -> DescribeClusterRequest:
    return DescribeClusterRequest(
        include_fenced_brokers=p.include_fenced_brokers,
        endpoint_type=p.endpoint_type,
        include_cluster_authorized_operations=p.include_cluster_authorized_operations,
        max_recent_images=p.max_recent_images,
        include_partition_counts=p.include_partition_counts,
    )


def encode_DescribeClusterRequest(m: DescribeClusterRequest) -> bytes:
    p = pb.DescribeClusterRequest()
    fill_DescribeClusterRequest(m, p)
    return p.SerializeToString()


def decode_DescribeClusterRequest(data: Buffer) -> DescribeClusterRequest:
    return read_DescribeClusterRequest(parse(pb.DescribeClusterRequest, data))


def fill_ImageHash(m: ImageHash, p: pb.ImageHash) -> None:
    p.offset = m.offset
    p.state_hash = m.state_hash


def read_ImageHash(p: pb.ImageHash) -> ImageHash:
    return ImageHash(
        offset=p.offset,
        state_hash=p.state_hash,
    )


def encode_ImageHash(m: ImageHash) -> bytes:
    p = pb.ImageHash()
    fill_ImageHash(m, p)
    return p.SerializeToString()


def decode_ImageHash(data: Buffer) -> ImageHash:
    return read_ImageHash(parse(pb.ImageHash, data))


def fill_DescribeClusterResponse(m: DescribeClusterResponse, p: pb.DescribeClusterResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.cluster_id = m.cluster_id
    p.controller_id = m.controller_id
    for x_brokers in m.brokers:
        fill_ClusterBroker(x_brokers, p.brokers.add())
    p.metadata_offset = m.metadata_offset
    p.state_hash = m.state_hash
    p.endpoint_type = m.endpoint_type
    p.cluster_authorized_operations = m.cluster_authorized_operations
    p.throttle_time_ms = m.throttle_time_ms
    for x_recent_images in m.recent_images:
        fill_ImageHash(x_recent_images, p.recent_images.add())


def read_DescribeClusterResponse(p: pb.DescribeClusterResponse) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        cluster_id=p.cluster_id,
        controller_id=p.controller_id,
        brokers=tuple([read_ClusterBroker(x) for x in p.brokers]),
        metadata_offset=p.metadata_offset,
        state_hash=p.state_hash,
        endpoint_type=p.endpoint_type,
        cluster_authorized_operations=p.cluster_authorized_operations,
        throttle_time_ms=p.throttle_time_ms,
        recent_images=tuple([read_ImageHash(x) for x in p.recent_images]),
    )


def encode_DescribeClusterResponse(m: DescribeClusterResponse) -> bytes:
    p = pb.DescribeClusterResponse()
    fill_DescribeClusterResponse(m, p)
    return p.SerializeToString()


def decode_DescribeClusterResponse(data: Buffer) -> DescribeClusterResponse:
    return read_DescribeClusterResponse(parse(pb.DescribeClusterResponse, data))


def fill_ClusterBroker(m: ClusterBroker, p: pb.ClusterBroker) -> None:
    p.node_id = m.node_id
    p.host = m.host
    p.port = m.port
    if m.rack is not None:
        p.rack = m.rack
    p.fenced = m.fenced
    p.broker_epoch = m.broker_epoch
    for x_endpoints in m.endpoints:
        fill_Endpoint(x_endpoints, p.endpoints.add())
    p.in_controlled_shutdown = m.in_controlled_shutdown
    p.log_directories.extend(m.log_directories)
    for x_features in m.features:
        fill_FeatureRange(x_features, p.features.add())
    p.leaders = m.leaders
    p.replicas = m.replicas
    p.cordoned_directories.extend(m.cordoned_directories)


def read_ClusterBroker(p: pb.ClusterBroker) -> ClusterBroker:
    return ClusterBroker(
        node_id=p.node_id,
        host=p.host,
        port=p.port,
        rack=p.rack if p.HasField("rack") else None,
        fenced=p.fenced,
        broker_epoch=p.broker_epoch,
        endpoints=tuple([read_Endpoint(x) for x in p.endpoints]),
        in_controlled_shutdown=p.in_controlled_shutdown,
        log_directories=tuple(p.log_directories[:]),
        features=tuple([read_FeatureRange(x) for x in p.features]),
        leaders=p.leaders,
        replicas=p.replicas,
        cordoned_directories=tuple(p.cordoned_directories[:]),
    )


def encode_ClusterBroker(m: ClusterBroker) -> bytes:
    p = pb.ClusterBroker()
    fill_ClusterBroker(m, p)
    return p.SerializeToString()


def decode_ClusterBroker(data: Buffer) -> ClusterBroker:
    return read_ClusterBroker(parse(pb.ClusterBroker, data))


def fill_CreateTopicsRequest(m: CreateTopicsRequest, p: pb.CreateTopicsRequest) -> None:
    for x_topics in m.topics:
        fill_CreatableTopic(x_topics, p.topics.add())
    p.timeout_ms = m.timeout_ms
    p.validate_only = m.validate_only
    p.takes_throttling = m.takes_throttling


def read_CreateTopicsRequest(p: pb.CreateTopicsRequest) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=tuple([read_CreatableTopic(x) for x in p.topics]),
        timeout_ms=p.timeout_ms,
        validate_only=p.validate_only,
        takes_throttling=p.takes_throttling,
    )


def encode_CreateTopicsRequest(m: CreateTopicsRequest) -> bytes:
    p = pb.CreateTopicsRequest()
    fill_CreateTopicsRequest(m, p)
    return p.SerializeToString()


def decode_CreateTopicsRequest(data: Buffer) -> CreateTopicsRequest:
    return read_CreateTopicsRequest(parse(pb.CreateTopicsRequest, data))


def fill_CreatableTopic(m: CreatableTopic, p: pb.CreatableTopic) -> None:
    p.name = m.name
    p.num_partitions = m.num_partitions
    p.replication_factor = m.replication_factor
    for x_assignments in m.assignments:
        fill_ReplicaAssignment(x_assignments, p.assignments.add())
    for x_configs in m.configs:
        fill_ConfigEntry(x_configs, p.configs.add())


def read_CreatableTopic(p: pb.CreatableTopic) -> CreatableTopic:
    return CreatableTopic(
        name=p.name,
        num_partitions=p.num_partitions,
        replication_factor=p.replication_factor,
        assignments=tuple([read_ReplicaAssignment(x) for x in p.assignments]),
        configs=tuple([read_ConfigEntry(x) for x in p.configs]),
    )


def encode_CreatableTopic(m: CreatableTopic) -> bytes:
    p = pb.CreatableTopic()
    fill_CreatableTopic(m, p)
    return p.SerializeToString()


def decode_CreatableTopic(data: Buffer) -> CreatableTopic:
    return read_CreatableTopic(parse(pb.CreatableTopic, data))


def fill_ReplicaAssignment(m: ReplicaAssignment, p: pb.ReplicaAssignment) -> None:
    p.partition = m.partition
    p.broker_ids.extend(m.broker_ids)


def read_ReplicaAssignment(p: pb.ReplicaAssignment) -> ReplicaAssignment:
    return ReplicaAssignment(
        partition=p.partition,
        broker_ids=tuple(p.broker_ids[:]),
    )


def encode_ReplicaAssignment(m: ReplicaAssignment) -> bytes:
    p = pb.ReplicaAssignment()
    fill_ReplicaAssignment(m, p)
    return p.SerializeToString()


def decode_ReplicaAssignment(data: Buffer) -> ReplicaAssignment:
    return read_ReplicaAssignment(parse(pb.ReplicaAssignment, data))


def fill_CreateTopicsResponse(m: CreateTopicsResponse, p: pb.CreateTopicsResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_topics in m.topics:
        fill_CreateTopicResult(x_topics, p.topics.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_CreateTopicsResponse(p: pb.CreateTopicsResponse) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        topics=tuple([read_CreateTopicResult(x) for x in p.topics]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_CreateTopicsResponse(m: CreateTopicsResponse) -> bytes:
    p = pb.CreateTopicsResponse()
    fill_CreateTopicsResponse(m, p)
    return p.SerializeToString()


def decode_CreateTopicsResponse(data: Buffer) -> CreateTopicsResponse:
    return read_CreateTopicsResponse(parse(pb.CreateTopicsResponse, data))


def fill_CreateTopicResult(m: CreateTopicResult, p: pb.CreateTopicResult) -> None:
    p.name = m.name
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.topic_id = m.topic_id
    p.num_partitions = m.num_partitions
    p.replication_factor = m.replication_factor
    for x_configs in m.configs:
        fill_DescribedConfig(x_configs, p.configs.add())


def read_CreateTopicResult(p: pb.CreateTopicResult) -> CreateTopicResult:
    return CreateTopicResult(
        name=p.name,
        error_code=p.error_code,
        error_message=p.error_message,
        topic_id=p.topic_id,
        num_partitions=p.num_partitions,
        replication_factor=p.replication_factor,
        configs=tuple([read_DescribedConfig(x) for x in p.configs]),
    )


def encode_CreateTopicResult(m: CreateTopicResult) -> bytes:
    p = pb.CreateTopicResult()
    fill_CreateTopicResult(m, p)
    return p.SerializeToString()


def decode_CreateTopicResult(data: Buffer) -> CreateTopicResult:
    return read_CreateTopicResult(parse(pb.CreateTopicResult, data))


def fill_DeleteTopicsRequest(m: DeleteTopicsRequest, p: pb.DeleteTopicsRequest) -> None:
    for x_topics in m.topics:
        fill_TopicQuery(x_topics, p.topics.add())
    p.timeout_ms = m.timeout_ms
    p.takes_throttling = m.takes_throttling


def read_DeleteTopicsRequest(p: pb.DeleteTopicsRequest) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(
        topics=tuple([read_TopicQuery(x) for x in p.topics]),
        timeout_ms=p.timeout_ms,
        takes_throttling=p.takes_throttling,
    )


def encode_DeleteTopicsRequest(m: DeleteTopicsRequest) -> bytes:
    p = pb.DeleteTopicsRequest()
    fill_DeleteTopicsRequest(m, p)
    return p.SerializeToString()


def decode_DeleteTopicsRequest(data: Buffer) -> DeleteTopicsRequest:
    return read_DeleteTopicsRequest(parse(pb.DeleteTopicsRequest, data))


def fill_DeleteTopicsResponse(m: DeleteTopicsResponse, p: pb.DeleteTopicsResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_topics in m.topics:
        fill_DeleteTopicResult(x_topics, p.topics.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_DeleteTopicsResponse(p: pb.DeleteTopicsResponse) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        topics=tuple([read_DeleteTopicResult(x) for x in p.topics]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_DeleteTopicsResponse(m: DeleteTopicsResponse) -> bytes:
    p = pb.DeleteTopicsResponse()
    fill_DeleteTopicsResponse(m, p)
    return p.SerializeToString()


def decode_DeleteTopicsResponse(data: Buffer) -> DeleteTopicsResponse:
    return read_DeleteTopicsResponse(parse(pb.DeleteTopicsResponse, data))


def fill_DeleteTopicResult(m: DeleteTopicResult, p: pb.DeleteTopicResult) -> None:
    p.name = m.name
    p.topic_id = m.topic_id
    p.error_code = m.error_code
    p.error_message = m.error_message


def read_DeleteTopicResult(p: pb.DeleteTopicResult) -> DeleteTopicResult:
    return DeleteTopicResult(
        name=p.name,
        topic_id=p.topic_id,
        error_code=p.error_code,
        error_message=p.error_message,
    )


def encode_DeleteTopicResult(m: DeleteTopicResult) -> bytes:
    p = pb.DeleteTopicResult()
    fill_DeleteTopicResult(m, p)
    return p.SerializeToString()


def decode_DeleteTopicResult(data: Buffer) -> DeleteTopicResult:
    return read_DeleteTopicResult(parse(pb.DeleteTopicResult, data))


def fill_DescribeConfigsRequest(m: DescribeConfigsRequest, p: pb.DescribeConfigsRequest) -> None:
    for x_resources in m.resources:
        fill_ConfigResource(x_resources, p.resources.add())
    p.include_synonyms = m.include_synonyms
    p.include_documentation = m.include_documentation


def read_DescribeConfigsRequest(p: pb.DescribeConfigsRequest) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=tuple([read_ConfigResource(x) for x in p.resources]),
        include_synonyms=p.include_synonyms,
        include_documentation=p.include_documentation,
    )


def encode_DescribeConfigsRequest(m: DescribeConfigsRequest) -> bytes:
    p = pb.DescribeConfigsRequest()
    fill_DescribeConfigsRequest(m, p)
    return p.SerializeToString()


def decode_DescribeConfigsRequest(data: Buffer) -> DescribeConfigsRequest:
    return read_DescribeConfigsRequest(parse(pb.DescribeConfigsRequest, data))


def fill_ConfigResource(m: ConfigResource, p: pb.ConfigResource) -> None:
    p.resource_type = m.resource_type
    p.resource_name = m.resource_name
    p.names.extend(m.names)


def read_ConfigResource(p: pb.ConfigResource) -> ConfigResource:
    return ConfigResource(
        resource_type=p.resource_type,
        resource_name=p.resource_name,
        names=tuple(p.names[:]),
    )


def encode_ConfigResource(m: ConfigResource) -> bytes:
    p = pb.ConfigResource()
    fill_ConfigResource(m, p)
    return p.SerializeToString()


def decode_ConfigResource(data: Buffer) -> ConfigResource:
    return read_ConfigResource(parse(pb.ConfigResource, data))


def fill_DescribeConfigsResponse(m: DescribeConfigsResponse, p: pb.DescribeConfigsResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_results in m.results:
        fill_ConfigDescription(x_results, p.results.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_DescribeConfigsResponse(p: pb.DescribeConfigsResponse) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        results=tuple([read_ConfigDescription(x) for x in p.results]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_DescribeConfigsResponse(m: DescribeConfigsResponse) -> bytes:
    p = pb.DescribeConfigsResponse()
    fill_DescribeConfigsResponse(m, p)
    return p.SerializeToString()


def decode_DescribeConfigsResponse(data: Buffer) -> DescribeConfigsResponse:
    return read_DescribeConfigsResponse(parse(pb.DescribeConfigsResponse, data))


def fill_ConfigDescription(m: ConfigDescription, p: pb.ConfigDescription) -> None:
    p.resource_type = m.resource_type
    p.resource_name = m.resource_name
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_configs in m.configs:
        fill_DescribedConfig(x_configs, p.configs.add())


def read_ConfigDescription(p: pb.ConfigDescription) -> ConfigDescription:
    return ConfigDescription(
        resource_type=p.resource_type,
        resource_name=p.resource_name,
        error_code=p.error_code,
        error_message=p.error_message,
        configs=tuple([read_DescribedConfig(x) for x in p.configs]),
    )


def encode_ConfigDescription(m: ConfigDescription) -> bytes:
    p = pb.ConfigDescription()
    fill_ConfigDescription(m, p)
    return p.SerializeToString()


def decode_ConfigDescription(data: Buffer) -> ConfigDescription:
    return read_ConfigDescription(parse(pb.ConfigDescription, data))


def fill_DescribedConfig(m: DescribedConfig, p: pb.DescribedConfig) -> None:
    p.name = m.name
    if m.value is not None:
        p.value = m.value
    p.source = m.source
    p.read_only = m.read_only
    p.documentation = m.documentation
    p.is_sensitive = m.is_sensitive
    p.config_type = m.config_type
    for x_synonyms in m.synonyms:
        fill_ConfigSynonym(x_synonyms, p.synonyms.add())


def read_DescribedConfig(p: pb.DescribedConfig) -> DescribedConfig:
    return DescribedConfig(
        name=p.name,
        value=p.value if p.HasField("value") else None,
        source=p.source,
        read_only=p.read_only,
        documentation=p.documentation,
        is_sensitive=p.is_sensitive,
        config_type=p.config_type,
        synonyms=tuple([read_ConfigSynonym(x) for x in p.synonyms]),
    )


def encode_DescribedConfig(m: DescribedConfig) -> bytes:
    p = pb.DescribedConfig()
    fill_DescribedConfig(m, p)
    return p.SerializeToString()


def decode_DescribedConfig(data: Buffer) -> DescribedConfig:
    return read_DescribedConfig(parse(pb.DescribedConfig, data))


def fill_ConfigSynonym(m: ConfigSynonym, p: pb.ConfigSynonym) -> None:
    p.name = m.name
    if m.value is not None:
        p.value = m.value
    p.source = m.source


def read_ConfigSynonym(p: pb.ConfigSynonym) -> ConfigSynonym:
    return ConfigSynonym(
        name=p.name,
        value=p.value if p.HasField("value") else None,
        source=p.source,
    )


def encode_ConfigSynonym(m: ConfigSynonym) -> bytes:
    p = pb.ConfigSynonym()
    fill_ConfigSynonym(m, p)
    return p.SerializeToString()


def decode_ConfigSynonym(data: Buffer) -> ConfigSynonym:
    return read_ConfigSynonym(parse(pb.ConfigSynonym, data))
