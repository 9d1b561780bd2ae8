"""CreateTopics: names, sizes, settings and places of new topics (Kafka's `ReplicationControlManager`).

Each topic is created as a whole or refused alone; a request that is too large is refused as a whole.
The ISR of a new partition is its active replicas, in the order of placement; the first of them leads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from quorumlog.configs.topic import validate_all, validate_words
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
from quorumlog.settings.controller import ControllerConfig
from quorumlog.slices import Sliced
from quorumlog.topic_name import collision_key, validate_topic_name
from quorumlog_quorum.controller.engine.controller_state import ControllerState
from quorumlog_quorum.controller.engine.draft import WORK_OF_A_RECORD, WORK_OF_A_TOPIC, Draft
from quorumlog_quorum.controller.engine.limits import MAX_PARTITIONS_PER_REQUEST
from quorumlog_quorum.controller.partitions.election import Brokers
from quorumlog_quorum.controller.partitions.placement import (
    bad_assignment,
    check_replicas,
    in_order,
    partition_record,
    place_replicas,
)
from quorumlog_quorum.metadata.image import TOPIC_RESOURCE, Image
from quorumlog_quorum.metadata.topic_settings import Layers

MAX_TRIES = 3  # to make a request's records while nothing that they depend on changes; the last one does not pause
WORK_OF_A_DESCRIPTION = 50  # of a topic's settings

Placement = Iterable[tuple[NodeId, ...]]


def create_topics(draft: Draft, request: CreateTopicsRequest) -> Sliced[CreateTopicsResponse]:
    """With `validate_only` the response is the same, but nothing is created. Raises ApiError.

    The records are one batch, made before in slices: places, records, their replay and their encoding are the work, and
    to append them is little. What they were made for must still hold then; else they are made again, in the end without
    a pause. The settings that the response describes follow in slices, too.
    """
    _check_size(request, draft.state.config)
    for tries_left in reversed(range(MAX_TRIES)):
        plan = _Plan(draft)
        yield from plan.make(draft, request, may_pause=tries_left > 0)
        if plan.fits(draft):
            break
    target = draft.preview() if request.validate_only else draft
    target.adopt(plan.records)
    return (yield from _response(draft, plan.results, target.image))


class _Plan:
    """The records of a request and its results, made for some brokers, names of topics and metadata.version."""

    def __init__(self, draft: Draft) -> None:
        self._image = draft.image
        self._brokers = draft.brokers
        self.records = draft.of_new_topics()
        self.results: list[CreateTopicResult] = []  # without settings

    def fits(self, draft: Draft) -> bool:
        return (
            draft.image.topic_ids is self._image.topic_ids
            and draft.brokers == self._brokers
            and draft.level == self.records.level
        )

    def make(self, draft: Draft, request: CreateTopicsRequest, *, may_pause: bool) -> Sliced[None]:
        counts = Counter(topic.name for topic in request.topics)
        for topic in request.topics:
            try:
                if counts[topic.name] > 1:
                    raise ApiError(ErrorCode.INVALID_REQUEST, f"topic {topic.name} is in the request twice")
                yield from self._add(draft, topic, may_pause)
            except ApiError as error:
                refused = CreateTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
                self.results.append(refused)

    def _add(self, draft: Draft, topic: CreatableTopic, may_pause: bool) -> Sliced[None]:
        """Add one topic, or nothing. Raises ApiError."""
        draft.spend(WORK_OF_A_TOPIC)
        for image in (self._image, self.records.image):
            check_name(image, topic.name)
        settings = settings_of(topic)
        placement = self._placement(topic, draft.state)
        added, topic_id = draft.of_new_topics(), draft.state.new_topic_id()
        added.add(TopicRecord(name=topic.name, topic_id=topic_id))
        add_settings(added, topic.name, settings)
        partitions, factor = 0, 0
        for index, replicas in enumerate(placement):
            draft.spend(WORK_OF_A_RECORD)
            if draft.full and may_pause:
                yield
            added.add(partition_record(self._brokers, topic_id, index, replicas))
            partitions, factor = index + 1, len(replicas)
        draft.charge(topic.name, partitions)
        self.records.adopt(added)
        result = CreateTopicResult(
            name=topic.name, topic_id=topic_id, num_partitions=partitions, replication_factor=factor
        )
        self.results.append(result)

    def _placement(self, topic: CreatableTopic, state: ControllerState) -> Placement:
        if topic.assignments:
            return assigned_placement(self._brokers, topic)
        return chosen_placement(self._brokers, topic, state)


def _response(draft: Draft, results: list[CreateTopicResult], image: Image) -> Sliced[CreateTopicsResponse]:
    """image: with the new topics."""
    described = []
    for result in results:
        if result.error_code == ErrorCode.NONE:
            draft.spend(WORK_OF_A_DESCRIPTION)
            if draft.full:
                yield
            result = replace(result, configs=_effective(image, result.name))
        described.append(result)
    return CreateTopicsResponse(topics=tuple(described))


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


def check_name(image: Image, name: str) -> None:
    validate_topic_name(name)
    if name in image.topic_ids:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} exists")
    if "." in name or "_" in name:
        key = collision_key(name)
        clash = min((other for other in image.topic_ids if collision_key(other) == key), default=None)
        if clash is not None:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic {name} collides with {clash}")


def settings_of(topic: CreatableTopic) -> dict[str, str]:
    """The settings to write: of one that is named twice the last value, as in Kafka. Raises ApiError."""
    settings: dict[str, str] = {}
    for entry in topic.configs:
        if entry.value is None:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{entry.name} has no value; leave it out for the default")
        settings[entry.name] = entry.value
    validate_all(settings)
    validate_words(settings)
    return settings


def add_settings(draft: Draft, topic: str, settings: Mapping[str, str]) -> None:
    for name in sorted(settings):
        value = settings[name]
        draft.add(ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic, name=name, value=value))


def chosen_placement(brokers: Brokers, topic: CreatableTopic, state: ControllerState) -> Placement:
    config = state.config
    partitions = config.num_partitions if topic.num_partitions == -1 else topic.num_partitions
    factor = config.default_replication_factor if topic.replication_factor == -1 else topic.replication_factor
    if factor < 1:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"replication factor {factor}; one or more, or -1 for the default"
        )
    if partitions < 1:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"{partitions} partitions; one or more, or -1 for the default")
    return place_replicas(in_order(brokers), partitions, factor, state.rng)


def assigned_placement(brokers: Brokers, topic: CreatableTopic) -> Placement:
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
