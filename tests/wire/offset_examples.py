"""OffsetCommit, OffsetFetch and OffsetDelete."""

from __future__ import annotations

from typing import Any

from quorumlog.messages import groups
from tests.wire.example import KAFKAS_ID, TOPIC_ID, Example, since


def _topic(version: int) -> dict[str, Any]:
    """The name or the id of a topic, as OffsetCommit and OffsetFetch have it."""
    return since(version, 10, {"topic_id": TOPIC_ID}, {"name": "t"})  # type: ignore[no-any-return]


COMMIT = Example(
    8,
    "OffsetCommit",
    2,
    10,
    lambda v: {
        "groupId": "g",
        "generationIdOrMemberEpoch": 3,
        "memberId": "m1",
        "groupInstanceId@7": "i1",
        "retentionTimeMs@2-4": 86_400_000,
        "topics": [
            {
                "name@2-9": "t",
                "topicId@10": KAFKAS_ID,
                "partitions": [
                    {
                        "partitionIndex": 1,
                        "committedOffset": 42,
                        "committedLeaderEpoch@6": 5,
                        "committedMetadata": "note",
                    },
                    {
                        "partitionIndex": 2,
                        "committedOffset": 1 << 40,
                        "committedLeaderEpoch@6": -1,
                        "committedMetadata": None,
                    },
                ],
            }
        ],
    },
    lambda v: {
        "throttleTimeMs@3": 7,
        "topics": [
            {
                "name@2-9": "t",
                "topicId@10": KAFKAS_ID,
                "partitions": [
                    {"partitionIndex": 1, "errorCode": 0},
                    {"partitionIndex": 2, "errorCode": since(v, 9, 69, 22)},
                ],
            }
        ],
    },
    lambda v: groups.OffsetCommitRequest(
        group_id="g",
        generation_id=3,
        member_id="m1",
        group_instance_id=since(v, 7, "i1", None),
        retention_time_ms=since(v, 5, -1, 86_400_000),
        takes_member_epoch=v >= 9,
        topics=(
            groups.OffsetCommitTopic(
                **_topic(v),
                partitions=(
                    groups.OffsetCommitPartition(
                        index=1,
                        committed_offset=42,
                        committed_leader_epoch=since(v, 6, 5, -1),
                        committed_metadata="note",
                    ),
                    groups.OffsetCommitPartition(index=2, committed_offset=1 << 40),
                ),
            ),
        ),
    ),
    lambda v: groups.OffsetCommitResponse(
        throttle_time_ms=7,
        topics=(
            groups.OffsetCommitTopicResult(
                name="t",
                topic_id=TOPIC_ID,
                partitions=(
                    groups.OffsetCommitPartitionResult(index=1),
                    groups.OffsetCommitPartitionResult(index=2, error_code=69),
                ),
            ),
        ),
    ),
)


def _fetched_topics() -> list[dict[str, Any]]:
    partitions = [
        {"partitionIndex": 1, "committedOffset": 42, "committedLeaderEpoch@5": 5, "metadata": "note", "errorCode": 0},
        {"partitionIndex": 2, "committedOffset": -1, "committedLeaderEpoch@5": -1, "metadata": "", "errorCode": 88},
    ]
    return [{"name@1-9": "t", "topicId@10": KAFKAS_ID, "partitions": partitions}]


FETCH = Example(
    9,
    "OffsetFetch",
    1,
    10,
    lambda v: {
        "groupId@1-7": "g",
        "topics@1-7": [{"name": "t", "partitionIndexes": [1, 2]}],
        "groups@8": [
            {
                "groupId": "g",
                "memberId@9": "m1",
                "memberEpoch@9": 3,
                "topics": [{"name@1-9": "t", "topicId@10": KAFKAS_ID, "partitionIndexes": [1, 2]}],
            },
            {"groupId": "h", "memberId@9": None, "memberEpoch@9": -1, "topics": None},
        ],
        "requireStable@7": True,
    },
    lambda v: {
        "throttleTimeMs@3": 7,
        "topics@1-7": _fetched_topics(),
        "errorCode@2-7": 0,
        "groups@8": [
            {"groupId": "g", "topics": _fetched_topics(), "errorCode": 0},
            {"groupId": "h", "topics": [], "errorCode": 16},
        ],
    },
    lambda v: groups.OffsetFetchRequest(
        groups=(
            groups.OffsetFetchGroup(
                group_id="g",
                member_id=since(v, 9, "m1", None),
                member_epoch=since(v, 9, 3, -1),
                topics=groups.OffsetFetchTopics(topics=(groups.OffsetFetchTopic(**_topic(v), partitions=(1, 2)),)),
            ),
            *([groups.OffsetFetchGroup(group_id="h")] if v >= 8 else []),
        ),
        require_stable=v >= 7,
    ),
    lambda v: groups.OffsetFetchResponse(
        throttle_time_ms=7,
        groups=(
            groups.OffsetFetchGroupResult(
                group_id="g",
                topics=(
                    groups.OffsetFetchTopicResult(
                        name="t",
                        topic_id=TOPIC_ID,
                        partitions=(
                            groups.OffsetFetchPartition(
                                index=1, committed_offset=42, committed_leader_epoch=5, metadata="note"
                            ),
                            groups.OffsetFetchPartition(index=2, error_code=88),
                        ),
                    ),
                ),
            ),
            *([groups.OffsetFetchGroupResult(group_id="h", error_code=16)] if v >= 8 else []),
        ),
    ),
)
OFFSET_DELETE = Example(
    47,
    "OffsetDelete",
    0,
    0,
    lambda v: {
        "groupId": "g",
        "topics": [{"name": "t", "partitions": [{"partitionIndex": 1}, {"partitionIndex": 2}]}],
    },
    lambda v: {
        "errorCode": 68,
        "throttleTimeMs": 7,
        "topics": [{"name": "t", "partitions": [{"partitionIndex": 1, "errorCode": 86}]}],
    },
    lambda v: groups.OffsetDeleteRequest(group_id="g", topics=(groups.OffsetDeleteTopic(name="t", partitions=(1, 2)),)),
    lambda v: groups.OffsetDeleteResponse(
        error_code=68,
        throttle_time_ms=7,
        topics=(
            groups.OffsetDeleteTopicResult(
                name="t", partitions=(groups.OffsetDeletePartition(index=1, error_code=86),)
            ),
        ),
    ),
)
