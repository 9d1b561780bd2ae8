"""CreatePartitions: adds partitions to existing topics. Partitions cannot be removed.

Each topic grows as a whole or is refused alone; a request that is too large is refused as a whole. New
partitions have as many replicas as the topic's first one, or as the target of its reassignment.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.admin import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsResult,
    PartitionsOfTopic,
)
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.controller.engine.limits import MAX_PARTITIONS_PER_REQUEST
from quorumlog_quorum.controller.partitions.election import Brokers
from quorumlog_quorum.controller.partitions.placement import (
    bad_assignment,
    check_replicas,
    in_order,
    partition_record,
    place_replicas,
)
from quorumlog_quorum.controller.partitions.reassignment import present
from quorumlog_quorum.metadata.image import Image, TopicImage
from quorumlog_quorum.metadata.registration import IMPORTING

if TYPE_CHECKING:
    from random import Random


def create_partitions(draft: Draft, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """With `validate_only` the response is the same, but nothing is changed. Raises ApiError."""
    _check_size(draft.image, request)
    target = draft.preview() if request.validate_only else draft
    counts = Counter(topic.name for topic in request.topics)
    results = []
    for topic in request.topics:
        try:
            if counts[topic.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"topic {topic.name} is in the request twice")
            _grow(target, topic)
            results.append(CreatePartitionsResult(name=topic.name))
        except ApiError as error:
            results.append(CreatePartitionsResult(name=topic.name, error_code=error.code, error_message=error.message))
    return CreatePartitionsResponse(results=tuple(results))


def _check_size(image: Image, request: CreatePartitionsRequest) -> None:
    total = 0
    for asked in request.topics:
        topic = image.topic(asked.name)
        total += max(0, asked.count - (len(topic.partitions) if topic is not None else 0))
    if total > MAX_PARTITIONS_PER_REQUEST or len(request.topics) > MAX_PARTITIONS_PER_REQUEST:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION, f"{total} partitions in one request, limit {MAX_PARTITIONS_PER_REQUEST}"
        )


def _grow(draft: Draft, asked: PartitionsOfTopic) -> None:
    """Check everything, then write. Raises ApiError."""
    image = draft.image
    topic = image.topic(asked.name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic is named {asked.name}")
    first = len(topic.partitions)
    if asked.count <= first:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS, f"topic {topic.name} has {first} partitions; {asked.count} are not more"
        )
    if any(partition.leader_recovery_state == IMPORTING for partition in topic.partitions.values()):
        text = f"topic {topic.name} takes an import; add partitions when that is finished"
        raise ApiError(ErrorCode.INVALID_PARTITIONS, text)
    brokers = draft.brokers
    placement = _placement(brokers, topic, asked, draft.state.rng)
    draft.charge(topic.name, len(placement))
    for index, replicas in enumerate(placement, start=first):
        draft.add(partition_record(brokers, topic.id, index, replicas))


def _placement(brokers: Brokers, topic: TopicImage, asked: PartitionsOfTopic, rng: Random) -> list[tuple[NodeId, ...]]:
    added = asked.count - len(topic.partitions)
    replication_factor = len(present(topic.partitions[0]).target)
    if not asked.assignments:
        return list(place_replicas(in_order(brokers), added, replication_factor, rng))
    if len(asked.assignments) != added:
        raise bad_assignment(f"{added} partitions are added, {len(asked.assignments)} are assigned")
    placement = [assignment.broker_ids for assignment in asked.assignments]
    for index, replicas in enumerate(placement, start=len(topic.partitions)):
        check_replicas(brokers, index, replicas)
        if len(replicas) != replication_factor:
            raise bad_assignment(
                f"partition {index} has {len(replicas)} replicas, the topic's have {replication_factor}"
            )
    return placement
