"""OffsetCommit, OffsetFetch and OffsetDelete.

From version 10 on, OffsetCommit and OffsetFetch carry topic ids instead of names: the reader leaves the name empty, and
whoever answers fills in both. Version 8 of OffsetFetch asks for several groups (KIP-709); older ones ask for one.
Sources: Kafka's message definitions, KIP-709, KIP-848 (errors of OffsetCommit since version 9).
"""

from __future__ import annotations

from dataclasses import replace

from quorumlog.errors import ErrorCode
from quorumlog.ids import ZERO_UUID
from quorumlog.messages.groups import (
    OffsetCommitPartition,
    OffsetCommitPartitionResult,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
    OffsetCommitTopicResult,
    OffsetDeleteRequest,
    OffsetDeleteTopic,
    OffsetFetchGroup,
    OffsetFetchGroupResult,
    OffsetFetchPartition,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopicResult,
    OffsetFetchTopics,
)
from quorumlog.slices import Pace, Sliced
from quorumlog.wire.convert.mirror import Mapped, from_values, from_values_sliced, to_values
from quorumlog.wire.format.schema import Values

FIRST_WITH_TOPIC_IDS = 10
LAST_WITH_NAMES = 9
FIRST_WITH_UNKNOWN_GROUPS = 9  # of OffsetCommit: before it, a generation of a group that does not exist is illegal
FIRST_WITH_MEMBER_EPOCH = 9  # of OffsetCommit: what a member of the consumer protocol must send
FIRST_WITH_SEVERAL_GROUPS = 8
FIRST_WITH_ERROR_OF_GROUP = 2  # before it, each partition has the error

# --- OffsetCommit ---


def commit_version(request: OffsetCommitRequest, newest: int) -> int:
    if not request.takes_member_epoch:
        return min(newest, FIRST_WITH_MEMBER_EPOCH - 1)
    if newest >= FIRST_WITH_TOPIC_IDS and not all(topic.topic_id for topic in request.topics):
        return LAST_WITH_NAMES
    return newest


def read_commit_request(values: Values, version: int, pace: Pace) -> Sliced[OffsetCommitRequest]:
    """Written out, as the next one is: a consumer commits every partition each few seconds."""
    topics = []
    for topic in values["topics"]:
        topics.append((yield from _read_commit_topic(topic, pace)))
        if pace.is_over():
            yield
    return OffsetCommitRequest(
        group_id=values["group_id"],
        generation_id=values["generation_id_or_member_epoch"],
        member_id=values["member_id"],
        group_instance_id=values.get("group_instance_id"),
        retention_time_ms=values.get("retention_time", -1),
        takes_member_epoch=version >= FIRST_WITH_MEMBER_EPOCH,
        topics=tuple(topics),
    )


def _read_commit_topic(topic: Values, pace: Pace) -> Sliced[OffsetCommitTopic]:
    topic_id = topic.get("topic_id", b"")
    partitions = []
    for partition in topic["partitions"]:
        partitions.append(
            OffsetCommitPartition(
                index=partition["partition_index"],
                committed_offset=partition["committed_offset"],
                committed_leader_epoch=partition.get("committed_leader_epoch", -1),
                committed_metadata=partition["committed_metadata"],
            )
        )
        if pace.is_over():
            yield
    return OffsetCommitTopic(
        name=topic.get("name", ""),
        topic_id=b"" if topic_id == ZERO_UUID else topic_id,
        partitions=tuple(partitions),
    )


def write_commit_response(response: OffsetCommitResponse, _request: OffsetCommitRequest, version: int) -> Values:
    no_group = ErrorCode.GROUP_ID_NOT_FOUND
    instead = ErrorCode.ILLEGAL_GENERATION if version < FIRST_WITH_UNKNOWN_GROUPS else no_group

    def partition_values(one: OffsetCommitPartitionResult) -> Values:
        return {"partition_index": one.index, "error_code": instead if one.error_code == no_group else one.error_code}

    def topic_values(topic: OffsetCommitTopicResult) -> Values:
        partitions = Mapped(partition_values, topic.partitions)
        return {"name": topic.name, "topic_id": topic.topic_id or ZERO_UUID, "partitions": partitions}

    return {"topics": Mapped(topic_values, response.topics), "throttle_time": response.throttle_time_ms}


def refuse_commit(request: OffsetCommitRequest, code: int, message: str) -> OffsetCommitResponse:
    topics = [
        OffsetCommitTopicResult(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                [OffsetCommitPartitionResult(index=part.index, error_code=code) for part in topic.partitions]
            ),
        )
        for topic in request.topics
    ]
    return OffsetCommitResponse(error_code=code, error_message=message, topics=tuple(topics))


# --- OffsetFetch ---


def fetch_version(request: OffsetFetchRequest, newest: int) -> int:
    """All topics of a group are asked for by name, so that the answer has names, too."""
    by_id = all(
        group.topics is not None and all(one.topic_id for one in group.topics.topics) for group in request.groups
    )
    return newest if by_id else min(newest, LAST_WITH_NAMES)


def read_fetch_request(values: Values, version: int, pace: Pace) -> Sliced[OffsetFetchRequest]:
    groups = []
    for group in values["groups"] if version >= FIRST_WITH_SEVERAL_GROUPS else (values,):
        groups.append((yield from _read_group(group, pace)))
        if pace.is_over():
            yield
    return OffsetFetchRequest(groups=tuple(groups), require_stable=values.get("require_stable", False))


def _read_group(values: Values, pace: Pace) -> Sliced[OffsetFetchGroup]:
    topics = None
    if values["topics"] is not None:
        topics = yield from from_values_sliced(OffsetFetchTopics, {"topics": values["topics"]}, pace)
    return OffsetFetchGroup(
        group_id=values["group_id"],
        member_id=values.get("member_id"),
        member_epoch=values.get("member_epoch", -1),
        topics=topics,
    )


def write_fetch_request(request: OffsetFetchRequest, version: int) -> Values:
    groups = [_write_group(group) for group in request.groups]
    if version >= FIRST_WITH_SEVERAL_GROUPS:
        return {"groups": groups, "require_stable": request.require_stable}
    (only,) = groups
    return {**only, "require_stable": request.require_stable}


def _write_group(group: OffsetFetchGroup) -> Values:
    return {
        "group_id": group.group_id,
        "member_id": group.member_id,
        "member_epoch": group.member_epoch,
        "topics": None if group.topics is None else [to_values(topic) for topic in group.topics.topics],
    }


def write_fetch_response(response: OffsetFetchResponse, request: OffsetFetchRequest, version: int) -> Values:
    """An error of the whole answer is that of each group."""
    if response.error_code:
        response = refuse_fetch(request, response.error_code, response.error_message)
    if version >= FIRST_WITH_TOPIC_IDS:
        response = replace(response, groups=tuple([_with_ids_only(group) for group in response.groups]))
    if version >= FIRST_WITH_SEVERAL_GROUPS:
        return to_values(response)
    (asked,) = request.groups
    group = response.groups[0] if response.groups else OffsetFetchGroupResult(group_id=asked.group_id)
    if version < FIRST_WITH_ERROR_OF_GROUP and group.error_code:
        group = replace(group, topics=_refused_topics(asked, group.error_code))
    return {**to_values(group), "throttle_time": response.throttle_time_ms}


def _with_ids_only(group: OffsetFetchGroupResult) -> OffsetFetchGroupResult:
    """Nothing names a topic without an id, so Kafka skips it: one of the offsets that a deleted topic has left."""
    if all(topic.topic_id for topic in group.topics):
        return group
    return replace(group, topics=tuple([topic for topic in group.topics if topic.topic_id]))


def _refused_topics(asked: OffsetFetchGroup, code: int) -> tuple[OffsetFetchTopicResult, ...]:
    return tuple(
        [
            OffsetFetchTopicResult(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple([OffsetFetchPartition(index=index, error_code=code) for index in topic.partitions]),
            )
            for topic in (() if asked.topics is None else asked.topics.topics)
        ]
    )


def read_fetch_response(values: Values, request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
    response: OffsetFetchResponse = from_values(OffsetFetchResponse, values)
    if version >= FIRST_WITH_SEVERAL_GROUPS:
        return response
    named = {**values, "group_id": request.groups[0].group_id}
    return replace(response, error_code=0, groups=(from_values(OffsetFetchGroupResult, named),))


def refuse_fetch(request: OffsetFetchRequest, code: int, message: str) -> OffsetFetchResponse:
    groups = [OffsetFetchGroupResult(group_id=group.group_id, error_code=code) for group in request.groups]
    return OffsetFetchResponse(error_code=code, error_message=message, groups=tuple(groups))


# --- OffsetDelete ---


def read_delete_request(values: Values, _version: int) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=values["group_id"],
        topics=tuple(
            [
                OffsetDeleteTopic(
                    name=topic["name"], partitions=tuple([part["partition_index"] for part in topic["partitions"]])
                )
                for topic in values["topics"]
            ]
        ),
    )


def write_delete_request(request: OffsetDeleteRequest, _version: int) -> Values:
    topics = [
        {"name": topic.name, "partitions": [{"partition_index": index} for index in topic.partitions]}
        for topic in request.topics
    ]
    return {"group_id": request.group_id, "topics": topics}
