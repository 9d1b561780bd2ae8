"""The durable state of consumer groups: what the newest record of each key says, and what follows from that.

`replay` is the only thing that changes it. Compaction may leave any subset of the records, so a tombstone of something
unknown, or an assignment of an unknown member, is nothing special.

Equal parts of many members' records as one object: members of a group are alike, and there are thousands of them.

A record that is read brings objects of its own: the host, the client, the topics, the epochs, each member's id three
times. That is half of what a member takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

from quorumlog.ids import Epoch, Uuid
from quorumlog.records.coordinator.consumer_groups import (
    TARGET_MEMBER,
    AssignedPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from quorumlog_broker.coordinator.groups.consumer.assignment import Partition, Target
from quorumlog_broker.coordinator.groups.consumer.reconcile import Current, MemberState, owned_by

MAX_KNOWN = 1_024  # of one core. Above it all are forgotten: what is in use stays, and what comes is kept again
MAX_ITEMS = 16  # of a tuple that is worth the time to compare it

Value = TypeVar("Value")


class Interner:
    """Of one core. Values do not change, so nobody sees that two of them are one."""

    def __init__(self) -> None:
        self._known: dict[object, object] = {}

    def of(self, value: Value) -> Value:
        """The one that was seen before, if it is equal and of the same type."""
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        found: Value = self._known.setdefault((type(value), value), value)  # type: ignore[assignment]
        return found

    def member(self, value: ConsumerGroupMemberMetadataValue) -> ConsumerGroupMemberMetadataValue:
        of = self.of
        names = value.subscribed_topic_names
        if len(names) <= MAX_ITEMS:
            names = of(tuple(of(name) for name in names))
        return of(
            ConsumerGroupMemberMetadataValue(
                value.instance_id,
                of(value.rack_id),
                of(value.client_id),
                of(value.client_host),
                names,
                of(value.subscribed_topic_regex),
                of(value.rebalance_timeout_ms),
                of(value.server_assignor),
                value.classic_member_metadata,
            )
        )

    def current(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerGroupCurrentMemberAssignmentValue:
        return ConsumerGroupCurrentMemberAssignmentValue(
            self.of(value.member_epoch),
            self.of(value.previous_member_epoch),
            value.state,
            self._assigned(value.assigned_partitions),
            self._assigned(value.partitions_pending_revocation),
        )

    def _assigned(self, topics: tuple[AssignedPartitions, ...]) -> tuple[AssignedPartitions, ...]:
        return tuple(
            AssignedPartitions(self.of(one.topic_id), one.partitions, self._epochs(one.assignment_epochs))
            for one in topics
        )

    def _epochs(self, epochs: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return epochs if epochs is None or len(epochs) > MAX_ITEMS else self.of(epochs)


BORN: Epoch = 1
"""The epoch of a group without records. Its target assignment is of that epoch, too, and empty."""

GroupKey = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)
KEYS = (
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupRegularExpressionKey,
)

Member = ConsumerGroupMemberMetadataValue

Counted = TypeVar("Counted", str, Epoch)


class ConsumerGroup:
    """members, current, target: by member id. A member without `current` has joined, and owns nothing yet. Targets are
    bytes of the log, because few of them are looked at.

    static: instance id -> member id. _owners: member ids by topic and index, of all that is in `current`; each
    partition has one owner. names, regex_users: how many members subscribe to a topic by its name, or by this
    expression.
    assignors: how many members ask for this one. stable: how many members are stable, by the epoch that they are in.
    is_described_by_topics: the log has a record of type 4, which only old software wrote.

    What is not durable: seen_version, of the cluster's metadata that `metadata_hash` was last compared with;
    assigned_at_ms, when the target was last computed; resolved_names, resolved_at_ms: the topics that expressions were
    last looked for in, and when.
    """

    def __init__(self, group_id: str, interner: Interner | None = None) -> None:
        """interner: of its core."""
        self.group_id = group_id
        self._interned = interner or Interner()
        self._ids: dict[str, str] = {}  # of members: one object for all their records
        self.metadata: ConsumerGroupMetadataValue | None = None
        self.target_metadata: ConsumerGroupTargetAssignmentMetadataValue | None = None
        self.members: dict[str, Member] = {}
        self.current: dict[str, ConsumerGroupCurrentMemberAssignmentValue] = {}
        self.target: dict[str, bytes] = {}
        self.regexes: dict[str, ConsumerGroupRegularExpressionValue] = {}
        self.is_described_by_topics = False
        self.static: dict[str, str] = {}
        self._owners: dict[Uuid, dict[int, str]] = {}
        self.names: Counter[str] = Counter()
        self.regex_users: Counter[str] = Counter()
        self.assignors: Counter[str] = Counter()
        self.stable: Counter[Epoch] = Counter()
        self.seen_version: int | None = None
        self.assigned_at_ms: int | None = None
        self.resolved_names: Sequence[str] = ()
        self.resolved_at_ms: int | None = None

    @property
    def epoch(self) -> Epoch:
        return BORN if self.metadata is None else self.metadata.epoch

    @property
    def metadata_hash(self) -> int:
        return 0 if self.metadata is None else self.metadata.metadata_hash

    @property
    def assignment_epoch(self) -> Epoch:
        return BORN if self.target_metadata is None else self.target_metadata.assignment_epoch

    @property
    def is_blank(self) -> bool:
        """No record is left of it."""
        tables = (self.members, self.current, self.target, self.regexes)
        return not (self.metadata or self.target_metadata or self.is_described_by_topics or any(tables))

    def current_of(self, member_id: str) -> Current:
        return Current.of(self.current.get(member_id))

    def target_of(self, member_id: str) -> Target:
        """Raises CorruptRecords, UnknownVersion."""
        return target_in(self.target.get(member_id))

    def owned(self, member_id: str) -> set[Partition]:
        value = self.current.get(member_id)
        return set() if value is None else owned_by(value)

    def is_free_for(self, member_id: str, partition: Partition) -> bool:
        topic_id, index = partition
        return self._owners.get(topic_id, {}).get(index, member_id) == member_id

    @property
    def owners(self) -> dict[Partition, str]:
        return {(topic_id, index): one for topic_id, found in self._owners.items() for index, one in found.items()}

    def topics_of(self, member: Member) -> frozenset[str]:
        """The names of topics that it subscribes to, by name or by an expression that is resolved."""
        regex = self.regexes.get(member.subscribed_topic_regex or "")
        return frozenset(member.subscribed_topic_names).union(() if regex is None else regex.topics)

    @property
    def is_settled(self) -> bool:
        """Each member has what the target gives it."""
        return self.stable[self.assignment_epoch] == len(self.members)

    def subscribed_topics(self) -> frozenset[str]:
        """Of all members."""
        found = frozenset(self.names)
        return found.union(*(self.regexes[one].topics for one in self.regex_users if one in self.regexes))

    # --- replay ---

    def replay(self, key: GroupKey, value: Any) -> None:
        """value: bytes of the log for a target of a member, otherwise what they say; None for a tombstone."""
        match key:
            case ConsumerGroupMetadataKey():
                self.metadata = value
            case ConsumerGroupPartitionMetadataKey():
                self.is_described_by_topics = value is not None
            case ConsumerGroupMemberMetadataKey(_, member_id):
                self._replay_member(self._id(member_id), None if value is None else self._interned.member(value))
                self._forget_id(member_id)
            case ConsumerGroupTargetAssignmentMetadataKey():
                self.target_metadata = value
            case ConsumerGroupTargetAssignmentMemberKey(_, member_id):
                self.target.pop(member_id, None)
                if value is not None:
                    self.target[self._id(member_id)] = value
                self._forget_id(member_id)
            case ConsumerGroupCurrentMemberAssignmentKey(_, member_id):
                self._replay_current(self._id(member_id), None if value is None else self._interned.current(value))
                self._forget_id(member_id)
            case ConsumerGroupRegularExpressionKey(_, regex):
                self.regexes.pop(regex, None)
                if value is not None:
                    self.regexes[regex] = value

    def known_id(self, member_id: str) -> str:
        """An equal text that the group holds anyway, if there is one: for those who keep it."""
        return self._ids.get(member_id, member_id)

    def _id(self, member_id: str) -> str:
        return self._ids.setdefault(member_id, member_id)

    def _forget_id(self, member_id: str) -> None:
        """If no record of the member is left."""
        if member_id not in self.members and member_id not in self.current and member_id not in self.target:
            self._ids.pop(member_id, None)

    def _replay_member(self, member_id: str, value: Member | None) -> None:
        old = self.members.get(member_id)
        if old is not None:
            self._count_stable(member_id, -1)
            self._count_wishes(old, -1)
            if old.instance_id is not None and self.static.get(old.instance_id) == member_id:
                del self.static[old.instance_id]
        if value is None:
            self.members.pop(member_id, None)
            return
        self.members[member_id] = value
        self._count_stable(member_id, 1)
        self._count_wishes(value, 1)
        if value.instance_id is not None:
            self.static[value.instance_id] = member_id

    def _replay_current(self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None) -> None:
        for topic_id, index in self.owned(member_id):
            found = self._owners.get(topic_id, {})
            if found.get(index) == member_id:
                del found[index]
                if not found:
                    del self._owners[topic_id]
        self._count_stable(member_id, -1)
        if value is None:
            self.current.pop(member_id, None)
            return
        self.current[member_id] = value
        self._count_stable(member_id, 1)
        for topic_id, index in owned_by(value):
            self._owners.setdefault(topic_id, {})[index] = member_id

    def _count_wishes(self, member: Member, difference: int) -> None:
        for name in filter(None, member.subscribed_topic_names):
            _count(self.names, name, difference)
        if member.subscribed_topic_regex:
            _count(self.regex_users, member.subscribed_topic_regex, difference)
        if member.server_assignor:
            _count(self.assignors, member.server_assignor, difference)

    def _count_stable(self, member_id: str, difference: int) -> None:
        """A member counts once there are both of its records."""
        current = self.current.get(member_id)
        if current is not None and current.state == MemberState.STABLE and member_id in self.members:
            _count(self.stable, current.member_epoch, difference)


def _count(counter: Counter[Counted], one: Counted, difference: int) -> None:
    """What nobody has any more is not kept."""
    counter[one] += difference
    if not counter[one]:
        del counter[one]


def target_in(data: bytes | None) -> Target:
    """data: of the log; None: there is no record. Raises CorruptRecords, UnknownVersion."""
    return () if data is None else TARGET_MEMBER.decode(data)[1].topic_partitions


class ConsumerGroups:
    """The groups of this core that have a record, by id."""

    def __init__(self) -> None:
        self._groups: dict[str, ConsumerGroup] = {}
        self._interned = Interner()

    def replay(self, key: GroupKey, value: Any) -> None:
        group_id = key.group_id
        group = self._groups.get(group_id)
        if group is None:
            if value is None:
                return
            group = self._groups[group_id] = ConsumerGroup(group_id, self._interned)
        group.replay(key, value)
        if value is None and group.is_blank:
            del self._groups[group_id]

    def copy(self) -> dict[str, ConsumerGroup]:
        """As it is now, in any thread."""
        return self._groups.copy()

    def get(self, group_id: str) -> ConsumerGroup | None:
        return self._groups.get(group_id)

    def __getitem__(self, group_id: str) -> ConsumerGroup:
        return self._groups[group_id]

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups

    def __len__(self) -> int:
        return len(self._groups)

    def ids(self) -> tuple[str, ...]:
        return tuple(self._groups)
