"""ConsumerGroupDescribe, and the state of a group that ListGroups shows."""

from __future__ import annotations

from enum import Enum

from broker.coordinator.groups.consumer.assignment import OfTopic
from broker.coordinator.groups.consumer.cluster import Cluster
from broker.coordinator.groups.consumer.reconcile import MemberState
from broker.coordinator.groups.consumer.state import ConsumerGroup
from broker.coordinator.groups.consumer.targets import preferred_assignor
from quorumlog.messages.groups import AssignedTopic, DescribedConsumerGroup, DescribedConsumerMember

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


class ConsumerGroupState(Enum):
    """The names that clients show."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


def state_of(group: ConsumerGroup) -> ConsumerGroupState:
    if not group.members:
        return ConsumerGroupState.EMPTY
    if group.epoch > group.assignment_epoch:
        return ConsumerGroupState.ASSIGNING
    for member_id in group.members:
        current = group.current.get(member_id)
        if current is None or (current.state, current.member_epoch) != (MemberState.STABLE, group.assignment_epoch):
            return ConsumerGroupState.RECONCILING
    return ConsumerGroupState.STABLE


def described(group: ConsumerGroup, cluster: Cluster, assignors: tuple[str, ...]) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(
        group_id=group.group_id,
        group_state=state_of(group).value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group, assignors),
        members=tuple(_member(group, member_id, cluster) for member_id in group.members),
    )


def _member(group: ConsumerGroup, member_id: str, cluster: Cluster) -> DescribedConsumerMember:
    member, current = group.members[member_id], group.current.get(member_id)
    assigned = () if current is None else current.assigned_partitions
    return DescribedConsumerMember(
        member_id=member_id,
        group_instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=0 if current is None else current.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.subscribed_topic_names,
        subscribed_topic_regex=member.subscribed_topic_regex or None,
        assignment=tuple(_named(one, cluster) for one in assigned),
        target_assignment=tuple(_named(one, cluster) for one in group.target_of(member_id)),
        member_type=CONSUMER_MEMBER if member.classic_member_metadata is None else CLASSIC_MEMBER,
    )


def _named(topic: OfTopic, cluster: Cluster) -> AssignedTopic:
    name = cluster.name_of(topic.topic_id) or ""
    return AssignedTopic(topic_id=topic.topic_id, topic_name=name, partitions=topic.partitions)
