"""DeleteTopics: by name or by id. The record removes partitions and settings as well; brokers remove the data."""

from __future__ import annotations

from collections import Counter

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Uuid, show_uuid
from quorumlog.messages.cluster import (
    DeleteTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    TopicQuery,
)
from quorumlog.messages.metadata_records import RemoveTopicRecord
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.controller.sweeps.raised_durability import forget_raised
from quorumlog_quorum.metadata.image import Image, TopicImage


def delete_topics(draft: Draft, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Each topic is deleted or refused alone; one that is named twice is refused both times, and stays."""
    named = [_meant(draft.image, query) for query in request.topics]
    counts = Counter(one for one in named if one is not None)
    return DeleteTopicsResponse(
        topics=tuple(
            _delete(draft, query, one is not None and counts[one] > 1)
            for query, one in zip(request.topics, named, strict=True)
        )
    )


def _meant(image: Image, query: TopicQuery) -> Uuid | str | None:
    """The topic's id, or the name of one that is not there. None: it is named by both, and refused for that."""
    if query.name and query.topic_id:
        return None
    return query.topic_id or image.topic_ids.get(query.name) or query.name


def _delete(draft: Draft, query: TopicQuery, twice: bool) -> DeleteTopicResult:
    try:
        if twice:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the topic is in the request twice")
        topic = _find(draft.image, query)
        draft.charge(topic.name, len(topic.partitions))
    except ApiError as error:
        return DeleteTopicResult(
            name=query.name, topic_id=query.topic_id, error_code=error.code, error_message=error.message
        )
    forget_raised(draft, topic.name)
    draft.add(RemoveTopicRecord(topic_id=topic.id))
    return DeleteTopicResult(name=topic.name, topic_id=topic.id)


def _find(image: Image, query: TopicQuery) -> TopicImage:
    if query.name and query.topic_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a topic is named by its name or by its id, not by both")
    if query.topic_id:
        topic = image.topics.get(query.topic_id)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {show_uuid(query.topic_id)}")
        return topic
    topic = image.topic(query.name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic is named {query.name}")
    return topic
