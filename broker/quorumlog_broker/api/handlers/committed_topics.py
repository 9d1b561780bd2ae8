"""The topics of OffsetCommit and TxnOffsetCommit: what of them exists, and the answer about all that was asked for.

Both in slices: a request may name 100,000 partitions.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import OffsetCommitPartitionResult, OffsetCommitTopic, OffsetCommitTopicResult
from quorumlog.slices import Pace, Sliced
from quorumlog_quorum.metadata.image import Image, TopicImage


def known_topics(image: Image, asked: Sequence[OffsetCommitTopic]) -> Sliced[tuple[OffsetCommitTopic, ...]]:
    """Those that exist, with name and id, and their partitions that exist."""
    known, pace = [], Pace()
    for one in asked:
        topic = find_topic(image, one.name, one.topic_id)
        if topic is not None:
            partitions = tuple(partition for partition in one.partitions if partition.index in topic.partitions)
            if partitions:
                known.append(OffsetCommitTopic(name=topic.name, topic_id=topic.id, partitions=partitions))
        if pace.is_over(1 + len(one.partitions) // 8):
            yield
    return tuple(known)


def answered_topics(
    image: Image, asked: Sequence[OffsetCommitTopic], answers: Sequence[OffsetCommitTopicResult]
) -> Sliced[tuple[OffsetCommitTopicResult, ...]]:
    """In the order of the request. answers: of `known_topics`, in their order."""
    if _is_whole(asked, answers):
        return tuple(answers)
    results, pace = [], Pace()
    answered = {}
    for answer in answers:
        for found in answer.partitions:
            answered[answer.name, found.index] = found.error_code
            if pace.is_over():
                yield
    for one in asked:
        topic = find_topic(image, one.name, one.topic_id)
        name = one.name if topic is None else topic.name
        missing = ErrorCode.UNKNOWN_TOPIC_ID if topic is None and one.topic_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partitions = []
        for partition in one.partitions:
            code = answered.get((name, partition.index), missing)
            partitions.append(OffsetCommitPartitionResult(index=partition.index, error_code=code))
            if pace.is_over():
                yield
        topic_id = one.topic_id if topic is None else topic.id
        results.append(OffsetCommitTopicResult(name=name, topic_id=topic_id, partitions=tuple(partitions)))
    return tuple(results)


def _is_whole(asked: Sequence[OffsetCommitTopic], answers: Sequence[OffsetCommitTopicResult]) -> bool:
    """Everything exists that was asked for, so that the answers are those, in their order."""
    return len(asked) == len(answers) and all(
        len(one.partitions) == len(answer.partitions) for one, answer in zip(asked, answers, strict=True)
    )


def find_topic(image: Image, name: str, topic_id: bytes) -> TopicImage | None:
    return image.topics.get(topic_id) if topic_id else image.topic(name)
