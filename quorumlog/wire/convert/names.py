"""The names of our messages' fields in Kafka's schemas, as far as they differ.

A field with several names has another one per version or per message: all are written, and the first one found is read.
A field that ends in `_ms` has the same name without it, since kio's names have no units.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from quorumlog.messages import (
    admin,
    brokers,
    cluster,
    credentials,
    fetch,
    groups,
    produce,
    quorum,
    quotas,
    reassignments,
    transactions,
)

Names = Mapping[str, tuple[str, ...]]

# Arrays whose absence says something else than an empty one: null is written. `assignments` without any element is
# refused by Kafka (the controller shall place no replica), and null lets it choose.
NULL_WHEN_EMPTY = frozenset(
    {
        (admin.PartitionsOfTopic, "assignments"),
        (cluster.ConfigResource, "names"),
        (credentials.DescribeUserScramCredentialsRequest, "users"),
    }
)

# Whose error message is the empty text where there is no error, and not null.
TEXT_WHEN_EMPTY = frozenset(
    {
        brokers.DescribeAclsResponse,
        brokers.AclResult,
        credentials.DescribeUserScramCredentialsResponse,
        credentials.DescribedScramUser,
        quotas.DescribeClientQuotasResponse,
    }
)

EVERYWHERE: Names = {"index": ("partition_index", "partition", "index")}

_REPLICAS = {"replicas": ("replica_nodes",), "isr": ("isr_nodes",)}
_OPERATIONS = {"authorized_operations": ("topic_authorized_operations",)}
_TOPIC = {"name": ("topic",)}
_INSTANCE = {"group_instance_id": ("instance_id",)}

OF_TYPE: Mapping[type, Names] = {
    produce.ProduceRequest: {"topics": ("topic_data",)},
    produce.ProduceTopic: {"partitions": ("partition_data",)},
    produce.ProduceResponse: {"topics": ("responses",)},
    produce.ProduceTopicResponse: {"partitions": ("partition_responses",)},
    fetch.FetchRequest: {"forgotten": ("forgotten_topics_data",), "rack": ("rack_id",), "replica": ("replica_state",)},
    fetch.ReplicaState: {"broker_epoch": ("replica_epoch",)},
    fetch.FetchTopic: _TOPIC,
    fetch.ForgottenTopic: _TOPIC,
    fetch.FetchPartition: {"max_bytes": ("partition_max_bytes",)},
    fetch.FetchResponse: {"topics": ("responses",)},
    fetch.FetchTopicResponse: _TOPIC,
    fetch.EpochTopic: _TOPIC,
    fetch.EpochTopicResult: _TOPIC,
    cluster.PartitionMetadata: _REPLICAS,
    cluster.TopicMetadata: _OPERATIONS,
    cluster.ReplicaAssignment: {"partition": ("partition_index",)},
    cluster.DeleteTopicsResponse: {"topics": ("responses",)},
    cluster.ConfigResource: {"names": ("configuration_keys",)},
    cluster.DescribedConfig: {"source": ("config_source",)},
    cluster.ClusterBroker: {"node_id": ("broker_id",), "fenced": ("is_fenced",)},
    quorum.DescribeQuorumResponse: {"voters": ("current_voters",)},
    quorum.QuorumReplica: {
        "directory_id": ("replica_directory_id",),
        "last_fetch_wall_ms": ("last_fetch_timestamp",),
        "last_caught_up_wall_ms": ("last_caught_up_timestamp",),
    },
    quorum.QuorumNode: {"endpoints": ("listeners",)},
    admin.AlterableConfig: {"operation": ("config_operation",)},
    admin.IncrementalAlterConfigsResponse: {"results": ("responses",)},
    admin.PartitionDescription: _REPLICAS,
    admin.TopicPartitionsDescription: _OPERATIONS,
    admin.LogDirsTopic: _TOPIC,
    admin.AlterReplicaLogDirTopicResult: {"name": ("topic_name",)},
    admin.DescribeLogDirsResponse: {"directories": ("results",)},
    admin.LogDirDescription: {"path": ("log_dir",)},
    admin.LogDirPartition: {"size_bytes": ("partition_size",), "is_future": ("is_future_key",)},
    admin.ListGroupsRequest: {"states": ("states_filter",), "types": ("types_filter",)},
    admin.UpdateFeaturesRequest: {"updates": ("feature_updates",)},
    admin.FeatureUpdate: {"name": ("feature",), "level": ("max_version_level",)},
    admin.UpdateFeatureResult: {"name": ("feature",)},
    admin.ListedGroup: {"state": ("group_state",)},
    groups.OffsetCommitRequest: {"generation_id": ("generation_id_or_member_epoch",)},
    groups.OffsetFetchTopic: {"partitions": ("partition_indexes",)},
    groups.DeleteGroupsRequest: {"groups": ("groups_names",)},
    groups.ConsumerGroupHeartbeatRequest: _INSTANCE,
    groups.DescribedConsumerMember: _INSTANCE,
    reassignments.AlterPartitionReassignmentsResponse: {"topics": ("responses",)},
    reassignments.ReassignmentsOfTopic: {"partitions": ("partition_indexes",)},
    reassignments.ElectLeadersRequest: {"topics": ("topic_partitions",)},
    reassignments.ElectionTopic: _TOPIC,
    reassignments.ElectLeadersResponse: {"topics": ("replica_election_results",)},
    reassignments.ElectionTopicResult: {"name": ("topic",), "partitions": ("partition_result",)},
    reassignments.ElectionPartitionResult: {"index": ("partition_id",)},
    transactions.TransactionTopic: {"name": ("name", "topic"), "partitions": ("partitions", "partition_indexes")},
    transactions.TransactionTopicResult: {"partitions": ("partitions", "results_by_partition")},
    transactions.TransactionPartitionResult: {"error_code": ("error_code", "partition_error_code")},
    transactions.ExtendedTransaction: {"topics": ("topic_results",)},
    transactions.AddPartitionsToTxnResponse: {"results": ("results_by_transaction",)},
    transactions.TransactionMarker: {"committed": ("transaction_result",)},
    transactions.DescribeTransactionsResponse: {"transactions": ("transaction_states",)},
    transactions.DescribedTransaction: {"state": ("transaction_state",)},
    transactions.ListTransactionsResponse: {"transactions": ("transaction_states",)},
    transactions.ListedTransaction: {"state": ("transaction_state",)},
    transactions.ActiveProducer: {"current_transaction_start_offset": ("current_txn_start_offset",)},
}


@cache
def names_of(message: type, field: str) -> tuple[str, ...]:
    """Kafka's names of `field` of one of our messages."""
    found = OF_TYPE.get(message, {}).get(field) or EVERYWHERE.get(field)
    return found or (field.removesuffix("_ms"),)
