"""A group as a sample shows it, from what a cluster says of it: who reads what, and what was committed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quorumlog.client.administration.group_lag import read_topics
from quorumlog.client.group.protocol import Partitions, read_assignment
from quorumlog.ids import TopicPartition
from quorumlog.messages.admin import ListedGroup
from quorumlog.messages.groups import DescribedConsumerGroup, DescribedConsumerMember, DescribedMember
from quorumlog.records import CorruptRecords
from quorumlog.watch.sample import UNKNOWN, Group, GroupOffset, Member, Topic

if TYPE_CHECKING:
    from quorumlog.client.administration.groups import GroupDescription
    from quorumlog.client.group.offsets import CommittedOffset

CONSUMER = "consumer"  # the protocol type whose assignments can be read
NOT_ASKED = "this look has not come to it yet"


def group_of(
    listed: ListedGroup,
    description: GroupDescription | None,
    committed: Mapping[TopicPartition, CommittedOffset],
    topics: Mapping[str, Topic],
) -> Group:
    """description: None: the group is only known from the list."""
    if description is None:
        return Group(
            group_id=listed.group_id,
            state=listed.state,
            group_type=listed.group_type,
            protocol_type=listed.protocol_type,
            unread=NOT_ASKED,
        )
    group = description.group
    members = tuple(_member(description, one) for one in group.members)
    is_modern = isinstance(group, DescribedConsumerGroup)
    return Group(
        group_id=listed.group_id,
        state=group.group_state,
        group_type=listed.group_type or (CONSUMER if is_modern else "classic"),
        protocol_type=listed.protocol_type,
        assignor=group.assignor_name if isinstance(group, DescribedConsumerGroup) else group.protocol_data,
        coordinator=description.coordinator,
        members=members,
        offsets=_offsets(members, committed, topics, read_topics(description)),
    )


def _offsets(
    members: tuple[Member, ...],
    committed: Mapping[TopicPartition, CommittedOffset],
    topics: Mapping[str, Topic],
    read: frozenset[str] | None,
) -> tuple[GroupOffset, ...]:
    """read: topics that members read; None: nobody can tell."""
    readers = {key: one.member_id for one in members for key in one.partitions}
    found = []
    for key in sorted({*committed, *readers}):
        offset, topic = committed.get(key), topics.get(key[0])
        found.append(
            GroupOffset(
                topic=key[0],
                partition=key[1],
                committed=UNKNOWN if offset is None else offset.offset,
                end=topic.partitions[key[1]].end if topic is not None and key[1] < len(topic.partitions) else UNKNOWN,
                member_id=readers.get(key, ""),
                is_of_former_topic=_is_of_another(offset, topic),
                is_read=read is None or key[0] in read,
            )
        )
    return tuple(found)


def _is_of_another(offset: CommittedOffset | None, topic: Topic | None) -> bool:
    """Where both say which topic they mean, and mean two."""
    if offset is None or topic is None or not offset.topic_id or not topic.topic_id:
        return False
    return bytes(offset.topic_id) != topic.topic_id


def _member(description: GroupDescription, member: DescribedMember | DescribedConsumerMember) -> Member:
    assigned = _assignment(description, member)
    return Member(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        instance_id=member.group_instance_id or "",
        partitions=tuple((topic, index) for topic in sorted(assigned) for index in assigned[topic]),
    )


def _assignment(description: GroupDescription, member: DescribedMember | DescribedConsumerMember) -> Partitions:
    """Empty for a group of another kind, whose bytes only its members understand."""
    if isinstance(member, DescribedConsumerMember):
        return {one.topic_name: one.partitions for one in member.assignment if one.topic_name}
    group = description.group
    if isinstance(group, DescribedConsumerGroup) or group.protocol_type != CONSUMER:
        return {}
    try:
        return read_assignment(member.member_assignment)
    except CorruptRecords:
        return {}
