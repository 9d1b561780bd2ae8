"""Encoders and decoders of every method's messages.

Written by `./dev proto` from proto/quorumlog/v1; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.admin import (
    CreatePartitionsRequest,
    DeleteRecordsRequest,
    DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
)
from quorumlog.messages.cluster import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    MetadataRequest,
)
from quorumlog.messages.controller import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirectoriesRequest,
    BrokerHeartbeatRequest,
    ProbeRequest,
    RegisterBrokerRequest,
)
from quorumlog.messages.fetch import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from quorumlog.messages.produce import InitProducerIdRequest, ProduceRequest
from quorumlog.messages.quorum import (
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    QuorumFetchRequest,
    VoteRequest,
)
from quorumlog.rpc.convert.admin import (
    decode_CreatePartitionsRequest,
    decode_CreatePartitionsResponse,
    decode_DeleteRecordsRequest,
    decode_DeleteRecordsResponse,
    decode_DescribeLogDirsRequest,
    decode_DescribeLogDirsResponse,
    decode_DescribeTopicPartitionsRequest,
    decode_DescribeTopicPartitionsResponse,
    decode_FindCoordinatorRequest,
    decode_FindCoordinatorResponse,
    decode_IncrementalAlterConfigsRequest,
    decode_IncrementalAlterConfigsResponse,
    decode_ListGroupsRequest,
    decode_ListGroupsResponse,
    encode_CreatePartitionsRequest,
    encode_CreatePartitionsResponse,
    encode_DeleteRecordsRequest,
    encode_DeleteRecordsResponse,
    encode_DescribeLogDirsRequest,
    encode_DescribeLogDirsResponse,
    encode_DescribeTopicPartitionsRequest,
    encode_DescribeTopicPartitionsResponse,
    encode_FindCoordinatorRequest,
    encode_FindCoordinatorResponse,
    encode_IncrementalAlterConfigsRequest,
    encode_IncrementalAlterConfigsResponse,
    encode_ListGroupsRequest,
    encode_ListGroupsResponse,
)
from quorumlog.rpc.convert.cluster import (
    decode_CreateTopicsRequest,
    decode_CreateTopicsResponse,
    decode_DeleteTopicsRequest,
    decode_DeleteTopicsResponse,
    decode_DescribeClusterRequest,
    decode_DescribeClusterResponse,
    decode_DescribeConfigsRequest,
    decode_DescribeConfigsResponse,
    decode_MetadataRequest,
    decode_MetadataResponse,
    encode_CreateTopicsRequest,
    encode_CreateTopicsResponse,
    encode_DeleteTopicsRequest,
    encode_DeleteTopicsResponse,
    encode_DescribeClusterRequest,
    encode_DescribeClusterResponse,
    encode_DescribeConfigsRequest,
    encode_DescribeConfigsResponse,
    encode_MetadataRequest,
    encode_MetadataResponse,
)
from quorumlog.rpc.convert.codec import Codec
from quorumlog.rpc.convert.controller import (
    decode_AllocateProducerIdsRequest,
    decode_AllocateProducerIdsResponse,
    decode_AlterPartitionRequest,
    decode_AlterPartitionResponse,
    decode_AssignReplicasToDirectoriesRequest,
    decode_AssignReplicasToDirectoriesResponse,
    decode_BrokerHeartbeatRequest,
    decode_BrokerHeartbeatResponse,
    decode_ProbeRequest,
    decode_ProbeResponse,
    decode_RegisterBrokerRequest,
    decode_RegisterBrokerResponse,
    encode_AllocateProducerIdsRequest,
    encode_AllocateProducerIdsResponse,
    encode_AlterPartitionRequest,
    encode_AlterPartitionResponse,
    encode_AssignReplicasToDirectoriesRequest,
    encode_AssignReplicasToDirectoriesResponse,
    encode_BrokerHeartbeatRequest,
    encode_BrokerHeartbeatResponse,
    encode_ProbeRequest,
    encode_ProbeResponse,
    encode_RegisterBrokerRequest,
    encode_RegisterBrokerResponse,
)
from quorumlog.rpc.convert.fetch import (
    decode_FetchRequest,
    decode_FetchResponse,
    decode_ListOffsetsRequest,
    decode_ListOffsetsResponse,
    decode_OffsetForLeaderEpochRequest,
    decode_OffsetForLeaderEpochResponse,
    encode_FetchRequest,
    encode_FetchResponse,
    encode_ListOffsetsRequest,
    encode_ListOffsetsResponse,
    encode_OffsetForLeaderEpochRequest,
    encode_OffsetForLeaderEpochResponse,
)
from quorumlog.rpc.convert.produce import (
    decode_InitProducerIdRequest,
    decode_InitProducerIdResponse,
    decode_ProduceRequest,
    decode_ProduceResponse,
    encode_InitProducerIdRequest,
    encode_InitProducerIdResponse,
    encode_ProduceRequest,
    encode_ProduceResponse,
)
from quorumlog.rpc.convert.quorum import (
    decode_BeginQuorumEpochRequest,
    decode_BeginQuorumEpochResponse,
    decode_DescribeQuorumRequest,
    decode_DescribeQuorumResponse,
    decode_EndQuorumEpochRequest,
    decode_EndQuorumEpochResponse,
    decode_QuorumFetchRequest,
    decode_QuorumFetchResponse,
    decode_VoteRequest,
    decode_VoteResponse,
    encode_BeginQuorumEpochRequest,
    encode_BeginQuorumEpochResponse,
    encode_DescribeQuorumRequest,
    encode_DescribeQuorumResponse,
    encode_EndQuorumEpochRequest,
    encode_EndQuorumEpochResponse,
    encode_QuorumFetchRequest,
    encode_QuorumFetchResponse,
    encode_VoteRequest,
    encode_VoteResponse,
)

CODECS: dict[type, Codec] = {
    ProduceRequest: Codec(encode_ProduceRequest, decode_ProduceRequest, encode_ProduceResponse, decode_ProduceResponse),
    FetchRequest: Codec(encode_FetchRequest, decode_FetchRequest, encode_FetchResponse, decode_FetchResponse),
    ListOffsetsRequest: Codec(
        encode_ListOffsetsRequest, decode_ListOffsetsRequest, encode_ListOffsetsResponse, decode_ListOffsetsResponse
    ),
    MetadataRequest: Codec(
        encode_MetadataRequest, decode_MetadataRequest, encode_MetadataResponse, decode_MetadataResponse
    ),
    DescribeClusterRequest: Codec(
        encode_DescribeClusterRequest,
        decode_DescribeClusterRequest,
        encode_DescribeClusterResponse,
        decode_DescribeClusterResponse,
    ),
    CreateTopicsRequest: Codec(
        encode_CreateTopicsRequest, decode_CreateTopicsRequest, encode_CreateTopicsResponse, decode_CreateTopicsResponse
    ),
    DeleteTopicsRequest: Codec(
        encode_DeleteTopicsRequest, decode_DeleteTopicsRequest, encode_DeleteTopicsResponse, decode_DeleteTopicsResponse
    ),
    DescribeConfigsRequest: Codec(
        encode_DescribeConfigsRequest,
        decode_DescribeConfigsRequest,
        encode_DescribeConfigsResponse,
        decode_DescribeConfigsResponse,
    ),
    DescribeQuorumRequest: Codec(
        encode_DescribeQuorumRequest,
        decode_DescribeQuorumRequest,
        encode_DescribeQuorumResponse,
        decode_DescribeQuorumResponse,
    ),
    InitProducerIdRequest: Codec(
        encode_InitProducerIdRequest,
        decode_InitProducerIdRequest,
        encode_InitProducerIdResponse,
        decode_InitProducerIdResponse,
    ),
    OffsetForLeaderEpochRequest: Codec(
        encode_OffsetForLeaderEpochRequest,
        decode_OffsetForLeaderEpochRequest,
        encode_OffsetForLeaderEpochResponse,
        decode_OffsetForLeaderEpochResponse,
    ),
    CreatePartitionsRequest: Codec(
        encode_CreatePartitionsRequest,
        decode_CreatePartitionsRequest,
        encode_CreatePartitionsResponse,
        decode_CreatePartitionsResponse,
    ),
    IncrementalAlterConfigsRequest: Codec(
        encode_IncrementalAlterConfigsRequest,
        decode_IncrementalAlterConfigsRequest,
        encode_IncrementalAlterConfigsResponse,
        decode_IncrementalAlterConfigsResponse,
    ),
    DescribeTopicPartitionsRequest: Codec(
        encode_DescribeTopicPartitionsRequest,
        decode_DescribeTopicPartitionsRequest,
        encode_DescribeTopicPartitionsResponse,
        decode_DescribeTopicPartitionsResponse,
    ),
    DeleteRecordsRequest: Codec(
        encode_DeleteRecordsRequest,
        decode_DeleteRecordsRequest,
        encode_DeleteRecordsResponse,
        decode_DeleteRecordsResponse,
    ),
    DescribeLogDirsRequest: Codec(
        encode_DescribeLogDirsRequest,
        decode_DescribeLogDirsRequest,
        encode_DescribeLogDirsResponse,
        decode_DescribeLogDirsResponse,
    ),
    ListGroupsRequest: Codec(
        encode_ListGroupsRequest, decode_ListGroupsRequest, encode_ListGroupsResponse, decode_ListGroupsResponse
    ),
    FindCoordinatorRequest: Codec(
        encode_FindCoordinatorRequest,
        decode_FindCoordinatorRequest,
        encode_FindCoordinatorResponse,
        decode_FindCoordinatorResponse,
    ),
    VoteRequest: Codec(encode_VoteRequest, decode_VoteRequest, encode_VoteResponse, decode_VoteResponse),
    BeginQuorumEpochRequest: Codec(
        encode_BeginQuorumEpochRequest,
        decode_BeginQuorumEpochRequest,
        encode_BeginQuorumEpochResponse,
        decode_BeginQuorumEpochResponse,
    ),
    EndQuorumEpochRequest: Codec(
        encode_EndQuorumEpochRequest,
        decode_EndQuorumEpochRequest,
        encode_EndQuorumEpochResponse,
        decode_EndQuorumEpochResponse,
    ),
    QuorumFetchRequest: Codec(
        encode_QuorumFetchRequest, decode_QuorumFetchRequest, encode_QuorumFetchResponse, decode_QuorumFetchResponse
    ),
    ProbeRequest: Codec(encode_ProbeRequest, decode_ProbeRequest, encode_ProbeResponse, decode_ProbeResponse),
    RegisterBrokerRequest: Codec(
        encode_RegisterBrokerRequest,
        decode_RegisterBrokerRequest,
        encode_RegisterBrokerResponse,
        decode_RegisterBrokerResponse,
    ),
    BrokerHeartbeatRequest: Codec(
        encode_BrokerHeartbeatRequest,
        decode_BrokerHeartbeatRequest,
        encode_BrokerHeartbeatResponse,
        decode_BrokerHeartbeatResponse,
    ),
    AlterPartitionRequest: Codec(
        encode_AlterPartitionRequest,
        decode_AlterPartitionRequest,
        encode_AlterPartitionResponse,
        decode_AlterPartitionResponse,
    ),
    AssignReplicasToDirectoriesRequest: Codec(
        encode_AssignReplicasToDirectoriesRequest,
        decode_AssignReplicasToDirectoriesRequest,
        encode_AssignReplicasToDirectoriesResponse,
        decode_AssignReplicasToDirectoriesResponse,
    ),
    AllocateProducerIdsRequest: Codec(
        encode_AllocateProducerIdsRequest,
        decode_AllocateProducerIdsRequest,
        encode_AllocateProducerIdsResponse,
        decode_AllocateProducerIdsResponse,
    ),
}
