"""Encoders and decoders of every method's messages.

Written by `./dev proto` from proto/quorumlog/v1; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.admin import (
    AlterReplicaLogDirsRequest,
    BringLogDirOnlineRequest,
    CreatePartitionsRequest,
    DeleteRecordsRequest,
    DescribeFeaturesRequest,
    DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest,
    ExplainCompactionRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
    UpdateFeaturesRequest,
)
from quorumlog.messages.backup import HoldCommitsRequest, ReadMetadataRequest
from quorumlog.messages.brokers import (
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    UnregisterBrokerRequest,
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
    EnvelopeRequest,
    GetReplicaLogInfoRequest,
    ProbeRequest,
    RegisterBrokerRequest,
    RegisterControllerRequest,
)
from quorumlog.messages.credentials import AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest
from quorumlog.messages.events import DescribeEventsRequest
from quorumlog.messages.fetch import (
    CountRecordsRequest,
    DescribeRangesRequest,
    FetchChunkRequest,
    FetchRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)
from quorumlog.messages.groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    GroupHeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from quorumlog.messages.imports import BeginImportRequest, FinishImportRequest, ImportRecordsRequest
from quorumlog.messages.joint import (
    AbortJointRequest,
    BeginJointRequest,
    CommitJointRequest,
    ForgetJointRequest,
    ListJointRequest,
)
from quorumlog.messages.produce import InitProducerIdRequest, ProduceRequest
from quorumlog.messages.quorum import (
    AddRaftVoterRequest,
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    QuorumFetchRequest,
    RemoveRaftVoterRequest,
    TransferLeadershipRequest,
    UpdateRaftVoterRequest,
    VoteRequest,
)
from quorumlog.messages.quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest, DescribeQuotaUseRequest
from quorumlog.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from quorumlog.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    ListTransactionsRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)
from quorumlog.rpc.convert.admin import (
    decode_AlterReplicaLogDirsRequest,
    decode_AlterReplicaLogDirsResponse,
    decode_BringLogDirOnlineRequest,
    decode_BringLogDirOnlineResponse,
    decode_CreatePartitionsRequest,
    decode_CreatePartitionsResponse,
    decode_DeleteRecordsRequest,
    decode_DeleteRecordsResponse,
    decode_DescribeFeaturesRequest,
    decode_DescribeFeaturesResponse,
    decode_DescribeLogDirsRequest,
    decode_DescribeLogDirsResponse,
    decode_DescribeTopicPartitionsRequest,
    decode_DescribeTopicPartitionsResponse,
    decode_ExplainCompactionRequest,
    decode_ExplainCompactionResponse,
    decode_FindCoordinatorRequest,
    decode_FindCoordinatorResponse,
    decode_IncrementalAlterConfigsRequest,
    decode_IncrementalAlterConfigsResponse,
    decode_ListGroupsRequest,
    decode_ListGroupsResponse,
    decode_UpdateFeaturesRequest,
    decode_UpdateFeaturesResponse,
    encode_AlterReplicaLogDirsRequest,
    encode_AlterReplicaLogDirsResponse,
    encode_BringLogDirOnlineRequest,
    encode_BringLogDirOnlineResponse,
    encode_CreatePartitionsRequest,
    encode_CreatePartitionsResponse,
    encode_DeleteRecordsRequest,
    encode_DeleteRecordsResponse,
    encode_DescribeFeaturesRequest,
    encode_DescribeFeaturesResponse,
    encode_DescribeLogDirsRequest,
    encode_DescribeLogDirsResponse,
    encode_DescribeTopicPartitionsRequest,
    encode_DescribeTopicPartitionsResponse,
    encode_ExplainCompactionRequest,
    encode_ExplainCompactionResponse,
    encode_FindCoordinatorRequest,
    encode_FindCoordinatorResponse,
    encode_IncrementalAlterConfigsRequest,
    encode_IncrementalAlterConfigsResponse,
    encode_ListGroupsRequest,
    encode_ListGroupsResponse,
    encode_UpdateFeaturesRequest,
    encode_UpdateFeaturesResponse,
)
from quorumlog.rpc.convert.backup import (
    decode_HoldCommitsRequest,
    decode_HoldCommitsResponse,
    decode_ReadMetadataRequest,
    decode_ReadMetadataResponse,
    encode_HoldCommitsRequest,
    encode_HoldCommitsResponse,
    encode_ReadMetadataRequest,
    encode_ReadMetadataResponse,
)
from quorumlog.rpc.convert.brokers import (
    decode_CreateAclsRequest,
    decode_CreateAclsResponse,
    decode_DeleteAclsRequest,
    decode_DeleteAclsResponse,
    decode_DescribeAclsRequest,
    decode_DescribeAclsResponse,
    decode_UnregisterBrokerRequest,
    decode_UnregisterBrokerResponse,
    encode_CreateAclsRequest,
    encode_CreateAclsResponse,
    encode_DeleteAclsRequest,
    encode_DeleteAclsResponse,
    encode_DescribeAclsRequest,
    encode_DescribeAclsResponse,
    encode_UnregisterBrokerRequest,
    encode_UnregisterBrokerResponse,
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
    decode_EnvelopeRequest,
    decode_EnvelopeResponse,
    decode_GetReplicaLogInfoRequest,
    decode_GetReplicaLogInfoResponse,
    decode_ProbeRequest,
    decode_ProbeResponse,
    decode_RegisterBrokerRequest,
    decode_RegisterBrokerResponse,
    decode_RegisterControllerRequest,
    decode_RegisterControllerResponse,
    encode_AllocateProducerIdsRequest,
    encode_AllocateProducerIdsResponse,
    encode_AlterPartitionRequest,
    encode_AlterPartitionResponse,
    encode_AssignReplicasToDirectoriesRequest,
    encode_AssignReplicasToDirectoriesResponse,
    encode_BrokerHeartbeatRequest,
    encode_BrokerHeartbeatResponse,
    encode_EnvelopeRequest,
    encode_EnvelopeResponse,
    encode_GetReplicaLogInfoRequest,
    encode_GetReplicaLogInfoResponse,
    encode_ProbeRequest,
    encode_ProbeResponse,
    encode_RegisterBrokerRequest,
    encode_RegisterBrokerResponse,
    encode_RegisterControllerRequest,
    encode_RegisterControllerResponse,
)
from quorumlog.rpc.convert.credentials import (
    decode_AlterUserScramCredentialsRequest,
    decode_AlterUserScramCredentialsResponse,
    decode_DescribeUserScramCredentialsRequest,
    decode_DescribeUserScramCredentialsResponse,
    encode_AlterUserScramCredentialsRequest,
    encode_AlterUserScramCredentialsResponse,
    encode_DescribeUserScramCredentialsRequest,
    encode_DescribeUserScramCredentialsResponse,
)
from quorumlog.rpc.convert.events import (
    decode_DescribeEventsRequest,
    decode_DescribeEventsResponse,
    encode_DescribeEventsRequest,
    encode_DescribeEventsResponse,
)
from quorumlog.rpc.convert.fetch import (
    decode_CountRecordsRequest,
    decode_CountRecordsResponse,
    decode_DescribeRangesRequest,
    decode_DescribeRangesResponse,
    decode_FetchChunkRequest,
    decode_FetchChunkResponse,
    decode_FetchRequest,
    decode_FetchResponse,
    decode_ListOffsetsRequest,
    decode_ListOffsetsResponse,
    decode_OffsetForLeaderEpochRequest,
    decode_OffsetForLeaderEpochResponse,
    encode_CountRecordsRequest,
    encode_CountRecordsResponse,
    encode_DescribeRangesRequest,
    encode_DescribeRangesResponse,
    encode_FetchChunkRequest,
    encode_FetchChunkResponse,
    encode_FetchRequest,
    encode_FetchResponse,
    encode_ListOffsetsRequest,
    encode_ListOffsetsResponse,
    encode_OffsetForLeaderEpochRequest,
    encode_OffsetForLeaderEpochResponse,
)
from quorumlog.rpc.convert.groups import (
    decode_ConsumerGroupDescribeRequest,
    decode_ConsumerGroupDescribeResponse,
    decode_ConsumerGroupHeartbeatRequest,
    decode_ConsumerGroupHeartbeatResponse,
    decode_DeleteGroupsRequest,
    decode_DeleteGroupsResponse,
    decode_DescribeGroupsRequest,
    decode_DescribeGroupsResponse,
    decode_GroupHeartbeatRequest,
    decode_GroupHeartbeatResponse,
    decode_JoinGroupRequest,
    decode_JoinGroupResponse,
    decode_LeaveGroupRequest,
    decode_LeaveGroupResponse,
    decode_OffsetCommitRequest,
    decode_OffsetCommitResponse,
    decode_OffsetDeleteRequest,
    decode_OffsetDeleteResponse,
    decode_OffsetFetchRequest,
    decode_OffsetFetchResponse,
    decode_SyncGroupRequest,
    decode_SyncGroupResponse,
    encode_ConsumerGroupDescribeRequest,
    encode_ConsumerGroupDescribeResponse,
    encode_ConsumerGroupHeartbeatRequest,
    encode_ConsumerGroupHeartbeatResponse,
    encode_DeleteGroupsRequest,
    encode_DeleteGroupsResponse,
    encode_DescribeGroupsRequest,
    encode_DescribeGroupsResponse,
    encode_GroupHeartbeatRequest,
    encode_GroupHeartbeatResponse,
    encode_JoinGroupRequest,
    encode_JoinGroupResponse,
    encode_LeaveGroupRequest,
    encode_LeaveGroupResponse,
    encode_OffsetCommitRequest,
    encode_OffsetCommitResponse,
    encode_OffsetDeleteRequest,
    encode_OffsetDeleteResponse,
    encode_OffsetFetchRequest,
    encode_OffsetFetchResponse,
    encode_SyncGroupRequest,
    encode_SyncGroupResponse,
)
from quorumlog.rpc.convert.imports import (
    decode_BeginImportRequest,
    decode_BeginImportResponse,
    decode_FinishImportRequest,
    decode_FinishImportResponse,
    decode_ImportRecordsRequest,
    decode_ImportRecordsResponse,
    encode_BeginImportRequest,
    encode_BeginImportResponse,
    encode_FinishImportRequest,
    encode_FinishImportResponse,
    encode_ImportRecordsRequest,
    encode_ImportRecordsResponse,
)
from quorumlog.rpc.convert.joint import (
    decode_AbortJointRequest,
    decode_AbortJointResponse,
    decode_BeginJointRequest,
    decode_BeginJointResponse,
    decode_CommitJointRequest,
    decode_CommitJointResponse,
    decode_ForgetJointRequest,
    decode_ForgetJointResponse,
    decode_ListJointRequest,
    decode_ListJointResponse,
    encode_AbortJointRequest,
    encode_AbortJointResponse,
    encode_BeginJointRequest,
    encode_BeginJointResponse,
    encode_CommitJointRequest,
    encode_CommitJointResponse,
    encode_ForgetJointRequest,
    encode_ForgetJointResponse,
    encode_ListJointRequest,
    encode_ListJointResponse,
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
    decode_AddRaftVoterRequest,
    decode_AddRaftVoterResponse,
    decode_BeginQuorumEpochRequest,
    decode_BeginQuorumEpochResponse,
    decode_DescribeQuorumRequest,
    decode_DescribeQuorumResponse,
    decode_EndQuorumEpochRequest,
    decode_EndQuorumEpochResponse,
    decode_FetchSnapshotRequest,
    decode_FetchSnapshotResponse,
    decode_QuorumFetchRequest,
    decode_QuorumFetchResponse,
    decode_RemoveRaftVoterRequest,
    decode_RemoveRaftVoterResponse,
    decode_TransferLeadershipRequest,
    decode_TransferLeadershipResponse,
    decode_UpdateRaftVoterRequest,
    decode_UpdateRaftVoterResponse,
    decode_VoteRequest,
    decode_VoteResponse,
    encode_AddRaftVoterRequest,
    encode_AddRaftVoterResponse,
    encode_BeginQuorumEpochRequest,
    encode_BeginQuorumEpochResponse,
    encode_DescribeQuorumRequest,
    encode_DescribeQuorumResponse,
    encode_EndQuorumEpochRequest,
    encode_EndQuorumEpochResponse,
    encode_FetchSnapshotRequest,
    encode_FetchSnapshotResponse,
    encode_QuorumFetchRequest,
    encode_QuorumFetchResponse,
    encode_RemoveRaftVoterRequest,
    encode_RemoveRaftVoterResponse,
    encode_TransferLeadershipRequest,
    encode_TransferLeadershipResponse,
    encode_UpdateRaftVoterRequest,
    encode_UpdateRaftVoterResponse,
    encode_VoteRequest,
    encode_VoteResponse,
)
from quorumlog.rpc.convert.quotas import (
    decode_AlterClientQuotasRequest,
    decode_AlterClientQuotasResponse,
    decode_DescribeClientQuotasRequest,
    decode_DescribeClientQuotasResponse,
    decode_DescribeQuotaUseRequest,
    decode_DescribeQuotaUseResponse,
    encode_AlterClientQuotasRequest,
    encode_AlterClientQuotasResponse,
    encode_DescribeClientQuotasRequest,
    encode_DescribeClientQuotasResponse,
    encode_DescribeQuotaUseRequest,
    encode_DescribeQuotaUseResponse,
)
from quorumlog.rpc.convert.reassignments import (
    decode_AlterPartitionReassignmentsRequest,
    decode_AlterPartitionReassignmentsResponse,
    decode_ElectLeadersRequest,
    decode_ElectLeadersResponse,
    decode_ListPartitionReassignmentsRequest,
    decode_ListPartitionReassignmentsResponse,
    encode_AlterPartitionReassignmentsRequest,
    encode_AlterPartitionReassignmentsResponse,
    encode_ElectLeadersRequest,
    encode_ElectLeadersResponse,
    encode_ListPartitionReassignmentsRequest,
    encode_ListPartitionReassignmentsResponse,
)
from quorumlog.rpc.convert.transactions import (
    decode_AddOffsetsToTxnRequest,
    decode_AddOffsetsToTxnResponse,
    decode_AddPartitionsToTxnRequest,
    decode_AddPartitionsToTxnResponse,
    decode_DescribeProducersRequest,
    decode_DescribeProducersResponse,
    decode_DescribeTransactionsRequest,
    decode_DescribeTransactionsResponse,
    decode_EndTxnRequest,
    decode_EndTxnResponse,
    decode_ListTransactionsRequest,
    decode_ListTransactionsResponse,
    decode_TxnOffsetCommitRequest,
    decode_TxnOffsetCommitResponse,
    decode_WriteTxnMarkersRequest,
    decode_WriteTxnMarkersResponse,
    encode_AddOffsetsToTxnRequest,
    encode_AddOffsetsToTxnResponse,
    encode_AddPartitionsToTxnRequest,
    encode_AddPartitionsToTxnResponse,
    encode_DescribeProducersRequest,
    encode_DescribeProducersResponse,
    encode_DescribeTransactionsRequest,
    encode_DescribeTransactionsResponse,
    encode_EndTxnRequest,
    encode_EndTxnResponse,
    encode_ListTransactionsRequest,
    encode_ListTransactionsResponse,
    encode_TxnOffsetCommitRequest,
    encode_TxnOffsetCommitResponse,
    encode_WriteTxnMarkersRequest,
    encode_WriteTxnMarkersResponse,
)

CODECS: dict[type, Codec] = {
    ProduceRequest: Codec(encode_ProduceRequest, decode_ProduceRequest, encode_ProduceResponse, decode_ProduceResponse),
    FetchRequest: Codec(encode_FetchRequest, decode_FetchRequest, encode_FetchResponse, decode_FetchResponse),
    FetchChunkRequest: Codec(
        encode_FetchChunkRequest, decode_FetchChunkRequest, encode_FetchChunkResponse, decode_FetchChunkResponse
    ),
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
    DescribeRangesRequest: Codec(
        encode_DescribeRangesRequest,
        decode_DescribeRangesRequest,
        encode_DescribeRangesResponse,
        decode_DescribeRangesResponse,
    ),
    CountRecordsRequest: Codec(
        encode_CountRecordsRequest, decode_CountRecordsRequest, encode_CountRecordsResponse, decode_CountRecordsResponse
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
    AlterReplicaLogDirsRequest: Codec(
        encode_AlterReplicaLogDirsRequest,
        decode_AlterReplicaLogDirsRequest,
        encode_AlterReplicaLogDirsResponse,
        decode_AlterReplicaLogDirsResponse,
    ),
    BringLogDirOnlineRequest: Codec(
        encode_BringLogDirOnlineRequest,
        decode_BringLogDirOnlineRequest,
        encode_BringLogDirOnlineResponse,
        decode_BringLogDirOnlineResponse,
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
    JoinGroupRequest: Codec(
        encode_JoinGroupRequest, decode_JoinGroupRequest, encode_JoinGroupResponse, decode_JoinGroupResponse
    ),
    SyncGroupRequest: Codec(
        encode_SyncGroupRequest, decode_SyncGroupRequest, encode_SyncGroupResponse, decode_SyncGroupResponse
    ),
    GroupHeartbeatRequest: Codec(
        encode_GroupHeartbeatRequest,
        decode_GroupHeartbeatRequest,
        encode_GroupHeartbeatResponse,
        decode_GroupHeartbeatResponse,
    ),
    LeaveGroupRequest: Codec(
        encode_LeaveGroupRequest, decode_LeaveGroupRequest, encode_LeaveGroupResponse, decode_LeaveGroupResponse
    ),
    OffsetCommitRequest: Codec(
        encode_OffsetCommitRequest, decode_OffsetCommitRequest, encode_OffsetCommitResponse, decode_OffsetCommitResponse
    ),
    OffsetFetchRequest: Codec(
        encode_OffsetFetchRequest, decode_OffsetFetchRequest, encode_OffsetFetchResponse, decode_OffsetFetchResponse
    ),
    OffsetDeleteRequest: Codec(
        encode_OffsetDeleteRequest, decode_OffsetDeleteRequest, encode_OffsetDeleteResponse, decode_OffsetDeleteResponse
    ),
    DescribeGroupsRequest: Codec(
        encode_DescribeGroupsRequest,
        decode_DescribeGroupsRequest,
        encode_DescribeGroupsResponse,
        decode_DescribeGroupsResponse,
    ),
    DeleteGroupsRequest: Codec(
        encode_DeleteGroupsRequest, decode_DeleteGroupsRequest, encode_DeleteGroupsResponse, decode_DeleteGroupsResponse
    ),
    ConsumerGroupHeartbeatRequest: Codec(
        encode_ConsumerGroupHeartbeatRequest,
        decode_ConsumerGroupHeartbeatRequest,
        encode_ConsumerGroupHeartbeatResponse,
        decode_ConsumerGroupHeartbeatResponse,
    ),
    ConsumerGroupDescribeRequest: Codec(
        encode_ConsumerGroupDescribeRequest,
        decode_ConsumerGroupDescribeRequest,
        encode_ConsumerGroupDescribeResponse,
        decode_ConsumerGroupDescribeResponse,
    ),
    AddPartitionsToTxnRequest: Codec(
        encode_AddPartitionsToTxnRequest,
        decode_AddPartitionsToTxnRequest,
        encode_AddPartitionsToTxnResponse,
        decode_AddPartitionsToTxnResponse,
    ),
    AddOffsetsToTxnRequest: Codec(
        encode_AddOffsetsToTxnRequest,
        decode_AddOffsetsToTxnRequest,
        encode_AddOffsetsToTxnResponse,
        decode_AddOffsetsToTxnResponse,
    ),
    EndTxnRequest: Codec(encode_EndTxnRequest, decode_EndTxnRequest, encode_EndTxnResponse, decode_EndTxnResponse),
    DescribeTransactionsRequest: Codec(
        encode_DescribeTransactionsRequest,
        decode_DescribeTransactionsRequest,
        encode_DescribeTransactionsResponse,
        decode_DescribeTransactionsResponse,
    ),
    ListTransactionsRequest: Codec(
        encode_ListTransactionsRequest,
        decode_ListTransactionsRequest,
        encode_ListTransactionsResponse,
        decode_ListTransactionsResponse,
    ),
    TxnOffsetCommitRequest: Codec(
        encode_TxnOffsetCommitRequest,
        decode_TxnOffsetCommitRequest,
        encode_TxnOffsetCommitResponse,
        decode_TxnOffsetCommitResponse,
    ),
    WriteTxnMarkersRequest: Codec(
        encode_WriteTxnMarkersRequest,
        decode_WriteTxnMarkersRequest,
        encode_WriteTxnMarkersResponse,
        decode_WriteTxnMarkersResponse,
    ),
    DescribeProducersRequest: Codec(
        encode_DescribeProducersRequest,
        decode_DescribeProducersRequest,
        encode_DescribeProducersResponse,
        decode_DescribeProducersResponse,
    ),
    AddRaftVoterRequest: Codec(
        encode_AddRaftVoterRequest, decode_AddRaftVoterRequest, encode_AddRaftVoterResponse, decode_AddRaftVoterResponse
    ),
    RemoveRaftVoterRequest: Codec(
        encode_RemoveRaftVoterRequest,
        decode_RemoveRaftVoterRequest,
        encode_RemoveRaftVoterResponse,
        decode_RemoveRaftVoterResponse,
    ),
    TransferLeadershipRequest: Codec(
        encode_TransferLeadershipRequest,
        decode_TransferLeadershipRequest,
        encode_TransferLeadershipResponse,
        decode_TransferLeadershipResponse,
    ),
    UpdateFeaturesRequest: Codec(
        encode_UpdateFeaturesRequest,
        decode_UpdateFeaturesRequest,
        encode_UpdateFeaturesResponse,
        decode_UpdateFeaturesResponse,
    ),
    DescribeFeaturesRequest: Codec(
        encode_DescribeFeaturesRequest,
        decode_DescribeFeaturesRequest,
        encode_DescribeFeaturesResponse,
        decode_DescribeFeaturesResponse,
    ),
    UnregisterBrokerRequest: Codec(
        encode_UnregisterBrokerRequest,
        decode_UnregisterBrokerRequest,
        encode_UnregisterBrokerResponse,
        decode_UnregisterBrokerResponse,
    ),
    DescribeAclsRequest: Codec(
        encode_DescribeAclsRequest, decode_DescribeAclsRequest, encode_DescribeAclsResponse, decode_DescribeAclsResponse
    ),
    CreateAclsRequest: Codec(
        encode_CreateAclsRequest, decode_CreateAclsRequest, encode_CreateAclsResponse, decode_CreateAclsResponse
    ),
    DeleteAclsRequest: Codec(
        encode_DeleteAclsRequest, decode_DeleteAclsRequest, encode_DeleteAclsResponse, decode_DeleteAclsResponse
    ),
    DescribeUserScramCredentialsRequest: Codec(
        encode_DescribeUserScramCredentialsRequest,
        decode_DescribeUserScramCredentialsRequest,
        encode_DescribeUserScramCredentialsResponse,
        decode_DescribeUserScramCredentialsResponse,
    ),
    AlterUserScramCredentialsRequest: Codec(
        encode_AlterUserScramCredentialsRequest,
        decode_AlterUserScramCredentialsRequest,
        encode_AlterUserScramCredentialsResponse,
        decode_AlterUserScramCredentialsResponse,
    ),
    DescribeClientQuotasRequest: Codec(
        encode_DescribeClientQuotasRequest,
        decode_DescribeClientQuotasRequest,
        encode_DescribeClientQuotasResponse,
        decode_DescribeClientQuotasResponse,
    ),
    AlterClientQuotasRequest: Codec(
        encode_AlterClientQuotasRequest,
        decode_AlterClientQuotasRequest,
        encode_AlterClientQuotasResponse,
        decode_AlterClientQuotasResponse,
    ),
    DescribeQuotaUseRequest: Codec(
        encode_DescribeQuotaUseRequest,
        decode_DescribeQuotaUseRequest,
        encode_DescribeQuotaUseResponse,
        decode_DescribeQuotaUseResponse,
    ),
    DescribeEventsRequest: Codec(
        encode_DescribeEventsRequest,
        decode_DescribeEventsRequest,
        encode_DescribeEventsResponse,
        decode_DescribeEventsResponse,
    ),
    ReadMetadataRequest: Codec(
        encode_ReadMetadataRequest, decode_ReadMetadataRequest, encode_ReadMetadataResponse, decode_ReadMetadataResponse
    ),
    HoldCommitsRequest: Codec(
        encode_HoldCommitsRequest, decode_HoldCommitsRequest, encode_HoldCommitsResponse, decode_HoldCommitsResponse
    ),
    ExplainCompactionRequest: Codec(
        encode_ExplainCompactionRequest,
        decode_ExplainCompactionRequest,
        encode_ExplainCompactionResponse,
        decode_ExplainCompactionResponse,
    ),
    AlterPartitionReassignmentsRequest: Codec(
        encode_AlterPartitionReassignmentsRequest,
        decode_AlterPartitionReassignmentsRequest,
        encode_AlterPartitionReassignmentsResponse,
        decode_AlterPartitionReassignmentsResponse,
    ),
    ListPartitionReassignmentsRequest: Codec(
        encode_ListPartitionReassignmentsRequest,
        decode_ListPartitionReassignmentsRequest,
        encode_ListPartitionReassignmentsResponse,
        decode_ListPartitionReassignmentsResponse,
    ),
    ElectLeadersRequest: Codec(
        encode_ElectLeadersRequest, decode_ElectLeadersRequest, encode_ElectLeadersResponse, decode_ElectLeadersResponse
    ),
    BeginImportRequest: Codec(
        encode_BeginImportRequest, decode_BeginImportRequest, encode_BeginImportResponse, decode_BeginImportResponse
    ),
    ImportRecordsRequest: Codec(
        encode_ImportRecordsRequest,
        decode_ImportRecordsRequest,
        encode_ImportRecordsResponse,
        decode_ImportRecordsResponse,
    ),
    FinishImportRequest: Codec(
        encode_FinishImportRequest, decode_FinishImportRequest, encode_FinishImportResponse, decode_FinishImportResponse
    ),
    BeginJointRequest: Codec(
        encode_BeginJointRequest, decode_BeginJointRequest, encode_BeginJointResponse, decode_BeginJointResponse
    ),
    CommitJointRequest: Codec(
        encode_CommitJointRequest, decode_CommitJointRequest, encode_CommitJointResponse, decode_CommitJointResponse
    ),
    AbortJointRequest: Codec(
        encode_AbortJointRequest, decode_AbortJointRequest, encode_AbortJointResponse, decode_AbortJointResponse
    ),
    ForgetJointRequest: Codec(
        encode_ForgetJointRequest, decode_ForgetJointRequest, encode_ForgetJointResponse, decode_ForgetJointResponse
    ),
    ListJointRequest: Codec(
        encode_ListJointRequest, decode_ListJointRequest, encode_ListJointResponse, decode_ListJointResponse
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
    UpdateRaftVoterRequest: Codec(
        encode_UpdateRaftVoterRequest,
        decode_UpdateRaftVoterRequest,
        encode_UpdateRaftVoterResponse,
        decode_UpdateRaftVoterResponse,
    ),
    FetchSnapshotRequest: Codec(
        encode_FetchSnapshotRequest,
        decode_FetchSnapshotRequest,
        encode_FetchSnapshotResponse,
        decode_FetchSnapshotResponse,
    ),
    ProbeRequest: Codec(encode_ProbeRequest, decode_ProbeRequest, encode_ProbeResponse, decode_ProbeResponse),
    GetReplicaLogInfoRequest: Codec(
        encode_GetReplicaLogInfoRequest,
        decode_GetReplicaLogInfoRequest,
        encode_GetReplicaLogInfoResponse,
        decode_GetReplicaLogInfoResponse,
    ),
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
    RegisterControllerRequest: Codec(
        encode_RegisterControllerRequest,
        decode_RegisterControllerRequest,
        encode_RegisterControllerResponse,
        decode_RegisterControllerResponse,
    ),
    EnvelopeRequest: Codec(
        encode_EnvelopeRequest, decode_EnvelopeRequest, encode_EnvelopeResponse, decode_EnvelopeResponse
    ),
}
