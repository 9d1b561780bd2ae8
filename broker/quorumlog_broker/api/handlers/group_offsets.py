"""OffsetCommit, OffsetFetch and OffsetDelete: how far groups have read.

Topics come by name or by id, and the coordinator is given both: an offset that was committed for a topic is not that of
another one with the same name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.groups import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeletePartition,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteTopic,
    OffsetDeleteTopicResult,
    OffsetFetchGroup,
    OffsetFetchGroupResult,
    OffsetFetchPartition,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
    OffsetFetchTopicResult,
    OffsetFetchTopics,
)
from quorumlog.rpc.transport import Context
from quorumlog.turn import in_turns
from quorumlog_broker.api.group_calls import begin, check_group_id
from quorumlog_broker.api.handlers.committed_topics import answered_topics, find_topic, known_topics
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services
from quorumlog_broker.coordinator.groups.shard import GroupShard
from quorumlog_broker.coordinator.runtime.many_calls import ask_each
from quorumlog_broker.coordinator.runtime.pending_answer import PendingAnswer
from quorumlog_quorum.metadata.image import Image

# --- commit ---


async def handle_offset_commit(
    services: Services, context: Context, request: OffsetCommitRequest
) -> OffsetCommitResponse:
    """Of partitions that do not exist nothing is committed; the others of the same request are."""
    check_group_id(request.group_id)
    check_topic_count(request.topics, services.limits)
    await services.groups.until_loaded(request.group_id)
    image = services.coordinators_image()
    known = await in_turns(known_topics(image, request.topics))
    pending = begin(services, context, request.group_id, GroupShard.commit_offsets, replace(request, topics=known))
    response: OffsetCommitResponse = await pending
    return OffsetCommitResponse(topics=await in_turns(answered_topics(image, request.topics, response.topics)))


# --- fetch ---


async def handle_offset_fetch(services: Services, context: Context, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Each group has an answer or an error of its own."""
    check_topic_count(request.groups, services.limits)
    for group in request.groups:
        check_topic_count(() if group.topics is None else group.topics.topics, services.limits)
    for group in request.groups[:1]:
        await services.groups.until_loaded(group.group_id)
    try:
        image = services.coordinators_image()
    except ApiError as error:
        return OffsetFetchResponse(groups=tuple(_not_fetched(group, error) for group in request.groups))
    method = GroupShard.fetch_stable_offsets if request.require_stable else GroupShard.fetch_offsets

    def begin_one(group: OffsetFetchGroup) -> PendingAnswer:
        asked = group
        if group.topics is not None:
            asked = replace(group, topics=OffsetFetchTopics(topics=tuple(_to_fetch(image, group.topics.topics))))
        return begin(services, context, group.group_id, method, asked)

    found = await ask_each(request.groups, begin_one, _not_fetched)
    groups = [_fetched(image, group, one) for group, one in zip(request.groups, found, strict=True)]
    return OffsetFetchResponse(groups=tuple(groups))


def _not_fetched(group: OffsetFetchGroup, error: ApiError) -> OffsetFetchGroupResult:
    code = error.code
    if code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
        code = ErrorCode.NOT_COORDINATOR  # as Kafka does: clients of OffsetFetch do not expect the other one
    return OffsetFetchGroupResult(group_id=group.group_id, error_code=code)


def _to_fetch(image: Image, topics: Iterable[OffsetFetchTopic]) -> Iterable[OffsetFetchTopic]:
    """Without those that are named by an id that is not known. A name needs no topic: its offsets may be older."""
    for asked in topics:
        topic = find_topic(image, asked.name, asked.topic_id)
        if topic is not None:
            yield OffsetFetchTopic(name=topic.name, topic_id=topic.id, partitions=asked.partitions)
        elif not asked.topic_id:
            yield asked


def _fetched(image: Image, group: OffsetFetchGroup, found: OffsetFetchGroupResult) -> OffsetFetchGroupResult:
    if found.error_code:
        return found
    if group.topics is None:
        return replace(found, topics=tuple(_with_id(image, topic) for topic in found.topics))
    answered = iter(found.topics)  # in the order in which they were asked for
    topics = []
    for asked in group.topics.topics:
        if asked.topic_id and find_topic(image, asked.name, asked.topic_id) is None:
            topics.append(_unknown_topic(asked))
        else:
            topics.append(next(answered))
    return replace(found, topics=tuple(topics))


def _with_id(image: Image, topic: OffsetFetchTopicResult) -> OffsetFetchTopicResult:
    return replace(topic, topic_id=image.topic_ids.get(topic.name, b""))


def _unknown_topic(asked: OffsetFetchTopic) -> OffsetFetchTopicResult:
    partitions = (
        OffsetFetchPartition(index=index, error_code=ErrorCode.UNKNOWN_TOPIC_ID) for index in asked.partitions
    )
    return OffsetFetchTopicResult(name=asked.name, topic_id=asked.topic_id, partitions=tuple(partitions))


# --- delete ---


async def handle_offset_delete(
    services: Services, context: Context, request: OffsetDeleteRequest
) -> OffsetDeleteResponse:
    check_group_id(request.group_id)
    check_topic_count(request.topics, services.limits)
    image = services.coordinators_image()
    known = tuple(topic for topic in (_to_delete(image, one) for one in request.topics) if topic.partitions)
    response: OffsetDeleteResponse = await begin(
        services, context, request.group_id, GroupShard.delete_offsets, replace(request, topics=known)
    )
    if response.error_code != ErrorCode.NONE:
        return response
    answered = {(topic.name, one.index): one for topic in response.topics for one in topic.partitions}
    return replace(response, topics=tuple(_deleted(topic, answered) for topic in request.topics))


def _to_delete(image: Image, asked: OffsetDeleteTopic) -> OffsetDeleteTopic:
    topic = image.topic(asked.name)
    indexes = () if topic is None else tuple(index for index in asked.partitions if index in topic.partitions)
    return OffsetDeleteTopic(name=asked.name, partitions=indexes)


def _deleted(
    asked: OffsetDeleteTopic, answered: dict[tuple[str, int], OffsetDeletePartition]
) -> OffsetDeleteTopicResult:
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return OffsetDeleteTopicResult(
        name=asked.name,
        partitions=tuple(
            answered.get((asked.name, index), OffsetDeletePartition(index=index, error_code=missing))
            for index in asked.partitions
        ),
    )
