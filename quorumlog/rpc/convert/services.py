"""How the messages of every method become bytes.

Written by `./dev proto` from proto/quorumlog/v1; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.cluster import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    MetadataRequest,
)
from quorumlog.messages.controller import (
    AlterPartitionRequest,
    AssignReplicasToDirectoriesRequest,
    BrokerHeartbeatRequest,
    ProbeRequest,
    RegisterBrokerRequest,
)
from quorumlog.messages.fetch import FetchRequest, ListOffsetsRequest
from quorumlog.messages.produce import ProduceRequest
from quorumlog.messages.quorum import (
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    QuorumFetchRequest,
    VoteRequest,
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
    encode_FetchRequest,
    encode_FetchResponse,
    encode_ListOffsetsRequest,
    encode_ListOffsetsResponse,
)
from quorumlog.rpc.convert.produce import (
    decode_ProduceRequest,
    decode_ProduceResponse,
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
}
