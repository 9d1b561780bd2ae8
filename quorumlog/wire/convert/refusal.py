"""The error of a whole request, for APIs and versions whose responses have only one per topic or resource."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from quorumlog.messages import admin, cluster, fetch, produce
from quorumlog.wire.convert.admin import refuse_coordinator
from quorumlog.wire.convert.cluster import refuse_delete_topics, refuse_metadata
from quorumlog.wire.convert.fetch import refuse as refuse_fetch
from quorumlog.wire.convert.produce import refuse as refuse_produce

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
}
