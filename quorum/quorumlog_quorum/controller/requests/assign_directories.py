"""AssignReplicasToDirectories: a broker says in which of its directories it keeps replicas (KIP-858).

A replica whose recorded directory is gone from the broker, and that turns up in another one, is a new and empty copy:
it is no longer eligible as leader, nor the last known one. A replica that was LOST may turn up with the log that it
had: then it is what it was before.

LOST takes the replica out of its ISR, and elects another leader, as the failure of its whole directory does
(decision 18).
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import UUID_BYTES, NodeId, Uuid
from quorumlog.messages.controller import (
    AssignReplicasToDirectoriesRequest,
    AssignReplicasToDirectoriesResponse,
    DirectoryAssignment,
    DirectoryAssignmentResult,
)
from quorumlog.slices import Sliced
from quorumlog_quorum.controller.bulk_changes.change_partitions import want_recovery
from quorumlog_quorum.controller.bulk_changes.raised_durability import rules_of
from quorumlog_quorum.controller.engine.draft import WORK_OF_A_TOPIC, Draft
from quorumlog_quorum.controller.engine.limits import MAX_ASSIGNMENTS_PER_REQUEST
from quorumlog_quorum.controller.partitions.election import Wish, partition_change
from quorumlog_quorum.controller.requests.broker_epoch import registered
from quorumlog_quorum.metadata.registration import (
    LOST,
    BrokerRegistration,
    PartitionRegistration,
    is_reserved_directory,
)


def assign_directories(
    draft: Draft, request: AssignReplicasToDirectoriesRequest
) -> Sliced[AssignReplicasToDirectoriesResponse]:
    """Each assignment succeeds or fails alone. Raises ApiError for a stale sender or too many assignments."""
    broker = registered(draft.image, request.broker_id, request.broker_epoch)
    if len(request.assignments) > MAX_ASSIGNMENTS_PER_REQUEST:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"{len(request.assignments)} assignments, limit {MAX_ASSIGNMENTS_PER_REQUEST}"
        )
    results = []
    for one in request.assignments:
        if draft.full:
            yield
        draft.spend(WORK_OF_A_TOPIC)
        code = _assign(draft, broker, one)
        results.append(DirectoryAssignmentResult(topic_id=one.topic_id, index=one.index, error_code=code))
    return AssignReplicasToDirectoriesResponse(results=tuple(results))


def _assign(draft: Draft, broker: BrokerRegistration, asked: DirectoryAssignment) -> ErrorCode:
    topic = draft.image.topics.get(asked.topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = topic.partitions.get(asked.index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker.broker_id not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if len(asked.directory_id) != UUID_BYTES:
        return ErrorCode.INVALID_REQUEST
    if is_reserved_directory(asked.directory_id) and asked.directory_id != LOST:
        return ErrorCode.INVALID_REQUEST
    rules = rules_of(draft, topic.name)
    may_lack_records = asked.directory_id == LOST and not rules.on_disk(broker)
    wish = Wish(
        directories=_with_directory(partition, broker.broker_id, asked.directory_id),
        emptied=(broker.broker_id,) if _is_new_copy(broker, partition, asked) else (),
        not_eligible=(broker.broker_id,) if may_lack_records else (),
    )
    record = partition_change(topic.id, asked.index, partition, draft.brokers, rules, wish)
    if record is not None:
        draft.add(record)
        want_recovery(draft, partition, record, rules)
    return ErrorCode.NONE


def _is_new_copy(broker: BrokerRegistration, partition: PartitionRegistration, asked: DirectoryAssignment) -> bool:
    before = partition.directory(broker.broker_id)
    if before == LOST and asked.keeps_log:
        return False
    return not broker.is_online(before) and before != asked.directory_id


def _with_directory(partition: PartitionRegistration, broker_id: NodeId, directory: Uuid) -> tuple[Uuid, ...]:
    pairs = zip(partition.replicas, partition.directories, strict=True)
    return tuple(directory if replica == broker_id else old for replica, old in pairs)
