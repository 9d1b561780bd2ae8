"""A classic group with members becomes a consumer group, and back (KIP-848), while its members go on.

Upgrade: what the leader has assigned becomes target and current assignment, the generation the epoch. Downgrade: the
epoch becomes the generation, and the members share their work by a rebalance.
"""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.records import CorruptRecords
from quorumlog.records.coordinator.consumer_groups import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from quorumlog_broker.coordinator.group_turn import Turn
from quorumlog_broker.coordinator.groups.classic.consumer_protocol import (
    Named,
    read_assignment,
    read_subscription,
    write_assignment,
)
from quorumlog_broker.coordinator.groups.classic.group import ClassicGroup, State
from quorumlog_broker.coordinator.groups.classic.member import Member as JoinedMember
from quorumlog_broker.coordinator.groups.classic.subscription import CONSUMER
from quorumlog_broker.coordinator.groups.consumer.assignment import Partition, by_topic, flat, to_target
from quorumlog_broker.coordinator.groups.consumer.cluster import Cluster, metadata_hash
from quorumlog_broker.coordinator.groups.consumer.reconcile import Current
from quorumlog_broker.coordinator.groups.consumer.records import (
    encoded_target,
    write_current,
    write_member,
    write_target,
)
from quorumlog_broker.coordinator.groups.consumer.state import BORN, ConsumerGroup, Member


class Upgraded(NamedTuple):
    """A member of the classic group, and what it has."""

    member_id: str
    member: Member
    assigned: set[Partition]


def read_members(group: ClassicGroup, cluster: Cluster) -> list[Upgraded]:
    """Raises ApiError(GROUP_ID_NOT_FOUND) if a member's bytes are not those of consumers, or an assignor of the
    clients' own has data in them that would be lost."""
    found: list[Upgraded] = []
    given: set[Partition] = set()
    for one in group.members.values():
        try:
            metadata = one.metadata(group.protocol) or one.protocols[0][1]
            subscription, assigned = read_subscription(metadata), read_assignment(one.assignment)
        except (CorruptRecords, IndexError) as error:
            raise _impossible(group, f"the metadata of member {one.member_id} cannot be read") from error
        if assigned.user_data:
            raise _impossible(group, f"member {one.member_id} has data of an assignor of its own")
        partitions = _known(assigned.partitions, cluster) - given
        given |= partitions
        member = Member(
            instance_id=one.group_instance_id,
            rack_id=subscription.rack,
            client_id=one.client_id,
            client_host=one.client_host,
            subscribed_topic_names=tuple(sorted(set(subscription.topics))),
            subscribed_topic_regex=None,
            rebalance_timeout_ms=one.rebalance_timeout_ms,
            server_assignor=None,
            classic_member_metadata=ClassicMemberMetadata(
                one.session_timeout_ms, tuple(ClassicProtocol(name, data) for name, data in one.protocols)
            ),
        )
        found.append(Upgraded(one.member_id, member, partitions))
    return found


def _impossible(group: ClassicGroup, reason: str) -> ApiError:
    text = f"classic group {group.group_id} cannot become a consumer group: {reason}"
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, text)


def _known(partitions: Named, cluster: Cluster) -> set[Partition]:
    """Of topics that there are."""
    found = ((cluster.topic(name), indexes) for name, indexes in partitions)
    return {(topic.topic_id, index) for topic, indexes in found if topic is not None for index in indexes}


def write_upgraded(turn: Turn, group_id: str, generation: int, members: list[Upgraded], cluster: Cluster) -> None:
    epoch = max(generation, BORN)
    for one in members:
        write_member(turn, group_id, one.member_id, one.member)
    names = {name for one in members for name in one.member.subscribed_topic_names}
    value = ConsumerGroupMetadataValue(epoch, metadata_hash(names, cluster))
    turn.write(ConsumerGroupMetadataKey(group_id), value)
    for one in members:
        write_target(turn, group_id, one.member_id, encoded_target(to_target(by_topic(one.assigned))))
    key_of_target = ConsumerGroupTargetAssignmentMetadataKey(group_id)
    turn.write(key_of_target, ConsumerGroupTargetAssignmentMetadataValue(epoch, turn.wall_ms))
    for one in members:
        current = Current(epoch=epoch, previous_epoch=epoch, assigned=dict.fromkeys(one.assigned, epoch))
        write_current(turn, group_id, one.member_id, current)


def to_classic_group(group: ConsumerGroup, cluster: Cluster, wall_ms: int) -> ClassicGroup:
    """All its members speak the classic protocol. It has no leader: it has to rebalance before it is one generation."""
    found = ClassicGroup(group.group_id)
    found.generation = group.epoch
    for member_id, member in group.members.items():
        classic = member.classic_member_metadata
        assert classic is not None
        found.add(
            JoinedMember(
                member_id=member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=classic.session_timeout_ms,
                protocols=tuple((one.name, one.metadata) for one in classic.supported_protocols),
                assignment=_assignment(group, member_id, cluster),
            ),
            CONSUMER,
        )
    found.protocol = found.selected_protocol()
    found.leader = None
    found.enter(State.STABLE, wall_ms)
    return found


def _assignment(group: ConsumerGroup, member_id: str, cluster: Cluster) -> bytes:
    names: dict[str, list[int]] = {}
    for topic_id, indexes in by_topic(flat(group.target_of(member_id))).items():
        name = cluster.name_of(topic_id)
        if name is not None:
            names[name] = indexes
    return write_assignment(0, names)
