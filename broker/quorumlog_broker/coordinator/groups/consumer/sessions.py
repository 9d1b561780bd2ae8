"""How a consumer group loses members: they leave, they are silent for a session, they do not give up what they must."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.slices import Pace, Sliced
from quorumlog_broker.coordinator.group_turn import (
    ConsumerSessionEnds,
    ConsumerTimer,
    MemberJoinEnds,
    MemberSyncEnds,
    RevocationEnds,
    Turn,
)
from quorumlog_broker.coordinator.groups.consumer.reconcile import MemberState
from quorumlog_broker.coordinator.groups.consumer.records import bump, delete_member, delete_unused_regexes
from quorumlog_broker.coordinator.groups.consumer.settings import Settings
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup, ConsumerGroups
from quorumlog_broker.coordinator.groups.consumer.targets import Targets


class Sessions:
    """Timers of members, and what they lead to.

    downgrade: asked when members have gone; True if it has made a classic group of the rest. Its owner sets it.
    """

    def __init__(self, turn: Turn, settings: Settings, groups: ConsumerGroups, targets: Targets) -> None:
        self._turn, self._settings, self._groups, self._targets = turn, settings, groups, targets
        self.downgrade: Callable[[ConsumerGroup], bool] = lambda _group: False

    def hear(self, group: ConsumerGroup, member_id: str) -> None:
        """A member said something: its session begins again."""
        classic = group.members[member_id].classic_member_metadata
        if classic is None:
            timeout_ms = self._settings.session_timeout_ms(group.group_id)
        else:
            timeout_ms = classic.session_timeout_ms
        key = ConsumerSessionEnds(group.group_id, group.known_id(member_id))
        self._turn.timers.arm(key, self._turn.now_ms + timeout_ms)

    def reconciled(self, group: ConsumerGroup, member_id: str) -> None:
        """What it owns has changed: it has its rebalance time-out to give up partitions, if it has to."""
        key = RevocationEnds(group.group_id, member_id)
        if group.current_of(member_id).state is MemberState.UNREVOKED:
            self._turn.timers.arm(key, self._turn.now_ms + group.members[member_id].rebalance_timeout_ms)
        else:
            self._turn.timers.cancel(key)

    def load(self, group: ConsumerGroup, pace: Pace) -> Sliced[None]:
        """Each member has a whole session, and those that have to give up something their rebalance time-out.

        The group must not change between two steps. Raises CorruptRecords, UnknownVersion for a target that cannot be
        read.
        """
        for member_id in group.target:
            group.target_of(member_id)
            if pace.is_over():
                yield
        for member_id in group.members:
            self.hear(group, member_id)
            self.reconciled(group, member_id)
            if pace.is_over():
                yield

    def forget(self, group_id: str, member_id: str) -> None:
        """No timer is about this member any more."""
        kinds: tuple[type[ConsumerSessionEnds | RevocationEnds | MemberJoinEnds | MemberSyncEnds], ...]
        kinds = (ConsumerSessionEnds, RevocationEnds, MemberJoinEnds, MemberSyncEnds)
        for kind in kinds:
            self._turn.timers.cancel(kind(group_id, member_id))

    def remove(self, group: ConsumerGroup, member_ids: tuple[str, ...]) -> None:
        """Fence them, or let them go: what they owned is free at once. The others share it."""
        for member_id in member_ids:
            self.forget(group.group_id, member_id)
            delete_member(self._turn, group, member_id)
        if self.downgrade(group):
            return
        delete_unused_regexes(self._turn, group)
        bump(self._turn, group, self._settings.cluster)
        self._targets.wanted(group)

    def timer(self, key: ConsumerTimer) -> None:
        group = self._groups.get(key.group_id)
        if group is None:
            return
        match key:
            case ConsumerSessionEnds(_, member_id) | MemberJoinEnds(_, member_id) | MemberSyncEnds(_, member_id):
                if member_id in group.members:
                    self._turn.notice(group.group_id, f"member {member_id} was not heard of in time and is out")
                    self.remove(group, (member_id,))
            case RevocationEnds(_, member_id):
                if member_id in group.members and group.current_of(member_id).state is MemberState.UNREVOKED:
                    text = f"member {member_id} did not give up its partitions in its rebalance time-out and is out"
                    self._turn.notice(group.group_id, text)
                    self.remove(group, (member_id,))
            case _:
                self._targets.wanted(group)
