"""The error of a whole request, for APIs and versions whose responses have only one per topic or resource."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from quorumlog.messages import (
    admin,
    brokers,
    cluster,
    credentials,
    fetch,
    groups,
    produce,
    quotas,
    reassignments,
    transactions,
)
from quorumlog.wire.convert.admin import refuse_coordinator
from quorumlog.wire.convert.cluster import refuse_delete_topics, refuse_metadata
from quorumlog.wire.convert.consumer_groups import refuse_consumer_describe
from quorumlog.wire.convert.fetch import refuse as refuse_fetch
from quorumlog.wire.convert.group_offsets import refuse_commit
from quorumlog.wire.convert.group_offsets import refuse_fetch as refuse_offset_fetch
from quorumlog.wire.convert.groups import refuse_delete, refuse_describe
from quorumlog.wire.convert.produce import refuse as refuse_produce
from quorumlog.wire.convert.reassignments import refuse_elect
from quorumlog.wire.convert.transactions import (
    refuse_describe as refuse_describe_transactions,
)
from quorumlog.wire.convert.transactions import refuse_extend, refuse_markers, refuse_offsets, refuse_producers

Refuse = Callable[[Any, int, str], Any]  # request, code, message -> response


def _named(response: type, result: type, field: str = "topics") -> Refuse:
    """A result for each topic of the request."""

    def refuse(request: Any, code: int, message: str) -> Any:
        results = [result(name=topic.name, error_code=code, error_message=message) for topic in request.topics]
        return response(**{field: tuple(results)})

    return refuse


def _by_partition(response: type, of_topic: type, of_partition: type) -> Refuse:
    def refuse(request: Any, code: int, _message: str) -> Any:
        topics = [
            of_topic(
                name=topic.name,
                partitions=tuple(of_partition(index=part.index, error_code=code) for part in topic.partitions),
            )
            for topic in request.topics
        ]
        return response(topics=tuple(topics))

    return refuse


def _by_resource(response: type, result: type) -> Refuse:
    def refuse(request: Any, code: int, message: str) -> Any:
        results = [
            result(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                error_code=code,
                error_message=message,
            )
            for resource in request.resources
        ]
        return response(results=tuple(results))

    return refuse


def _topic_partitions(request: admin.DescribeTopicPartitionsRequest, code: int, _message: str) -> Any:
    topics = [admin.TopicPartitionsDescription(name=name, error_code=code) for name in request.topics]
    return admin.DescribeTopicPartitionsResponse(topics=tuple(topics))


def refuse_replica_log_dirs(
    request: admin.AlterReplicaLogDirsRequest, code: int, message: str
) -> admin.AlterReplicaLogDirsResponse:
    return admin.AlterReplicaLogDirsResponse(
        results=tuple(
            admin.AlterReplicaLogDirTopicResult(
                name=topic.name,
                partitions=tuple(
                    admin.AlterReplicaLogDirPartitionResult(index=index, error_code=code, error_message=message)
                    for index in topic.partitions
                ),
            )
            for directory in request.dirs
            for topic in directory.topics
        )
    )


def _create_acls(request: brokers.CreateAclsRequest, code: int, message: str) -> brokers.CreateAclsResponse:
    result = brokers.AclResult(error_code=code, error_message=message)
    return brokers.CreateAclsResponse(results=(result,) * len(request.creations))


def _delete_acls(request: brokers.DeleteAclsRequest, code: int, message: str) -> brokers.DeleteAclsResponse:
    result = brokers.AclFilterResult(error_code=code, error_message=message)
    return brokers.DeleteAclsResponse(filter_results=(result,) * len(request.filters))


def _alter_scram(
    request: credentials.AlterUserScramCredentialsRequest, code: int, message: str
) -> credentials.AlterUserScramCredentialsResponse:
    names = sorted({one.name for one in request.deletions} | {one.name for one in request.upsertions})
    results = [credentials.AlteredScramUser(user=name, error_code=code, error_message=message) for name in names]
    return credentials.AlterUserScramCredentialsResponse(results=tuple(results))


def _alter_quotas(
    request: quotas.AlterClientQuotasRequest, code: int, message: str
) -> quotas.AlterClientQuotasResponse:
    entries = [
        quotas.AlteredQuota(entity=one.entity, error_code=code, error_message=message) for one in request.entries
    ]
    return quotas.AlterClientQuotasResponse(entries=tuple(entries))


REFUSALS: Mapping[type, Refuse] = {
    produce.ProduceRequest: refuse_produce,
    fetch.FetchRequest: refuse_fetch,
    fetch.ListOffsetsRequest: _by_partition(
        fetch.ListOffsetsResponse, fetch.ListOffsetsTopicResponse, fetch.ListOffsetsPartitionResponse
    ),
    fetch.OffsetForLeaderEpochRequest: _by_partition(
        fetch.OffsetForLeaderEpochResponse, fetch.EpochTopicResult, fetch.EpochPartitionResult
    ),
    cluster.MetadataRequest: refuse_metadata,
    cluster.CreateTopicsRequest: _named(cluster.CreateTopicsResponse, cluster.CreateTopicResult),
    cluster.DeleteTopicsRequest: refuse_delete_topics,
    cluster.DescribeConfigsRequest: _by_resource(cluster.DescribeConfigsResponse, cluster.ConfigDescription),
    admin.CreatePartitionsRequest: _named(
        admin.CreatePartitionsResponse, admin.CreatePartitionsResult, field="results"
    ),
    admin.IncrementalAlterConfigsRequest: _by_resource(admin.IncrementalAlterConfigsResponse, admin.AlterConfigsResult),
    admin.DescribeTopicPartitionsRequest: _topic_partitions,
    admin.DeleteRecordsRequest: _by_partition(
        admin.DeleteRecordsResponse, admin.DeleteRecordsTopicResult, admin.DeleteRecordsPartitionResult
    ),
    admin.FindCoordinatorRequest: refuse_coordinator,
    brokers.CreateAclsRequest: _create_acls,
    brokers.DeleteAclsRequest: _delete_acls,
    credentials.AlterUserScramCredentialsRequest: _alter_scram,
    quotas.AlterClientQuotasRequest: _alter_quotas,
    groups.OffsetCommitRequest: refuse_commit,
    groups.OffsetFetchRequest: refuse_offset_fetch,
    groups.DescribeGroupsRequest: refuse_describe,
    groups.DeleteGroupsRequest: refuse_delete,
    groups.ConsumerGroupDescribeRequest: refuse_consumer_describe,
    transactions.AddPartitionsToTxnRequest: refuse_extend,
    transactions.TxnOffsetCommitRequest: refuse_offsets,
    transactions.WriteTxnMarkersRequest: refuse_markers,
    transactions.DescribeTransactionsRequest: refuse_describe_transactions,
    transactions.DescribeProducersRequest: refuse_producers,
    admin.AlterReplicaLogDirsRequest: refuse_replica_log_dirs,
    reassignments.ElectLeadersRequest: refuse_elect,
}
