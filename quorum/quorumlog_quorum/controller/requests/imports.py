"""Import: a topic without leaders that takes the copy of a foreign log, and the change that gives it leaders.

A partition that takes an import is in the state IMPORTING (`registration.py`): it has no leader, no ISR and no ELR, and
no election gives it one (`election.py`). So nothing can be produced to it or fetched from it, and its replicas do not
follow anybody. Their brokers append what an importer sends (quorumlog_broker/produce/import_path.py).

`begin_import` makes the topic in one batch of records. The leader epoch of a partition begins with the largest that is
imported, so the first leader's is above it; the next producer id rises above every imported one.

`finish_import` gives every partition its leader at once, or nothing. What each broker has said of its replica counts
only for the life of the broker that said it: a broker that has started again since may hold less. Decision 37.
"""

from __future__ import annotations

from dataclasses import replace

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_NODE, show_uuid
from quorumlog.messages.cluster import CreatableTopic, ReplicaAssignment
from quorumlog.messages.imports import (
    BeginImportRequest,
    BeginImportResponse,
    FinishImportRequest,
    FinishImportResponse,
    ImportedPartition,
    SealedReplica,
)
from quorumlog.messages.metadata_records import ProducerIdsRecord, TopicRecord
from quorumlog_quorum.controller.bulk_changes.raised_durability import rules_of
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.controller.partitions.election import Brokers, Wish, partition_change
from quorumlog_quorum.controller.partitions.placement import partition_record
from quorumlog_quorum.controller.requests.create_topics import (
    add_settings,
    assigned_placement,
    check_name,
    chosen_placement,
    settings_of,
)
from quorumlog_quorum.metadata.features import IMPORT_LEVEL
from quorumlog_quorum.metadata.image import TopicImage
from quorumlog_quorum.metadata.registration import IMPORTING, RECOVERED, PartitionRegistration

MAX_PARTITIONS = 10_000  # of one import, as of one request that creates topics
MAX_LEADER_EPOCH = 2**31 - 2  # so that there is one above it


def begin_import(draft: Draft, request: BeginImportRequest) -> BeginImportResponse:
    """Raises ApiError: TOPIC_ALREADY_EXISTS for a topic that is there and takes no import of this shape, and what
    CreateTopics refuses."""
    if draft.level < IMPORT_LEVEL:
        text = f"metadata.version is {draft.level}, an import needs {IMPORT_LEVEL}: upgrade it with `quorumlog feature`"
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
    _check_epochs(request)
    known = draft.image.topic(request.name)
    if known is not None:
        return _resumed(known, request)
    check_name(draft.image, request.name)
    topic = CreatableTopic(
        name=request.name,
        num_partitions=-1 if request.assignments else len(request.last_epochs),
        replication_factor=-1 if request.assignments else request.replication_factor,
        assignments=request.assignments,
        configs=request.configs,
    )
    settings = settings_of(topic)
    if request.assignments:
        places = list(assigned_placement(draft.brokers, topic))
    else:
        places = list(chosen_placement(draft.brokers, topic, draft.state))
    if len(places) != len(request.last_epochs):
        text = f"replicas of {len(places)} partitions, and {len(request.last_epochs)} are imported"
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    topic_id = draft.state.new_topic_id()
    draft.add(TopicRecord(name=request.name, topic_id=topic_id))
    add_settings(draft, request.name, settings)
    for index, (replicas, last_epoch) in enumerate(zip(places, request.last_epochs, strict=True)):
        epoch = max(0, last_epoch)
        record = partition_record(draft.brokers, topic_id, index, replicas)
        draft.add(
            replace(
                record, isr=(), leader=NO_NODE, leader_epoch=epoch, partition_epoch=epoch,
                leader_recovery_state=IMPORTING,
            )
        )  # fmt: skip
    if request.next_producer_id > draft.image.next_producer_id:
        draft.add(ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=request.next_producer_id))
    return BeginImportResponse(topic_id=topic_id, assignments=_assignments(draft.image.topics[topic_id]))


def finish_import(draft: Draft, request: FinishImportRequest) -> FinishImportResponse:
    """Raises ApiError; then no partition has a leader. STALE_BROKER_EPOCH: ask that broker again what it holds."""
    topic = draft.image.topics.get(request.topic_id)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {show_uuid(request.topic_id)}")
    told = {partition.index: partition for partition in request.partitions}
    waiting = [(i, p) for i, p in topic.sorted_partitions() if p.leader_recovery_state == IMPORTING]
    needed = {index for index, _ in waiting} or set(topic.partitions)  # a partition that was added meanwhile takes none
    if len(told) < len(request.partitions) or not needed <= set(told) <= set(topic.partitions):
        text = f"{topic.name} has {len(needed)} partitions that take an import; name each once"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    for index, partition in waiting:
        _check_sealed(draft.brokers, f"{topic.name}-{index}", partition, told[index])
    rules = rules_of(draft, topic.name)
    for index, partition in waiting:
        wish = Wish(isr=partition.replicas, leader_recovery_state=RECOVERED)
        record = partition_change(topic.id, index, partition, draft.brokers, rules, wish)
        assert record is not None and record.leader is not None
        draft.add(record)
    return FinishImportResponse()


def _check_epochs(request: BeginImportRequest) -> None:
    if not 0 < len(request.last_epochs) <= MAX_PARTITIONS:
        text = f"{len(request.last_epochs)} partitions; 1 to {MAX_PARTITIONS}"
        raise ApiError(ErrorCode.INVALID_PARTITIONS, text)
    if not all(-1 <= epoch <= MAX_LEADER_EPOCH for epoch in request.last_epochs):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"leader epochs {request.last_epochs}")
    if not 0 <= request.next_producer_id < 2**63 - 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"producer id {request.next_producer_id}")


def _resumed(topic: TopicImage, request: BeginImportRequest) -> BeginImportResponse:
    partitions = topic.sorted_partitions()
    takes_it = all(
        partition.leader_recovery_state == IMPORTING and partition.leader_epoch == max(0, last_epoch)
        for (_, partition), last_epoch in zip(partitions, request.last_epochs, strict=False)
    )
    if not takes_it or len(partitions) != len(request.last_epochs):
        text = f"topic {topic.name} exists; import into another name, or delete it first"
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, text)
    return BeginImportResponse(topic_id=topic.id, assignments=_assignments(topic), resumed=True)


def _assignments(topic: TopicImage) -> tuple[ReplicaAssignment, ...]:
    return tuple(
        ReplicaAssignment(partition=index, broker_ids=partition.replicas)
        for index, partition in topic.sorted_partitions()
    )


def _check_sealed(brokers: Brokers, name: str, partition: PartitionRegistration, told: ImportedPartition) -> None:
    """Every replica holds everything, by the word of a broker that lives now. Raises ApiError."""
    by_broker = {replica.broker_id: replica for replica in told.replicas}
    if set(by_broker) != set(partition.replicas) or len(by_broker) < len(told.replicas):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{name}: the replicas are {partition.replicas}; name each once")
    if len({replica.end_offset for replica in told.replicas}) > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{name}: its replicas end at different offsets")
    for broker_id in partition.replicas:
        _check_life(brokers, name, partition, by_broker[broker_id])


def _check_life(brokers: Brokers, name: str, partition: PartitionRegistration, told: SealedReplica) -> None:
    broker = brokers.get(told.broker_id)
    if broker is None or not broker.active or not broker.is_online(partition.directory(told.broker_id)):
        text = f"{name}: broker {told.broker_id} or its directory is not online; finish the import when it is"
        raise ApiError(ErrorCode.REPLICA_NOT_AVAILABLE, text)
    if told.broker_epoch != broker.broker_epoch:
        text = f"{name}: broker {told.broker_id} has started again since it said what it holds; ask it again"
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH, text)
