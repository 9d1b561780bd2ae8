"""AlterPartitionReassignments: begin, replace and cancel reassignments of partitions (KIP-455).

Each partition is accepted or refused alone; the first slice's answer is the whole request's only where too much is
asked for. What begins here ends with an AlterPartition of the leader, or at once if nothing has to be copied: see
`assignment.py`. A broker of the target need not be alive; then the reassignment waits for it.

A cancelled reassignment may leave the replicas that came on the way out again. That is refused where too few of the
others are in sync, and one of those holds, or may hold, all that is acknowledged: fewer copies of it would be left than
min.insync.replicas.
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResult,
    ReassignableTopicResult,
)
from quorumlog.slices import Sliced
from quorumlog_quorum.controller.bulk_changes.raised_durability import rules_of
from quorumlog_quorum.controller.engine.draft import WORK_OF_A_TOPIC, Draft
from quorumlog_quorum.controller.engine.limits import MAX_REASSIGNED_PER_REQUEST
from quorumlog_quorum.controller.partitions.election import Brokers, TopicRules, Wish, copies, partition_change
from quorumlog_quorum.controller.partitions.placement import bad_assignment
from quorumlog_quorum.controller.partitions.reassignment import Assignment, cancelled, merged, present, without
from quorumlog_quorum.metadata.check import effective_min_isr
from quorumlog_quorum.metadata.image import TopicImage
from quorumlog_quorum.metadata.registration import IMPORTING, PartitionRegistration


def alter_reassignments(
    draft: Draft, request: AlterPartitionReassignmentsRequest
) -> Sliced[AlterPartitionReassignmentsResponse]:
    """Raises ApiError(POLICY_VIOLATION) for too many partitions."""
    count = sum(len(topic.partitions) for topic in request.topics)
    if count > MAX_REASSIGNED_PER_REQUEST or len(request.topics) > MAX_REASSIGNED_PER_REQUEST:
        text = f"{max(count, len(request.topics))} partitions in one request, limit {MAX_REASSIGNED_PER_REQUEST}"
        raise ApiError(ErrorCode.POLICY_VIOLATION, f"{text}; send several requests")
    may_change_factor = request.allow_replication_factor_change
    topics = []
    for topic in request.topics:
        results = []
        for asked in topic.partitions:
            if draft.full:
                yield
            draft.spend(WORK_OF_A_TOPIC)
            results.append(_result(draft, topic.name, asked, may_change_factor))
        topics.append(ReassignableTopicResult(name=topic.name, partitions=tuple(results)))
    return AlterPartitionReassignmentsResponse(allow_replication_factor_change=may_change_factor, topics=tuple(topics))


def _result(
    draft: Draft, name: str, asked: ReassignablePartition, may_change_factor: bool
) -> ReassignablePartitionResult:
    try:
        _reassign(draft, name, asked, may_change_factor)
    except ApiError as error:
        return ReassignablePartitionResult(index=asked.index, error_code=error.code, error_message=error.message)
    return ReassignablePartitionResult(index=asked.index)


def _reassign(draft: Draft, name: str, asked: ReassignablePartition, may_change_factor: bool) -> None:
    """Check everything, then write. Raises ApiError."""
    topic, partition = find_partition(draft, name, asked.index)
    if partition.leader_recovery_state == IMPORTING:
        raise bad_assignment(f"{name}-{asked.index} takes an import; reassign it when that is finished")
    rules = rules_of(draft, name)
    if asked.cancel:
        assignment = _cancelled(f"{name}-{asked.index}", partition, rules)
    else:
        now = present(partition)
        _check_target(draft.brokers, now, asked.replicas)
        if not may_change_factor and len(asked.replicas) != len(now.before):
            text = f"{len(asked.replicas)} replicas, the partition has {len(now.before)}, and that may not change"
            raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
        assignment = merged(now, asked.replicas)
    wish = Wish(assignment=assignment)
    record = partition_change(topic.id, asked.index, partition, draft.brokers, rules, wish)
    if record is not None:
        draft.add(record)


def find_partition(draft: Draft, name: str, index: int) -> tuple[TopicImage, PartitionRegistration]:
    """Raises ApiError(UNKNOWN_TOPIC_OR_PARTITION)."""
    topic = draft.image.topic(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic is named {name}")
    partition = topic.partitions.get(index)
    if partition is None:
        text = f"topic {name} has {len(topic.partitions)} partitions, from 0 on; none is {index}"
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    return topic, partition


def _check_target(brokers: Brokers, now: Assignment, target: tuple[NodeId, ...]) -> None:
    """Raises ApiError(INVALID_REPLICA_ASSIGNMENT)."""
    if not target:
        raise bad_assignment("the target has no replicas; name at least one broker, or cancel")
    for broker_id in target:
        if target.count(broker_id) > 1:
            raise bad_assignment(f"broker {broker_id} is in the target {list(target)} more than once")
        broker = brokers.get(broker_id)
        if broker is None:
            raise bad_assignment(f"broker {broker_id} of the target {list(target)} is not registered")
        if broker_id not in now.replicas and not broker.log_directories:
            raise bad_assignment(f"broker {broker_id} of the target {list(target)} has no log directory that is online")
        if broker_id not in now.replicas and broker.is_cordoned:
            raise bad_assignment(f"broker {broker_id} of the target {list(target)} has only cordoned log directories")


def _cancelled(name: str, partition: PartitionRegistration, rules: TopicRules) -> Assignment:
    """Raises ApiError."""
    now = present(partition)
    if not now.under_way:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"{name} is not being reassigned")
    after = cancelled(now)
    if not after.replicas:
        raise bad_assignment(f"{name} has no replica that was there before; reassign it to other brokers instead")
    stay = without(partition.isr, now.adding)
    gives_a_copy_up = any(one in now.adding for one in copies(partition, now, rules))
    if gives_a_copy_up and not rules.unclean:
        needed = effective_min_isr(rules.min_insync_replicas, after.replicas)
        if len(stay) < needed:
            raise bad_assignment(
                f"{name} cannot go back to {list(after.replicas)}: {len(stay)} of them are in sync, {needed} are needed"
                " to keep what is acknowledged; wait until they are, or reassign to other brokers"
            )
    return after
