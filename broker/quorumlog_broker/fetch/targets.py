"""What a fetch request names: a topic, by id or by name, and what is asked of each of its partitions."""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.ids import Uuid
from quorumlog.messages.fetch import FetchPartition, FetchPartitionResponse, FetchRequest
from quorumlog.topic_name import MAX_NAME_CHARACTERS

Topic = Uuid | str  # 16 bytes of topic id; a name from clients before version 13
Key = tuple[Topic, int]  # topic, index of the partition
TopicResponse = tuple[Topic, FetchPartitionResponse]


class FetchTarget(NamedTuple):
    """One partition of a fetch request."""

    topic: Topic
    partition: FetchPartition

    @property
    def key(self) -> Key:
        return self.topic, self.partition.index


def is_too_long(key: Key) -> bool:
    """No topic has such a name or id: a client may make it as long as a request."""
    return len(key[0]) > MAX_NAME_CHARACTERS


def targets_of(request: FetchRequest) -> list[FetchTarget]:
    """Every partition that the request names, in its order."""
    return [
        FetchTarget(topic.topic_id or topic.name, partition)
        for topic in request.topics
        for partition in topic.partitions
    ]


def forgotten_of(request: FetchRequest) -> list[Key]:
    """Every partition that the request takes out of its session, in its order."""
    return [(topic.topic_id or topic.name, index) for topic in request.forgotten for index in topic.partitions]
