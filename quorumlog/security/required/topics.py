"""Topics: what is shown of them, and how they are made, changed and deleted.

A listing leaves out what may not be described. A topic that is named is answered with
TOPIC_AUTHORIZATION_FAILED whether it exists or not.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsResult,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    ExplainCompactionRequest,
    TopicPartitionsDescription,
)
from quorumlog.messages.cluster import (
    CreateTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
    TopicMetadata,
    TopicQuery,
)
from quorumlog.security.authorizer import CLUSTER_NAME, ResourceType
from quorumlog.security.required.asker import Asker
from quorumlog.security.required.judged import Judged, answered, keep_topics, put_back
from quorumlog.security.required.need import (
    CLUSTER_CREATE,
    CLUSTER_DELETE,
    CLUSTER_DESCRIBE,
    TOPIC_ALTER,
    TOPIC_CREATE,
    TOPIC_DELETE,
    TOPIC_DESCRIBE,
    TOPIC_DESCRIBE_CONFIGS,
)
from quorumlog.security.required.size import MAX_ITEMS

NOT_ASKED = -(2**31)
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED

# --- what is shown


def metadata(ask: Asker, request: MetadataRequest) -> Judged:
    """A request whose topics are all denied goes on without any: it asks for the brokers, too."""
    if request.all_topics:
        return Judged(request, lambda response: _told(ask, _seen_only(ask, response)))
    faults = [_fault_of_query(ask, query, request.allow_auto_topic_creation) for query in request.topics]
    if not any(faults):
        return Judged(request, lambda response: _told(ask, response))
    kept = tuple(query for query, fault in zip(request.topics, faults, strict=True) if not fault)

    def finish(response: MetadataResponse) -> MetadataResponse:
        if response.error_code:
            return response
        topics = put_back(request.topics, faults, response.topics, _not_shown)
        return _told(ask, replace(response, topics=topics))

    return Judged(replace(request, topics=kept), finish)


def _fault_of_query(ask: Asker, query: TopicQuery, may_create: bool) -> ErrorCode:
    """A topic that is not there would be made, where the client asks for that (`auto.create.topics.enable`)."""
    fault = ask.topic_fault(TOPIC_DESCRIBE, query)
    if fault or query.topic_id or not may_create or not ask.topics.creates or ask.topics.exists(query.name):
        return fault
    if ask.holds(CLUSTER_CREATE) or ask.allows(TOPIC_CREATE, query.name):
        return ErrorCode.NONE
    return _DENIED


def _not_shown(query: TopicQuery, fault: ErrorCode) -> TopicMetadata:
    return TopicMetadata(error_code=fault, name="" if query.topic_id else query.name, topic_id=query.topic_id)


def _seen_only(ask: Asker, response: MetadataResponse) -> MetadataResponse:
    seen = ask.seen(TOPIC_DESCRIBE, (topic.name for topic in response.topics))
    if all(seen):
        return response
    return replace(response, topics=tuple(t for t, is_seen in zip(response.topics, seen, strict=True) if is_seen))


def _told(ask: Asker, response: MetadataResponse) -> MetadataResponse:
    """With the bits of this client."""
    topics = tuple(_with_bits(ask, topic) for topic in response.topics)
    bits = _cluster_bits(ask, response.cluster_authorized_operations)
    return replace(response, topics=topics, cluster_authorized_operations=bits)


def _with_bits(ask: Asker, topic: Any) -> Any:
    if topic.authorized_operations == NOT_ASKED:
        return topic
    return replace(topic, authorized_operations=ask.operations(ResourceType.TOPIC, topic.name))


def _cluster_bits(ask: Asker, bits: int) -> int:
    """0 for who may not describe the cluster."""
    if bits == NOT_ASKED:
        return bits
    return ask.operations(ResourceType.CLUSTER, CLUSTER_NAME) if ask.may(CLUSTER_DESCRIBE) else 0


def describe_cluster(ask: Asker, request: DescribeClusterRequest) -> Judged:
    def finish(response: DescribeClusterResponse) -> DescribeClusterResponse:
        bits = _cluster_bits(ask, response.cluster_authorized_operations)
        return replace(response, cluster_authorized_operations=bits)

    return Judged(request, finish)


def describe_topic_partitions(ask: Asker, request: DescribeTopicPartitionsRequest) -> Judged:
    """No page and no cursor tells of a topic that may not be seen."""
    if not request.topics:
        return _page_of_seen(ask, request)
    faults = {name: not ask.allows(TOPIC_DESCRIBE, name) for name in request.topics}
    begin = "" if request.cursor is None else request.cursor.topic_name
    denied = sorted(name for name, is_denied in faults.items() if is_denied and name >= begin)
    kept = tuple(name for name in request.topics if not faults[name])
    if not kept:
        return answered(DescribeTopicPartitionsResponse(topics=tuple(map(_not_described, denied))))

    def finish(response: DescribeTopicPartitionsResponse) -> DescribeTopicPartitionsResponse:
        if response.error_code:
            return response
        cursor = response.next_cursor
        here = (_not_described(name) for name in denied if cursor is None or name < cursor.topic_name)
        found = (_with_bits(ask, topic) for topic in response.topics)
        return replace(response, topics=tuple(sorted((*found, *here), key=lambda topic: topic.name)))

    return Judged(replace(request, topics=kept), finish)


def _not_described(name: str) -> TopicPartitionsDescription:
    return TopicPartitionsDescription(name=name, error_code=_DENIED)


def _page_of_seen(ask: Asker, request: DescribeTopicPartitionsRequest) -> Judged:
    """Of all topics: the handler is asked for those that may be seen. A page of all that loses some would tell by its
    length what is there."""
    cursor = request.cursor
    names = [name for name in ask.topics.names() if cursor is None or name >= cursor.topic_name]
    most = (
        max(1, min(request.response_partition_limit, MAX_ITEMS - 2)) + 2
    )  # one may have no partition behind the cursor
    seen = tuple(islice((name for name in names if ask.may(TOPIC_DESCRIBE, name)), most))
    if not seen:
        return answered(DescribeTopicPartitionsResponse())

    def finish(response: DescribeTopicPartitionsResponse) -> DescribeTopicPartitionsResponse:
        return replace(response, topics=tuple(_with_bits(ask, topic) for topic in response.topics))

    return Judged(replace(request, topics=seen), finish)


def explain_compaction(ask: Asker, request: ExplainCompactionRequest) -> Judged:
    ask.demand(TOPIC_DESCRIBE, request.topic)
    return Judged(request)


# --- changes


def create_topics(ask: Asker, request: CreateTopicsRequest) -> Judged:
    everything = ask.holds(CLUSTER_CREATE)
    faults = [
        ErrorCode.NONE if everything or ask.allows(TOPIC_CREATE, topic.name) else _DENIED for topic in request.topics
    ]
    judged = keep_topics(request, faults, CreateTopicsResponse, _not_created)

    def finish(response: CreateTopicsResponse) -> CreateTopicsResponse:
        shown = replace(response, topics=tuple(_without_configs(ask, topic) for topic in response.topics))
        return shown if judged.finish is None else judged.finish(shown)

    return judged if judged.request is None else Judged(judged.request, finish)


def _not_created(topic: Any, fault: ErrorCode) -> CreateTopicResult:
    return CreateTopicResult(name=topic.name, error_code=fault, error_message="Authorization failed.")


def _without_configs(ask: Asker, topic: CreateTopicResult) -> CreateTopicResult:
    """KIP-525: who may not describe a topic's settings does not learn them by making it."""
    if topic.error_code or ask.may(TOPIC_DESCRIBE_CONFIGS, topic.name):
        return topic
    return replace(topic, configs=(), num_partitions=-1, replication_factor=-1)


def delete_topics(ask: Asker, request: DeleteTopicsRequest) -> Judged:
    """Of a topic that is given by its id, who may not describe it does not learn the name."""
    everything = ask.holds(CLUSTER_DELETE)
    answers = [None if everything else _not_deleted(ask, query) for query in request.topics]
    if not any(answers):
        return Judged(request)
    denied = [answer for answer in answers if answer is not None]
    kept = tuple(query for query, answer in zip(request.topics, answers, strict=True) if answer is None)
    if not kept:
        return answered(DeleteTopicsResponse(topics=tuple(denied)))

    def finish(response: DeleteTopicsResponse) -> DeleteTopicsResponse:
        if response.error_code:
            return response
        left = iter(denied)
        topics = put_back(request.topics, answers, response.topics, lambda _query, _fault: next(left))
        return replace(response, topics=topics)

    return Judged(replace(request, topics=kept), finish)


def _not_deleted(ask: Asker, query: TopicQuery) -> DeleteTopicResult | None:
    if not query.topic_id:
        if ask.allows(TOPIC_DELETE, query.name):
            return None
        return DeleteTopicResult(name=query.name, error_code=_DENIED)
    name = ask.topics.name_of(query.topic_id)
    if name is None:
        return DeleteTopicResult(name="", topic_id=query.topic_id, error_code=ErrorCode.UNKNOWN_TOPIC_ID)
    if ask.allows(TOPIC_DELETE, name):
        return None
    shown = name if ask.may(TOPIC_DESCRIBE, name) else ""
    return DeleteTopicResult(name=shown, topic_id=query.topic_id, error_code=_DENIED)


def create_partitions(ask: Asker, request: CreatePartitionsRequest) -> Judged:
    faults = [ErrorCode.NONE if ask.allows(TOPIC_ALTER, topic.name) else _DENIED for topic in request.topics]
    return keep_topics_of_results(request, faults)


def keep_topics_of_results(request: CreatePartitionsRequest, faults: list[ErrorCode]) -> Judged:
    """As `keep_topics`; the response calls its places `results`."""
    if not any(faults):
        return Judged(request)
    kept = tuple(topic for topic, fault in zip(request.topics, faults, strict=True) if not fault)
    if not kept:
        return answered(CreatePartitionsResponse(results=put_back(request.topics, faults, (), _not_grown)))

    def finish(response: CreatePartitionsResponse) -> CreatePartitionsResponse:
        if response.error_code:
            return response
        return replace(response, results=put_back(request.topics, faults, response.results, _not_grown))

    return Judged(replace(request, topics=kept), finish)


def _not_grown(topic: Any, fault: ErrorCode) -> CreatePartitionsResult:
    return CreatePartitionsResult(name=topic.name, error_code=fault)
