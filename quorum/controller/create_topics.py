"""CreateTopics: names, sizes, settings and places of new topics (KRAFT 2.6, FEATURES 1.14).

Each topic is created as a whole or refused alone; a request that is too large is refused as a whole.
The ISR of a new partition is its active replicas, in the order of placement; the first of them leads.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from quorum.controller.config import MAX_PARTITIONS_PER_REQUEST, ControllerConfig
from quorum.controller.draft import Draft
from quorum.controller.election import Brokers
from quorum.controller.new_partition import bad_assignment, check_replicas, partition_record
from quorum.controller.placement import in_order, place_replicas
from quorum.controller.state import ControllerState
from quorum.metadata.image import TOPIC_RESOURCE, Image
from quorum.metadata.topic_settings import Layers
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.cluster import (
    CreatableTopic,
    CreateTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribedConfig,
)
from quorumlog.messages.metadata_records import ConfigRecord, TopicRecord
from quorumlog.topic_config import validate_all
from quorumlog.topic_name import collision_key, validate_topic_name

if TYPE_CHECKING:
    pass

Placement = list[tuple[NodeId, ...]]

_ON_TOPIC, _ON_CLUSTER, _DEFAULT = 1, 3, 5  # where a setting comes from, by Kafka's numbers


def create_topics(draft: Draft, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """With `validate_only` the response is the same, but nothing is created. Raises ApiError."""
    _check_size(request, draft.state.config)
    target = draft.preview() if request.validate_only else draft
    counts = Counter(topic.name for topic in request.topics)
    results = []
    for topic in request.topics:
        try:
            if counts[topic.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"topic {topic.name} is in the request twice")
            results.append(_create(target, topic))
        except ApiError as error:
            results.append(CreateTopicResult(name=topic.name, error_code=error.code, error_message=error.message))
    return CreateTopicsResponse(topics=tuple(results))


def _check_size(request: CreateTopicsRequest, config: ControllerConfig) -> None:
    total = sum(_partition_count(topic, config) for topic in request.topics)
    if total > MAX_PARTITIONS_PER_REQUEST or len(request.topics) > MAX_PARTITIONS_PER_REQUEST:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION, f"{total} partitions in one request, limit {MAX_PARTITIONS_PER_REQUEST}"
        )


def _partition_count(topic: CreatableTopic, config: ControllerConfig) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return config.num_partitions if topic.num_partitions == -1 else max(topic.num_partitions, 0)


def _create(draft: Draft, topic: CreatableTopic) -> CreateTopicResult:
    """Check everything, then write. Raises ApiError."""
    brokers = draft.brokers
    _check_name(draft.image, topic.name)
    settings = _settings(topic)
    if topic.assignments:
        placement = _assigned_placement(brokers, topic)
    else:
        placement = _chosen_placement(brokers, topic, draft.state)
    topic_id = draft.state.new_topic_id()
    draft.add(TopicRecord(name=topic.name, topic_id=topic_id))
    for name in sorted(settings):
        draft.add(ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic.name, name=name, value=settings[name]))
    for index, replicas in enumerate(placement):
        draft.add(partition_record(brokers, topic_id, index, replicas))
    return CreateTopicResult(
        name=topic.name,
        topic_id=topic_id,
        num_partitions=len(placement),
        replication_factor=len(placement[0]),
        configs=_effective(draft.image, topic.name),
    )


def _check_name(image: Image, name: str) -> None:
    validate_topic_name(name)
    if name in image.topic_ids:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} exists")
    if "." in name or "_" in name:
        key = collision_key(name)
        clash = min((other for other in image.topic_ids if collision_key(other) == key), default=None)
        if clash is not None:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic {name} collides with {clash}")


def _settings(topic: CreatableTopic) -> dict[str, str]:
    """The settings to write; an entry without a value asks for the default, which needs no record. Raises ApiError."""
    settings: dict[str, str] = {}
    for entry in topic.configs:
        if entry.name in settings:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{entry.name} is set twice")
        if entry.value is not None:
            settings[entry.name] = entry.value
    validate_all(settings)
    return settings


def _chosen_placement(brokers: Brokers, topic: CreatableTopic, state: ControllerState) -> Placement:
    config = state.config
    partitions = config.num_partitions if topic.num_partitions == -1 else topic.num_partitions
    factor = config.default_replication_factor if topic.replication_factor == -1 else topic.replication_factor
    if partitions < 1:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"{partitions} partitions; one or more, or -1 for the default")
    if factor < 1:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"replication factor {factor}; one or more, or -1 for the default"
        )
    return place_replicas(in_order(brokers), partitions, factor, state.rng)


def _assigned_placement(brokers: Brokers, topic: CreatableTopic) -> Placement:
    if topic.num_partitions != -1 or topic.replication_factor != -1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "assignments say how many partitions and replicas there are")
    by_index = {assignment.partition: assignment.broker_ids for assignment in topic.assignments}
    if sorted(by_index) != list(range(len(topic.assignments))):
        raise bad_assignment("partitions must be numbered from 0 without a gap")
    if len({len(replicas) for replicas in by_index.values()}) > 1:
        raise bad_assignment("partitions have different numbers of replicas")
    placement = [by_index[index] for index in range(len(by_index))]
    for index, replicas in enumerate(placement):
        check_replicas(brokers, index, replicas)
    return placement


def _effective(image: Image, name: str) -> tuple[DescribedConfig, ...]:
    return tuple(sorted(Layers(image=image, file={}).of_topic(name), key=lambda config: config.name))
