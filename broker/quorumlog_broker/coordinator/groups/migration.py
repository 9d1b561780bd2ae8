"""Groups that change from one protocol to the other (KIP-848): when, and what their members hear of it.

A group without members is converted when its first member joins: only its offsets go on. One with members is, if
`group.consumer.migration.policy` allows it: to the consumer protocol when the first member of that joins, back when the
last one has gone.

A classic group with members becomes a consumer group, and back (KIP-848), while its members go on.

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
from quorumlog.records.coordinator.offsets import GroupMetadataKey
from quorumlog.settings.groups import BIDIRECTIONAL, DOWNGRADE, UPGRADE
from quorumlog.slices import Pace, at_once
from quorumlog_broker.coordinator.group_turn import DelayEnds, JoinEnds, SessionEnds, SyncEnds, Turn
from quorumlog_broker.coordinator.groups.classic.consumer_protocol import (
    Named,
    read_assignment,
    read_subscription,
    write_assignment,
)
from quorumlog_broker.coordinator.groups.classic.group import ClassicGroup, State
from quorumlog_broker.coordinator.groups.classic.group import Member as JoinedMember
from quorumlog_broker.coordinator.groups.classic.rebalance import GROUP_VERSION, Rebalance
from quorumlog_broker.coordinator.groups.classic.subscription import CONSUMER
from quorumlog_broker.coordinator.groups.consumer.assignment import Partition, by_topic, flat, to_target
from quorumlog_broker.coordinator.groups.consumer.reconcile import Current
from quorumlog_broker.coordinator.groups.consumer.records import (
    delete_group,
    encoded_target,
    write_current,
    write_member,
    write_target,
)
from quorumlog_broker.coordinator.groups.consumer.sessions import Sessions
from quorumlog_broker.coordinator.groups.consumer.settings import Cluster, Settings, metadata_hash
from quorumlog_broker.coordinator.groups.consumer.state import BORN, ConsumerGroup, Member
from quorumlog_broker.coordinator.groups.registry import Registry


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


class Migration:
    def __init__(
        self, turn: Turn, registry: Registry, settings: Settings, sessions: Sessions, rebalance: Rebalance
    ) -> None:
        self._turn, self._registry, self._settings = turn, registry, settings
        self._sessions, self._rebalance = sessions, rebalance

    # --- to the consumer protocol ---

    def to_consumer(self, group_id: str, *, joins: bool, instance: str | None) -> None:
        """A member of the consumer protocol speaks to this group. Raises ApiError if it is of the other protocol.

        instance: of a static member, which may take the place of a former life. A group that has no place for the
        member stays what it is: Kafka, too, writes nothing of a conversion whose member is refused.
        """
        group = self._registry.known(group_id)
        if group is None:
            return
        if not joins:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id} is of the classic protocol; join it")
        if group.state is State.EMPTY or not group.members:
            self._silence(group)
            self._registry.forget(self._turn, group_id)
            return
        self._check_upgrade(group, instance)
        self._upgrade(group)

    def _check_upgrade(self, group: ClassicGroup, instance: str | None) -> None:
        if group.protocol_type != CONSUMER:
            text = f"group {group.group_id} is of type {group.protocol_type}, which has no consumer protocol"
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, text)
        if self._settings.consumer.migration_policy not in (BIDIRECTIONAL, UPGRADE):
            text = f"group {group.group_id} is of the classic protocol; see group.consumer.migration.policy"
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, text)
        if len(group.members) > self._settings.consumer.max_size:
            text = f"group {group.group_id} has {len(group.members)} members; see group.consumer.max.size"
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, text)
        if len(group.members) == self._settings.consumer.max_size and instance not in group.static:
            text = f"group {group.group_id} has {len(group.members)} members; see group.consumer.max.size"
            raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED, text)

    def _upgrade(self, group: ClassicGroup) -> None:
        cluster, group_id = self._settings.cluster, group.group_id
        members = read_members(group, cluster)
        self._silence(group)
        self._registry.forget(self._turn, group_id)
        write_upgraded(self._turn, group_id, group.generation, members, cluster)
        at_once(self._sessions.load(self._registry.consumers[group_id], Pace()))

    def _silence(self, group: ClassicGroup) -> None:
        """Those that wait are sent to join again, and no timer is about the classic group any more."""
        for member in list(group.members.values()):
            self._rebalance.refuse_join(group, member, ErrorCode.REBALANCE_IN_PROGRESS)
            self._rebalance.answer_sync(group, member, ErrorCode.REBALANCE_IN_PROGRESS)
        for member_id in (*group.members, *group.pending_ids):
            self._turn.timers.cancel(SessionEnds(group.group_id, member_id))
        for kind in (DelayEnds, JoinEnds, SyncEnds):
            self._turn.timers.cancel(kind(group.group_id))

    # --- to the classic protocol ---

    def to_classic(self, group_id: str) -> None:
        """A member of the classic protocol joins this group. One that has members stays what it is."""
        group = self._registry.consumer(group_id)
        if group is not None and not group.members:
            self._registry.forget(self._turn, group_id)

    def downgrade(self, group: ConsumerGroup) -> bool:
        """Members have gone. True: no member of the consumer protocol is left, so the group is a classic one now."""
        config = self._settings.config
        if not group.members or config.consumer.migration_policy not in (BIDIRECTIONAL, DOWNGRADE):
            return False
        if len(group.members) > config.max_size:
            return False
        if any(member.classic_member_metadata is None for member in group.members.values()):
            return False
        classic = to_classic_group(group, self._settings.cluster, self._turn.wall_ms)
        value = classic.to_value({one.member_id: one.assignment for one in classic.members.values()})
        key = GroupMetadataKey(group.group_id)
        if not self._turn.fits(key, value, GROUP_VERSION):
            return False
        for member_id in group.members:
            self._sessions.forget(group.group_id, member_id)
        delete_group(self._turn, group)
        self._turn.write(key, value, GROUP_VERSION)
        self._registry.classic[group.group_id] = classic
        for member in classic.members.values():
            self._rebalance.hear(classic, member)
        self._rebalance.begin(classic)
        return True
