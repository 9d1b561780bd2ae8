"""ElectLeaders: an operator asks for the preferred leaders, or for any leader where no other one is left (KIP-460).

An unclean election is held only where no replica holds every committed record any more: ISR and ELR are empty
(KIP-966). Where a replica of the ELR is away, it or its disk has to come back, or its broker be unregistered. The
answer says of each unclean leader what may be lost.
"""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_NODE
from quorumlog.messages.reassignments import (
    ElectionPartitionResult,
    ElectionTopicResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
)
from quorumlog.slices import Sliced
from quorumlog_quorum.controller.bulk_changes.raised_durability import rules_of
from quorumlog_quorum.controller.engine.draft import WORK_OF_A_TOPIC, Draft
from quorumlog_quorum.controller.engine.limits import MAX_ELECTIONS_PER_REQUEST
from quorumlog_quorum.controller.partitions.election import Election, Wish, partition_change
from quorumlog_quorum.controller.requests.alter_reassignments import find_partition
from quorumlog_quorum.metadata.registration import RECOVERING, PartitionRegistration

ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}  # Kafka's numbers


def elect_leaders(draft: Draft, request: ElectLeadersRequest) -> Sliced[ElectLeadersResponse]:
    """Each partition has a result of its own. Raises ApiError for an election of another kind, or too many."""
    election = ELECTIONS.get(request.election_type)
    if election is None:
        text = f"election type {request.election_type}: 0 is preferred, 1 is unclean"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    if request.all_partitions:
        return (yield from _all(draft, election))
    count = sum(len(topic.partitions) for topic in request.topics)
    if max(count, len(request.topics)) > MAX_ELECTIONS_PER_REQUEST:
        text = f"{count} partitions in one request, limit {MAX_ELECTIONS_PER_REQUEST}; send several requests"
        raise ApiError(ErrorCode.POLICY_VIOLATION, text)
    topics = []
    for topic in request.topics:
        results = []
        for index in topic.partitions:
            if draft.full:
                yield
            draft.spend(WORK_OF_A_TOPIC)
            results.append(_result(draft, topic.name, index, election))
        topics.append(ElectionTopicResult(name=topic.name, partitions=tuple(results)))
    return ElectLeadersResponse(topics=tuple(topics))


def _all(draft: Draft, election: Election) -> Sliced[ElectLeadersResponse]:
    """Every partition that has not the leader that the election would give it."""
    topics = []
    is_unneeded = _UNNEEDED[election]
    draft.spend(len(draft.image.topics))
    for name in sorted(draft.image.topic_ids):
        topic = draft.image.topic(name)
        results = []
        for index in sorted(topic.partitions) if topic is not None else ():
            if draft.full:
                yield
            draft.spend(1)
            found = draft.image.topic(name)
            partition = None if found is None else found.partitions.get(index)
            if partition is not None and not is_unneeded(partition):
                draft.spend(WORK_OF_A_TOPIC)
                results.append(_result(draft, name, index, election))
        if results:
            topics.append(ElectionTopicResult(name=name, partitions=tuple(results)))
    return ElectLeadersResponse(topics=tuple(topics))


def _result(draft: Draft, name: str, index: int, election: Election) -> ElectionPartitionResult:
    try:
        loss = _elect(draft, name, index, election)
    except ApiError as error:
        return ElectionPartitionResult(index=index, error_code=error.code, error_message=error.message)
    return ElectionPartitionResult(index=index, error_message=loss)


def _elect(draft: Draft, name: str, index: int, election: Election) -> str:
    """What may be lost; empty: nothing. Raises ApiError."""
    topic, partition = find_partition(draft, name, index)
    if _UNNEEDED[election](partition):
        text = f"{name}-{index} is led by broker {partition.leader}"
        raise ApiError(ErrorCode.ELECTION_NOT_NEEDED, text)
    rules = rules_of(draft, name)
    wish = Wish(election=election)
    record = partition_change(topic.id, index, partition, draft.brokers, rules, wish)
    if record is not None:
        draft.add(record)
    if record is None or record.leader is None:
        raise _unavailable(partition, name, index, election)
    after = draft.image.topics[topic.id].partitions[index]
    if after.leader == NO_NODE or (election is Election.PREFERRED and after.leader != after.replicas[0]):
        raise _unavailable(partition, name, index, election)
    if after.leader_recovery_state == RECOVERING:
        return f"broker {after.leader} was elected uncleanly: records that it had not copied are lost"
    return ""


def _unavailable(partition: PartitionRegistration, name: str, index: int, election: Election) -> ApiError:
    if election is Election.PREFERRED:
        text = f"{name}-{index}: broker {partition.replicas[0]} is not in the ISR {list(partition.isr)}, or not alive"
        return ApiError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, text)
    elr = list(partition.eligible_leader_replicas)
    if elr:
        text = (
            f"brokers {elr} hold every committed record; start one of them, or unregister those that are gone for ever"
        )
    else:
        text = f"none of the replicas {list(partition.replicas)} is alive"
    return ApiError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, f"{name}-{index}: {text}")


def has_preferred_leader(partition: PartitionRegistration) -> bool:
    return partition.leader == partition.replicas[0]


def has_leader(partition: PartitionRegistration) -> bool:
    return partition.leader != NO_NODE


_UNNEEDED: dict[Election, Callable[[PartitionRegistration], bool]] = {
    Election.PREFERRED: has_preferred_leader,
    Election.UNCLEAN: has_leader,
}
