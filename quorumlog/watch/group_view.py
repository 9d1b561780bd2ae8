"""A group as a sample shows it, from what a cluster says of it: who reads what, and what was committed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quorumlog.client.administration.group_lag import read_topics
from quorumlog.client.group.assigned import CONSUMER, assigned
from quorumlog.ids import TopicPartition
from quorumlog.messages.admin import ListedGroup
from quorumlog.messages.groups import DescribedConsumerGroup, DescribedConsumerMember, DescribedMember
from quorumlog.watch.sample import UNKNOWN, Group, GroupOffset, Member, Topic

if TYPE_CHECKING:
    from quorumlog.client.administration.groups import GroupDescription
    from quorumlog.client.group.offsets import CommittedOffset

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
                end=end_of(topics, key),
                member_id=readers.get(key, ""),
                is_of_former_topic=not (offset is None or topic is None or offset.may_be_of(topic.topic_id)),
                is_read=read is None or key[0] in read,
            )
        )
    return tuple(found)


def _member(description: GroupDescription, member: DescribedMember | DescribedConsumerMember) -> Member:
    reads = assigned(description.group, member) or {}
    return Member(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        instance_id=member.group_instance_id or "",
        partitions=tuple((topic, index) for topic in sorted(reads) for index in reads[topic]),
    )


def end_of(topics: Mapping[str, Topic], key: TopicPartition) -> int:
    """Partitions are numbered from 0 without gaps."""
    topic = topics.get(key[0])
    return topic.partitions[key[1]].end if topic is not None and key[1] < len(topic.partitions) else UNKNOWN
