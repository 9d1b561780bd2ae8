"""AlterPartition: a leader proposes a new ISR (KIP-497, KIP-841, KIP-903, KIP-966).

The checks are in the order of Kafka's `ReplicationControlManager`, because the order decides what a leader learns: that
it is ahead of this controller, that it was deposed, or that its view is old.

A leader that has not applied the newest min.insync.replicas may go on to commit by a lower one. So an ISR below the
minimum, which leaves an ELR that has to hold all that is committed, is granted only to a leader that has applied the
metadata up to the last raise (decision 83); the others ask again. Whatever else makes an ISR smaller is told to its
leader by the metadata alone, which holds the raise first.
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.controller import (
    AlterPartition,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    IsrMember,
)
from quorumlog.messages.metadata_records import PartitionChangeRecord
from quorumlog.slices import Sliced
from quorumlog_quorum.controller.bulk_changes.raised_durability import rules_of
from quorumlog_quorum.controller.engine.draft import WORK_OF_A_TOPIC, Draft
from quorumlog_quorum.controller.partitions.election import Brokers, Wish, partition_change
from quorumlog_quorum.controller.requests.broker_epoch import registered
from quorumlog_quorum.metadata.registration import RECOVERED, RECOVERING, PartitionRegistration


def alter_partitions(draft: Draft, request: AlterPartitionRequest) -> Sliced[AlterPartitionResponse]:
    """Each partition succeeds or fails alone. Raises ApiError if the sender is not the registered broker."""
    try:
        registered(draft.image, request.broker_id, request.broker_epoch)
    except ApiError as error:  # Kafka gives an unregistered leader the same answer
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH, error.message) from error
    told = max(request.metadata_end, draft.state.sessions.metadata_end(request.broker_id))
    knows_the_minimum = told >= draft.state.minimum_raised_end
    results = []
    for one in request.partitions:
        if draft.full:
            yield
        draft.spend(WORK_OF_A_TOPIC)
        results.append(_alter(draft, request.broker_id, one, knows_the_minimum))
    return AlterPartitionResponse(partitions=tuple(results))


def _alter(draft: Draft, sender: NodeId, asked: AlterPartition, knows_the_minimum: bool) -> AlterPartitionResult:
    topic = draft.image.topics.get(asked.topic_id)
    if topic is None:
        return _refused(asked, ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(asked.index)
    if partition is None:
        return _refused(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    code = _fence(draft.brokers, sender, asked, partition)
    if code is not ErrorCode.NONE:
        return _refused(asked, code)
    wish = Wish(
        isr=tuple(member.broker_id for member in asked.new_isr), leader_recovery_state=asked.leader_recovery_state
    )
    rules = rules_of(draft, topic.name)
    record = partition_change(topic.id, asked.index, partition, draft.brokers, rules, wish)
    if record is not None:
        if not knows_the_minimum and _leaves_an_elr(record, partition):
            return _refused(asked, ErrorCode.OPERATION_NOT_ATTEMPTED)
        draft.add(record)
    after = draft.image.topics[asked.topic_id].partitions[asked.index]
    if after.leader != sender:  # the new ISR ended a reassignment that does not keep the sender, or not as leader
        return _refused(asked, ErrorCode.NEW_LEADER_ELECTED)
    return AlterPartitionResult(
        topic_id=asked.topic_id,
        index=asked.index,
        leader_id=after.leader,
        leader_epoch=after.leader_epoch,
        partition_epoch=after.partition_epoch,
        isr=after.isr,
        leader_recovery_state=after.leader_recovery_state,
    )


def _leaves_an_elr(record: PartitionChangeRecord, partition: PartitionRegistration) -> bool:
    elr = record.eligible_leader_replicas
    return bool(partition.eligible_leader_replicas if elr is None else elr.nodes)


def _refused(asked: AlterPartition, code: ErrorCode) -> AlterPartitionResult:
    return AlterPartitionResult(topic_id=asked.topic_id, index=asked.index, error_code=code)


def _fence(brokers: Brokers, sender: NodeId, asked: AlterPartition, partition: PartitionRegistration) -> ErrorCode:
    """The error of the first check that the proposal fails; NONE: it passes all."""
    new_isr = [member.broker_id for member in asked.new_isr]
    if asked.leader_epoch > partition.leader_epoch or asked.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER  # the leader has seen more than we have: we are not active any more
    if asked.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if sender != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if asked.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if len(set(new_isr)) < len(new_isr) or not set(new_isr) <= set(partition.replicas) or sender not in new_isr:
        return ErrorCode.INVALID_REQUEST
    if not _recovery_is_sound(asked, partition):
        return ErrorCode.INVALID_REQUEST
    if not all(_is_eligible(brokers, member, partition) for member in asked.new_isr):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _recovery_is_sound(asked: AlterPartition, partition: PartitionRegistration) -> bool:
    state = asked.leader_recovery_state
    if state not in (RECOVERED, RECOVERING):
        return False
    return state == RECOVERED or (partition.leader_recovery_state == RECOVERING and len(asked.new_isr) == 1)


def _is_eligible(brokers: Brokers, member: IsrMember, partition: PartitionRegistration) -> bool:
    broker = brokers.get(member.broker_id)
    return (
        broker is not None
        and broker.active
        and member.broker_epoch in (-1, broker.broker_epoch)
        and broker.is_online(partition.directory(member.broker_id))
    )
