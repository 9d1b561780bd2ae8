"""ListPartitionReassignments: what is being reassigned now. The index knows which partitions, so nothing is searched.

A partition that a request names and that is not being reassigned, or does not exist, is left out, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quorumlog.messages.reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from quorumlog.slices import Sliced
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.metadata.image import TopicImage
from quorumlog_quorum.metadata.partition_index import indexes_in


def list_reassignments(
    draft: Draft, request: ListPartitionReassignmentsRequest
) -> Sliced[ListPartitionReassignmentsResponse]:
    topics = []
    for name, wanted in _wanted(draft, request):
        if draft.full:
            yield
        topic = draft.image.topic(name)
        if topic is not None:
            found = _of_topic(draft, topic, wanted)
            if found:
                topics.append(OngoingTopicReassignment(name=name, partitions=found))
    return ListPartitionReassignmentsResponse(topics=tuple(topics))


def _wanted(draft: Draft, request: ListPartitionReassignmentsRequest) -> Iterable[tuple[str, tuple[int, ...] | None]]:
    """(name of a topic, indexes of partitions or None for all), in the order of the answer."""
    if not request.all_topics:
        return [(topic.name, topic.partitions) for topic in request.topics]
    image = draft.image
    return [(name, None) for name in sorted(image.topics[topic_id].name for topic_id in image.index.reassigning)]


def _of_topic(
    draft: Draft, topic: TopicImage, wanted: tuple[int, ...] | None
) -> tuple[OngoingPartitionReassignment, ...]:
    draft.spend(1)
    under_way = draft.image.index.reassigning.get(topic.id, 0)
    return tuple(_ongoing(draft, topic, _chosen(under_way, wanted)))


def _chosen(under_way: int, wanted: tuple[int, ...] | None) -> Iterator[int]:
    if wanted is None:
        yield from indexes_in(under_way)
    else:
        yield from (index for index in wanted if index >= 0 and under_way >> index & 1)


def _ongoing(draft: Draft, topic: TopicImage, indexes: Iterable[int]) -> Iterator[OngoingPartitionReassignment]:
    for index in indexes:
        draft.spend(1)
        partition = topic.partitions[index]
        yield OngoingPartitionReassignment(
            index=index,
            replicas=partition.replicas,
            adding_replicas=partition.adding_replicas,
            removing_replicas=partition.removing_replicas,
        )
