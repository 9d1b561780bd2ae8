"""Groups that change from one protocol to the other (KIP-848): when, and what their members hear of it.

A group without members is converted when its first member joins: only its offsets go on. One with members is, if
`group.consumer.migration.policy` allows it: to the consumer protocol when the first member of that joins, back when the
last one has gone.
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.group_config import BIDIRECTIONAL, DOWNGRADE, UPGRADE
from quorumlog.records.coordinator.offsets import GroupMetadataKey
from quorumlog.slices import Pace, at_once
from quorumlog_broker.coordinator.group_deadlines import DelayEnds, JoinEnds, SessionEnds, SyncEnds
from quorumlog_broker.coordinator.group_turn import Turn
from quorumlog_broker.coordinator.groups.classic.group import ClassicGroup, State
from quorumlog_broker.coordinator.groups.classic.rebalance import GROUP_VERSION, Rebalance
from quorumlog_broker.coordinator.groups.classic.subscription import CONSUMER
from quorumlog_broker.coordinator.groups.consumer.records import delete_group
from quorumlog_broker.coordinator.groups.consumer.sessions import Sessions
from quorumlog_broker.coordinator.groups.consumer.settings import Settings
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup
from quorumlog_broker.coordinator.groups.registry import Registry
from quorumlog_broker.coordinator.groups.upgrade import read_members, to_classic_group, write_upgraded


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
