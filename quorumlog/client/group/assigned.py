"""What a member of a described group reads now, whichever protocol its group has."""

from __future__ import annotations

from collections.abc import Iterable

from quorumlog.client.group.protocol import Partitions, read_assignment
from quorumlog.messages.groups import (
    AssignedTopic,
    DescribedConsumerGroup,
    DescribedConsumerMember,
    DescribedGroup,
    DescribedMember,
)
from quorumlog.records import CorruptRecords

CONSUMER = "consumer"  # the protocol type whose assignments can be read


def assigned(
    group: DescribedGroup | DescribedConsumerGroup, member: DescribedMember | DescribedConsumerMember
) -> Partitions | None:
    """Empty: nothing, as in a rebalance. None: nobody can tell, for a group of another kind only its members understand
    the bytes."""
    if isinstance(member, DescribedConsumerMember):
        return named(member.assignment)
    if isinstance(group, DescribedConsumerGroup) or group.protocol_type != CONSUMER:
        return None
    try:
        return read_assignment(member.member_assignment)
    except CorruptRecords:
        return None


def named(topics: Iterable[AssignedTopic]) -> Partitions:
    """A topic that was deleted is left out: it has no name."""
    return {one.topic_name: one.partitions for one in topics if one.topic_name}
