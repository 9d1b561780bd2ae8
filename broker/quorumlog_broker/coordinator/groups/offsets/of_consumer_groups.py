"""Who may commit and read offsets of a consumer group: a member in its epoch, and in an older one for what it still has
since then (KIP-1251). Members of the classic protocol, too, under the name of their generation: Kafka 4.3's
`ConsumerGroup.validateOffsetCommit` asks for both in the same way. One partition refuses the whole call."""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.ids import ZERO_UUID, Epoch, Uuid
from quorumlog.messages.groups import OffsetCommitRequest, OffsetCommitTopic, OffsetFetchGroup
from quorumlog.messages.transactions import TxnOffsetCommitRequest
from quorumlog_broker.coordinator.groups.consumer.settings import Cluster
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup
from quorumlog_broker.coordinator.groups.offsets.calls import Allowed

NO_GENERATION = -1


def commit_rule(group: ConsumerGroup, cluster: Cluster, request: OffsetCommitRequest) -> Allowed:
    """Of each partition: whether it may be committed; one that may not refuses the call."""
    if request.generation_id < 0 and not group.members:
        return _always(ErrorCode.NONE)  # whatever it calls itself: it may assign its partitions itself
    member = group.members.get(request.member_id)
    if member is not None and member.classic_member_metadata is None and not request.takes_member_epoch:
        return _always(ErrorCode.UNSUPPORTED_VERSION)
    return _of_member(group, cluster, request.member_id, request.generation_id)


def transactional_rule(group: ConsumerGroup, cluster: Cluster, request: TxnOffsetCommitRequest) -> Allowed:
    """A producer that says nothing of its consumer is believed. Producers know ILLEGAL_GENERATION only."""
    if (request.generation_id < 0 and not group.members) or _says_nothing(request):
        return _always(ErrorCode.NONE)
    rule = _of_member(group, cluster, request.member_id, request.generation_id)

    def allowed(topic: OffsetCommitTopic, index: int) -> ErrorCode:
        error = rule(topic, index)
        return ErrorCode.ILLEGAL_GENERATION if error == ErrorCode.STALE_MEMBER_EPOCH else error

    return allowed


def _says_nothing(request: TxnOffsetCommitRequest) -> bool:
    """Of the consumer whose offsets they are, as producers did before KIP-447."""
    return request.generation_id == NO_GENERATION and not request.member_id and request.group_instance_id is None


def _always(error: ErrorCode) -> Allowed:
    return lambda _topic, _index: error


def _of_member(group: ConsumerGroup, cluster: Cluster, member_id: str, epoch: Epoch) -> Allowed:
    member = group.members.get(member_id)
    if member is None:
        return _always(ErrorCode.UNKNOWN_MEMBER_ID)
    current = group.current_of(member_id)
    is_classic = member.classic_member_metadata is not None
    refusal = ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH
    if epoch == current.epoch:
        return _always(ErrorCode.NONE)
    if epoch > current.epoch:
        return _always(refusal)

    def allowed(topic: OffsetCommitTopic, index: int) -> ErrorCode:
        topic_id = topic.topic_id or _id_of(topic.name, cluster)
        since = current.assigned.get((topic_id, index), current.revoking.get((topic_id, index)))
        return ErrorCode.NONE if since is not None and since <= epoch else refusal

    return allowed


def _id_of(name: str, cluster: Cluster) -> Uuid:
    topic = cluster.topic(name)
    return ZERO_UUID if topic is None else topic.topic_id


def fetch_refusal(group: ConsumerGroup, request: OffsetFetchGroup) -> ErrorCode:
    """Anybody who does not claim to be a member may read."""
    if request.member_id is None and request.member_epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(request.member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if request.member_epoch == group.current_of(request.member_id or "").epoch:
        return ErrorCode.NONE
    is_classic = member.classic_member_metadata is not None
    return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH
