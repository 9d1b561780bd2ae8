"""ConsumerGroupDescribe, and the state of a group that ListGroups shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import Enum

from quorumlog.ids import Uuid
from quorumlog.messages.groups import AssignedTopic, DescribedConsumerGroup, DescribedConsumerMember
from quorumlog.records.coordinator.consumer_groups import (
    AssignedPartitions,
    ConsumerGroupCurrentMemberAssignmentValue,
)
from quorumlog.slices import Pace, Sliced
from quorumlog_broker.coordinator.groups.consumer.assignment import OfTopic, Target
from quorumlog_broker.coordinator.groups.consumer.settings import Cluster
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup, Member, target_in
from quorumlog_broker.coordinator.groups.consumer.targets import preferred_assignor

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


class ConsumerGroupState(Enum):
    """The names that clients show."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


def state_of(group: ConsumerGroup) -> ConsumerGroupState:
    """In the same time for any number of members: ListGroups asks for many groups in one turn."""
    if not group.members:
        return ConsumerGroupState.EMPTY
    if group.epoch > group.assignment_epoch:
        return ConsumerGroupState.ASSIGNING
    return ConsumerGroupState.STABLE if group.is_settled else ConsumerGroupState.RECONCILING


def described(group: ConsumerGroup, cluster: Cluster, assignors: tuple[str, ...]) -> Sliced[DescribedConsumerGroup]:
    """The group as it is when the first slice begins, however many there are: its records are values that nobody
    changes, so the tables of them are copied (10 ms for 100,000 members), and told some members a slice.

    A topic that was deleted, also while this goes on, has no name any more, and is left out, as in Kafka.
    """
    members, current, target = group.members.copy(), group.current.copy(), group.target.copy()
    found = DescribedConsumerGroup(
        group_id=group.group_id,
        group_state=state_of(group).value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group, assignors),
    )
    pace, names = Pace(), _Names(cluster)
    described_members = []
    for member_id, member in members.items():
        one = _member(member_id, member, current.get(member_id), target_in(target.get(member_id)), names)
        described_members.append(one)
        if pace.is_over(_units(one)):
            yield
    return replace(found, members=tuple(described_members))


class _Names:
    """Of topics, each looked up once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._found: dict[Uuid, str | None] = {}

    def of(self, topics: Iterable[OfTopic]) -> tuple[AssignedTopic, ...]:
        return tuple(
            AssignedTopic(topic_id=one.topic_id, topic_name=name, partitions=one.partitions)
            for one in topics
            if (name := self._name(one.topic_id)) is not None
        )

    def _name(self, topic_id: Uuid) -> str | None:
        if topic_id not in self._found:
            self._found[topic_id] = self._cluster.name_of(topic_id)
        return self._found[topic_id]


def _member(
    member_id: str,
    member: Member,
    current: ConsumerGroupCurrentMemberAssignmentValue | None,
    target: Target,
    names: _Names,
) -> DescribedConsumerMember:
    return DescribedConsumerMember(
        member_id=member_id,
        group_instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=0 if current is None else current.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.subscribed_topic_names,
        subscribed_topic_regex=member.subscribed_topic_regex or None,
        assignment=() if current is None else names.of(_owned(current)),
        target_assignment=names.of(target),
        member_type=CONSUMER_MEMBER if member.classic_member_metadata is None else CLASSIC_MEMBER,
    )


def _owned(current: ConsumerGroupCurrentMemberAssignmentValue) -> list[AssignedPartitions]:
    """With what it was asked to give up: nobody else may have that before it has done so."""
    found: dict[Uuid, list[int]] = {}
    for one in (*current.assigned_partitions, *current.partitions_pending_revocation):
        found.setdefault(one.topic_id, []).extend(one.partitions)
    return [AssignedPartitions(topic_id, tuple(partitions)) for topic_id, partitions in found.items()]


def _units(member: DescribedConsumerMember) -> int:
    """What it has taken, in units of a slice: its target is read number by number."""
    return 2 + sum(1 + len(one.partitions) // 8 for one in member.target_assignment)
