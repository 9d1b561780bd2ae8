"""The APIs of a broker, one file each. `HANDLERS[type(request)](services, context, request)` is the way to all of them.

A handler checks the request, asks the rooms by `Services`, and builds the response; None means that none is sent. It
knows neither the wire that the request came by nor any disk. Begin with `produce.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

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
from quorumlog.messages.controller import GetReplicaLogInfoRequest
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
    DescribeQuorumRequest,
    RemoveRaftVoterRequest,
    TransferLeadershipRequest,
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
from quorumlog_broker.api.handlers.acls import handle_create_acls, handle_delete_acls, handle_describe_acls
from quorumlog_broker.api.handlers.alter_replica_log_dirs import handle_alter_replica_log_dirs
from quorumlog_broker.api.handlers.backup import handle_hold_commits, handle_read_metadata
from quorumlog_broker.api.handlers.bring_log_dir_online import handle_bring_log_dir_online
from quorumlog_broker.api.handlers.client_quotas import handle_alter_quotas, handle_describe_quotas
from quorumlog_broker.api.handlers.consumer_groups import (
    handle_consumer_group_describe,
    handle_consumer_group_heartbeat,
)
from quorumlog_broker.api.handlers.count_records import handle_count_records
from quorumlog_broker.api.handlers.create_partitions import handle_create_partitions
from quorumlog_broker.api.handlers.create_topics import handle_create_topics
from quorumlog_broker.api.handlers.delete_records import handle_delete_records
from quorumlog_broker.api.handlers.delete_topics import handle_delete_topics
from quorumlog_broker.api.handlers.describe_cluster import handle_describe_cluster
from quorumlog_broker.api.handlers.describe_configs import handle_describe_configs
from quorumlog_broker.api.handlers.describe_features import handle_describe_features
from quorumlog_broker.api.handlers.describe_log_dirs import handle_describe_log_dirs
from quorumlog_broker.api.handlers.describe_quorum import handle_describe_quorum
from quorumlog_broker.api.handlers.describe_ranges import handle_describe_ranges
from quorumlog_broker.api.handlers.describe_topic_partitions import handle_describe_topic_partitions
from quorumlog_broker.api.handlers.events import handle_describe_events
from quorumlog_broker.api.handlers.explain_compaction import handle_explain_compaction
from quorumlog_broker.api.handlers.fetch import handle_fetch
from quorumlog_broker.api.handlers.fetch_chunks import handle_fetch_chunk
from quorumlog_broker.api.handlers.find_coordinator import handle_find_coordinator
from quorumlog_broker.api.handlers.group_admin import handle_delete_groups, handle_describe_groups, handle_list_groups
from quorumlog_broker.api.handlers.group_offsets import handle_offset_commit, handle_offset_delete, handle_offset_fetch
from quorumlog_broker.api.handlers.groups import (
    handle_heartbeat,
    handle_join_group,
    handle_leave_group,
    handle_sync_group,
)
from quorumlog_broker.api.handlers.imports import handle_begin_import, handle_finish_import, handle_import_records
from quorumlog_broker.api.handlers.incremental_alter_configs import handle_incremental_alter_configs
from quorumlog_broker.api.handlers.init_producer_id import handle_init_producer_id
from quorumlog_broker.api.handlers.joint import (
    handle_abort_joint,
    handle_begin_joint,
    handle_commit_joint,
    handle_forget_joint,
    handle_list_joint,
)
from quorumlog_broker.api.handlers.list_offsets import handle_list_offsets
from quorumlog_broker.api.handlers.metadata import handle_metadata
from quorumlog_broker.api.handlers.offset_for_leader_epoch import handle_offset_for_leader_epoch
from quorumlog_broker.api.handlers.produce import handle_produce
from quorumlog_broker.api.handlers.quota_use import handle_describe_quota_use
from quorumlog_broker.api.handlers.raft_voters import handle_add_raft_voter, handle_remove_raft_voter
from quorumlog_broker.api.handlers.reassignments import (
    handle_alter_reassignments,
    handle_elect_leaders,
    handle_list_reassignments,
)
from quorumlog_broker.api.handlers.replica_log_info import handle_get_replica_log_info
from quorumlog_broker.api.handlers.scram_credentials import handle_alter_scram, handle_describe_scram
from quorumlog_broker.api.handlers.transaction_admin import (
    handle_describe_producers,
    handle_describe_transactions,
    handle_list_transactions,
)
from quorumlog_broker.api.handlers.transaction_markers import handle_write_txn_markers
from quorumlog_broker.api.handlers.transaction_offsets import handle_txn_offset_commit
from quorumlog_broker.api.handlers.transactions import handle_add_offsets, handle_add_partitions, handle_end_transaction
from quorumlog_broker.api.handlers.transfer_leadership import handle_transfer_leadership
from quorumlog_broker.api.handlers.unregister_broker import handle_unregister_broker
from quorumlog_broker.api.handlers.update_features import handle_update_features

BrokerHandler = Callable[..., Awaitable[Any]]

HANDLERS: Mapping[type, BrokerHandler] = {
    ProduceRequest: handle_produce,
    FetchRequest: handle_fetch,
    FetchChunkRequest: handle_fetch_chunk,
    ListOffsetsRequest: handle_list_offsets,
    MetadataRequest: handle_metadata,
    DescribeClusterRequest: handle_describe_cluster,
    CreateTopicsRequest: handle_create_topics,
    DeleteTopicsRequest: handle_delete_topics,
    DescribeConfigsRequest: handle_describe_configs,
    DescribeQuorumRequest: handle_describe_quorum,
    AddRaftVoterRequest: handle_add_raft_voter,
    RemoveRaftVoterRequest: handle_remove_raft_voter,
    InitProducerIdRequest: handle_init_producer_id,
    OffsetForLeaderEpochRequest: handle_offset_for_leader_epoch,
    DescribeRangesRequest: handle_describe_ranges,
    CountRecordsRequest: handle_count_records,
    CreatePartitionsRequest: handle_create_partitions,
    IncrementalAlterConfigsRequest: handle_incremental_alter_configs,
    DescribeTopicPartitionsRequest: handle_describe_topic_partitions,
    DeleteRecordsRequest: handle_delete_records,
    DescribeLogDirsRequest: handle_describe_log_dirs,
    AlterReplicaLogDirsRequest: handle_alter_replica_log_dirs,
    BringLogDirOnlineRequest: handle_bring_log_dir_online,
    ListGroupsRequest: handle_list_groups,
    FindCoordinatorRequest: handle_find_coordinator,
    JoinGroupRequest: handle_join_group,
    SyncGroupRequest: handle_sync_group,
    GroupHeartbeatRequest: handle_heartbeat,
    LeaveGroupRequest: handle_leave_group,
    OffsetCommitRequest: handle_offset_commit,
    OffsetFetchRequest: handle_offset_fetch,
    OffsetDeleteRequest: handle_offset_delete,
    DescribeGroupsRequest: handle_describe_groups,
    ConsumerGroupHeartbeatRequest: handle_consumer_group_heartbeat,
    ConsumerGroupDescribeRequest: handle_consumer_group_describe,
    DeleteGroupsRequest: handle_delete_groups,
    AddPartitionsToTxnRequest: handle_add_partitions,
    AddOffsetsToTxnRequest: handle_add_offsets,
    EndTxnRequest: handle_end_transaction,
    TxnOffsetCommitRequest: handle_txn_offset_commit,
    WriteTxnMarkersRequest: handle_write_txn_markers,
    GetReplicaLogInfoRequest: handle_get_replica_log_info,
    DescribeTransactionsRequest: handle_describe_transactions,
    ListTransactionsRequest: handle_list_transactions,
    DescribeProducersRequest: handle_describe_producers,
    TransferLeadershipRequest: handle_transfer_leadership,
    UpdateFeaturesRequest: handle_update_features,
    DescribeFeaturesRequest: handle_describe_features,
    UnregisterBrokerRequest: handle_unregister_broker,
    DescribeAclsRequest: handle_describe_acls,
    CreateAclsRequest: handle_create_acls,
    DeleteAclsRequest: handle_delete_acls,
    DescribeUserScramCredentialsRequest: handle_describe_scram,
    AlterUserScramCredentialsRequest: handle_alter_scram,
    DescribeClientQuotasRequest: handle_describe_quotas,
    AlterClientQuotasRequest: handle_alter_quotas,
    DescribeQuotaUseRequest: handle_describe_quota_use,
    DescribeEventsRequest: handle_describe_events,
    ReadMetadataRequest: handle_read_metadata,
    HoldCommitsRequest: handle_hold_commits,
    AlterPartitionReassignmentsRequest: handle_alter_reassignments,
    ListPartitionReassignmentsRequest: handle_list_reassignments,
    ElectLeadersRequest: handle_elect_leaders,
    ExplainCompactionRequest: handle_explain_compaction,
    BeginImportRequest: handle_begin_import,
    ImportRecordsRequest: handle_import_records,
    FinishImportRequest: handle_finish_import,
    BeginJointRequest: handle_begin_joint,
    CommitJointRequest: handle_commit_joint,
    AbortJointRequest: handle_abort_joint,
    ForgetJointRequest: handle_forget_joint,
    ListJointRequest: handle_list_joint,
}
