"""Metadata, DeleteTopics and DescribeQuorum: fields that differ from Kafka's."""

from __future__ import annotations

from quorumlog.messages.cluster import (
    DeleteTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    MetadataRequest,
    MetadataResponse,
    TopicMetadata,
    TopicQuery,
)
from quorumlog.messages.quorum import DescribeQuorumRequest, DescribeQuorumResponse
from quorumlog.topic_name import METADATA_TOPIC
from quorumlog.wire.convert.mirror import Mapped, from_values, to_values
from quorumlog.wire.convert.throttling import takes_throttling
from quorumlog.wire.format.schema import Values

_FIRST_WITHOUT_NAMES = 12  # version of Metadata whose answer may name no topic but its id
_FIRST_DELETED_BY_ID = 6  # version of DeleteTopics


def read_metadata_request(values: Values, version: int) -> MetadataRequest:
    """Null asks for all topics; in version 0, which has no null, an empty list does."""
    topics = values["topics"]
    return MetadataRequest(
        all_topics=topics is None or (version == 0 and not topics),
        topics=tuple([from_values(TopicQuery, topic) for topic in topics or ()]),
        allow_auto_topic_creation=values.get("allow_auto_topic_creation", True),
        include_topic_authorized_operations=values.get("include_topic_authorized_operations", False),
        include_cluster_authorized_operations=values.get("include_cluster_authorized_operations", False),
        wants_metadata_offset=values.get("wants_metadata_offset", False),
    )


def write_metadata_request(request: MetadataRequest, _version: int) -> Values:
    values = to_values(request)
    if request.all_topics:
        values["topics"] = None
    return values


def write_metadata_response(response: MetadataResponse, request: MetadataRequest, version: int) -> Values:
    """With our tag only for those who ask for it."""
    values = to_values(response)
    if version >= _FIRST_WITHOUT_NAMES:
        values["topics"] = Mapped(_unnamed, response.topics)
    if not request.wants_metadata_offset:
        del values["metadata_offset"]
    return values


def refuse_metadata(request: MetadataRequest, code: int, message: str) -> MetadataResponse:
    topics = [
        TopicMetadata(name=topic.name, topic_id=topic.topic_id, error_code=code, error_message=message)
        for topic in request.topics
    ]
    return MetadataResponse(topics=tuple(topics))


def read_delete_topics_request(values: Values, version: int) -> DeleteTopicsRequest:
    throttling = takes_throttling(DeleteTopicsRequest, version)
    if "topic_names" in values:  # before version 6
        topics = tuple([TopicQuery(name=name) for name in values["topic_names"]])
        return DeleteTopicsRequest(topics=topics, timeout_ms=values["timeout"], takes_throttling=throttling)
    request: DeleteTopicsRequest = from_values(DeleteTopicsRequest, values)
    return request


def write_delete_topics_request(request: DeleteTopicsRequest, _version: int) -> Values:
    topics = [{**to_values(topic), "name": None if topic.topic_id else topic.name} for topic in request.topics]
    return {**to_values(request), "topics": topics, "topic_names": [topic.name for topic in request.topics]}


def write_delete_topics_response(response: DeleteTopicsResponse, _request: DeleteTopicsRequest, version: int) -> Values:
    values = to_values(response)
    if version >= _FIRST_DELETED_BY_ID:
        values["responses"] = Mapped(_unnamed, response.topics)
    return values


def _unnamed(topic: TopicMetadata | DeleteTopicResult) -> Values:
    """A topic whose id nobody knows has no name: null, not an empty one."""
    values = to_values(topic)
    if topic.topic_id and not topic.name:
        values["name"] = None
    return values


def refuse_delete_topics(request: DeleteTopicsRequest, code: int, message: str) -> DeleteTopicsResponse:
    topics = [
        DeleteTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=code, error_message=message)
        for topic in request.topics
    ]
    return DeleteTopicsResponse(topics=tuple(topics))


def read_quorum_request(_values: Values, _version: int) -> DescribeQuorumRequest:
    """There is only one quorum, and the response describes it, whatever topics the request names."""
    return DescribeQuorumRequest()


def write_quorum_request(_request: DescribeQuorumRequest, _version: int) -> Values:
    return {"topics": [{"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}]}


def write_quorum_response(response: DescribeQuorumResponse, _request: DescribeQuorumRequest, _version: int) -> Values:
    partition = {
        "partition_index": 0,
        "leader_id": response.leader_id,
        "leader_epoch": response.leader_epoch,
        "high_watermark": response.high_watermark,
        "current_voters": [to_values(replica) for replica in response.voters],
        "observers": [to_values(replica) for replica in response.observers],
    }
    nodes = [
        {"node_id": node.node_id, "listeners": [to_values(endpoint) for endpoint in node.endpoints]}
        for node in response.nodes
    ]
    topic = {"topic_name": METADATA_TOPIC, "partitions": [partition]}
    values: Values = {"error_code": response.error_code, "error_message": response.error_message or None}
    return {**values, "topics": [topic] if not response.error_code else [], "nodes": nodes}


def read_quorum_response(values: Values, _request: DescribeQuorumRequest, _version: int) -> DescribeQuorumResponse:
    merged: Values = {**values, "topics": ()}
    for topic in values["topics"]:
        for partition in topic["partitions"]:
            merged = {**merged, **partition, "error_code": values["error_code"] or partition["error_code"]}
    response: DescribeQuorumResponse = from_values(DescribeQuorumResponse, merged)
    return response
