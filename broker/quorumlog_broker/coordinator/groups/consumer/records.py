"""The records of a consumer group, in the orders in which Kafka writes them: a reader of the log may stop anywhere."""

from __future__ import annotations

from collections.abc import Iterable

from quorumlog.records.coordinator import encode_key
from quorumlog.records.coordinator.consumer_groups import (
    TARGET_MEMBER,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from quorumlog_broker.coordinator.group_turn import Turn
from quorumlog_broker.coordinator.groups.consumer.assignment import Target
from quorumlog_broker.coordinator.groups.consumer.reconcile import Current
from quorumlog_broker.coordinator.groups.consumer.settings import Cluster, metadata_hash
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup, Member


def write_member(turn: Turn, group_id: str, member_id: str, member: Member) -> None:
    turn.write(ConsumerGroupMemberMetadataKey(group_id, member_id), member)


def write_current(turn: Turn, group_id: str, member_id: str, current: Current) -> None:
    turn.write(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), current.to_value())


def write_target(turn: Turn, group_id: str, member_id: str, target: bytes) -> None:
    """target: as `encoded_target` gives it."""
    turn.append(group_id, encode_key(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)), target)


def encoded_target(target: Target) -> bytes:
    return TARGET_MEMBER.encode(ConsumerGroupTargetAssignmentMemberValue(target), 0)


NO_TARGET = encoded_target(())


def bump(turn: Turn, group: ConsumerGroup, cluster: Cluster) -> None:
    """Begin the next epoch of the group, with what the cluster's metadata says now."""
    group.seen_version = cluster.version
    turn.counts.rebalances += bool(group.members)
    value = ConsumerGroupMetadataValue(group.epoch + 1, metadata_hash(group.subscribed_topics(), cluster))
    turn.write(ConsumerGroupMetadataKey(group.group_id), value)
    turn.notice(group.group_id, f"group epoch {group.epoch} with {len(group.members)} members")


def delete_member(turn: Turn, group: ConsumerGroup, member_id: str) -> None:
    """Tombstones of the keys that it has. What it owns is free then."""
    group_id = group.group_id
    if member_id in group.current:
        turn.delete(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id))
    if member_id in group.target:
        turn.delete(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id))
    if member_id in group.members:
        turn.delete(ConsumerGroupMemberMetadataKey(group_id, member_id))


def rename_member(turn: Turn, group: ConsumerGroup, old_id: str, new_id: str, member: Member) -> None:
    """A static member comes back with a new id: it takes over all that the old one had."""
    group_id = group.group_id
    target, current = group.target.get(old_id), group.current.get(old_id)
    delete_member(turn, group, old_id)
    write_member(turn, group_id, new_id, member)
    if target is not None:
        write_target(turn, group_id, new_id, target)
    if current is not None:
        turn.write(ConsumerGroupCurrentMemberAssignmentKey(group_id, new_id), current)


def delete_unused_regexes(turn: Turn, group: ConsumerGroup) -> None:
    for regex in [one for one in group.regexes if one not in group.regex_users]:
        turn.delete(ConsumerGroupRegularExpressionKey(group.group_id, regex))


def delete_group(turn: Turn, group: ConsumerGroup) -> None:
    """Tombstones of all its keys; only then the group is gone."""
    group_id = group.group_id
    _delete(turn, [ConsumerGroupCurrentMemberAssignmentKey(group_id, one) for one in group.current])
    _delete(turn, [ConsumerGroupTargetAssignmentMemberKey(group_id, one) for one in group.target])
    if group.target_metadata is not None:
        turn.delete(ConsumerGroupTargetAssignmentMetadataKey(group_id))
    _delete(turn, [ConsumerGroupMemberMetadataKey(group_id, one) for one in group.members])
    _delete(turn, [ConsumerGroupRegularExpressionKey(group_id, one) for one in group.regexes])
    if group.is_described_by_topics:
        turn.delete(ConsumerGroupPartitionMetadataKey(group_id))
    if group.metadata is not None:
        turn.delete(ConsumerGroupMetadataKey(group_id))


def _delete(turn: Turn, keys: Iterable[object]) -> None:
    for key in keys:
        turn.delete(key)
