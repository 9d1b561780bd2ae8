"""AlterPartitionReassignments, ListPartitionReassignments and ElectLeaders: Kafka's nulls are our flags.

A partition whose replicas are null cancels its reassignment; topics that are null are all topics.
"""

from __future__ import annotations

from quorumlog.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectionPartitionResult,
    ElectionTopic,
    ElectionTopicResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
    ReassignmentsOfTopic,
)
from quorumlog.wire.convert.mirror import Mapped, from_values, to_values
from quorumlog.wire.format.schema import Values

PREFERRED = 0


def read_alter_request(values: Values, _version: int) -> AlterPartitionReassignmentsRequest:
    topics = [
        {**topic, "partitions": [{**one, "cancel": one["replicas"] is None} for one in topic["partitions"]]}
        for topic in values["topics"]
    ]
    request: AlterPartitionReassignmentsRequest = from_values(
        AlterPartitionReassignmentsRequest, {**values, "topics": topics}
    )
    return request


def write_alter_request(request: AlterPartitionReassignmentsRequest, _version: int) -> Values:
    return {**to_values(request), "topics": Mapped(_topic, request.topics)}


def _topic(topic: ReassignableTopic) -> Values:
    return {"name": topic.name, "partitions": Mapped(_partition, topic.partitions)}


def _partition(one: ReassignablePartition) -> Values:
    values = to_values(one)
    return {**values, "replicas": None} if one.cancel else values


def read_list_request(values: Values, _version: int) -> ListPartitionReassignmentsRequest:
    topics = values["topics"]
    return ListPartitionReassignmentsRequest(
        all_topics=topics is None,
        topics=tuple([from_values(ReassignmentsOfTopic, one) for one in topics or ()]),
        timeout_ms=values["timeout"],
    )


def write_list_request(request: ListPartitionReassignmentsRequest, _version: int) -> Values:
    values = to_values(request)
    return {**values, "topics": None} if request.all_topics else values


def read_elect_request(values: Values, _version: int) -> ElectLeadersRequest:
    """Version 0 knows only the preferred leader."""
    topics = values["topic_partitions"]
    return ElectLeadersRequest(
        election_type=values.get("election_type", PREFERRED),
        all_partitions=topics is None,
        topics=tuple([from_values(ElectionTopic, one) for one in topics or ()]),
        timeout_ms=values["timeout"],
    )


def write_elect_request(request: ElectLeadersRequest, _version: int) -> Values:
    values = to_values(request)
    return {**values, "topic_partitions": None} if request.all_partitions else values


def refuse_elect(request: ElectLeadersRequest, code: int, message: str) -> ElectLeadersResponse:
    """Version 0 has errors of partitions only, so a request for all of them learns of none."""
    topics = [
        ElectionTopicResult(
            name=topic.name,
            partitions=tuple(
                ElectionPartitionResult(index=index, error_code=code, error_message=message)
                for index in topic.partitions
            ),
        )
        for topic in request.topics
    ]
    return ElectLeadersResponse(topics=tuple(topics))
