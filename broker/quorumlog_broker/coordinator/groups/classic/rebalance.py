"""The rebalance of a classic group: who is waited for, for how long, and what each member is told at its end.

The states and the order of the steps are Kafka's GroupMetadataManager, the parts that are about classic groups.
"""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import JoinGroupResponse, SyncGroupResponse
from quorumlog.records.coordinator.offsets import GroupMetadataKey
from quorumlog.settings.groups import GroupConfig
from quorumlog_broker.coordinator.group_turn import DelayEnds, JoinEnds, SessionEnds, SyncEnds, Turn
from quorumlog_broker.coordinator.groups.classic.group import ClassicGroup, Member, State

GROUP_VERSION = 3  # of the record's value: the one that Kafka 4 writes, not flexible


class Rebalance:
    """The steps that join, sync, leave and the timers have in common."""

    def __init__(self, turn: Turn, config: GroupConfig) -> None:
        self._turn, self._config = turn, config
        self._delay_left_ms: dict[str, int] = {}

    # --- begin ---

    def begin_or_go_on(self, group: ClassicGroup) -> None:
        """A member came, went or changed."""
        if group.can_rebalance:
            self.begin(group)
        else:
            self.complete_if_all_joined(group)

    def begin(self, group: ClassicGroup) -> None:
        if group.state is State.COMPLETING:
            self.answer_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS)
        self._turn.timers.cancel(SyncEnds(group.group_id))
        group.enter(State.PREPARING, self._turn.wall_ms)
        self._turn.notice(group.group_id, f"a rebalance began after generation {group.generation}: {_waits_for(group)}")
        if group.is_initial:
            delay = self._config.initial_rebalance_delay_ms
            self._delay_left_ms[group.group_id] = max(group.rebalance_timeout_ms - delay, 0)
            group.has_new_member = False
            self._turn.timers.arm(DelayEnds(group.group_id), self._turn.now_ms + delay)
        elif group.all_joined:
            self.complete(group)
        else:
            self._wait_for_joins(group)

    def _wait_for_joins(self, group: ClassicGroup) -> None:
        self._turn.timers.arm(JoinEnds(group.group_id), self._turn.now_ms + group.rebalance_timeout_ms)

    def complete_if_all_joined(self, group: ClassicGroup) -> None:
        """The delay of an initial rebalance runs to its end all the same."""
        if group.state is State.PREPARING and group.all_joined and not group.is_initial:
            self.complete(group)

    # --- complete ---

    def delay_ended(self, group: ClassicGroup) -> None:
        """Wait again while new members come, up to the longest time-out of a member."""
        left_ms = self._delay_left_ms.get(group.group_id, 0)
        if group.has_new_member and left_ms > 0:
            group.has_new_member = False
            delay = min(self._config.initial_rebalance_delay_ms, left_ms)
            self._delay_left_ms[group.group_id] = left_ms - delay
            self._turn.timers.arm(DelayEnds(group.group_id), self._turn.now_ms + delay)
        else:
            self.complete(group)

    def complete(self, group: ClassicGroup) -> None:
        """Begin the next generation with the members that have joined, and with static ones."""
        self._turn.timers.cancel(JoinEnds(group.group_id))
        self._turn.timers.cancel(DelayEnds(group.group_id))
        self._delay_left_ms.pop(group.group_id, None)
        for member in [one for one in group.members.values() if one.join is None and one.group_instance_id is None]:
            self._turn.notice(group.group_id, f"member {member.member_id} did not join again in time and is out")
            self._turn.timers.cancel(SessionEnds(group.group_id, member.member_id))
            group.remove(member.member_id)
        if group.members and not group.elect_joined_leader():
            self._wait_for_joins(group)  # static members alone, of which none has come
            return
        group.begin_generation(self._turn.wall_ms)
        self._turn.notice(group.group_id, f"generation {group.generation} with {len(group.members)} members")
        if group.state is State.EMPTY:
            self._turn.write(GroupMetadataKey(group.group_id), group.to_value({}), GROUP_VERSION)
            return
        self._turn.counts.rebalances += 1
        members, leader = group.joined_members(), group.leader or ""
        group.unsynced.update(group.members)
        for member in list(group.members.values()):
            call = group.take_join(member)
            if call is not None:
                response = JoinGroupResponse(
                    generation_id=group.generation,
                    protocol_type=group.protocol_type,
                    protocol_name=group.protocol,
                    leader=leader,
                    member_id=member.member_id,
                    members=members if member.member_id == leader else (),
                )
                self._turn.answer(call, response)
            self.hear(group, member)
            member.is_new = False
        self._turn.timers.arm(SyncEnds(group.group_id), self._turn.now_ms + group.rebalance_timeout_ms)

    # --- members ---

    def hear(self, group: ClassicGroup, member: Member) -> None:
        """A member said something, or was told something: its session begins again."""
        key = SessionEnds(group.group_id, member.member_id)
        self._turn.timers.arm(key, self._turn.now_ms + member.session_timeout_ms)

    def answer_sync(self, group: ClassicGroup, member: Member, error: int = ErrorCode.NONE) -> None:
        """Answer the parked SyncGroup of a member, if there is one, with its assignment."""
        call, member.parked_sync = member.parked_sync, None
        if call is None:
            return
        response = SyncGroupResponse(error_code=error)
        if error == ErrorCode.NONE:
            response = SyncGroupResponse(
                protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
            )
        self._turn.answer(call, response)
        self.hear(group, member)

    def answer_syncs(self, group: ClassicGroup, error: int = ErrorCode.NONE) -> None:
        for member in group.members.values():
            if error != ErrorCode.NONE:
                member.assignment = b""
            self.answer_sync(group, member, error)

    def notice(self, group: ClassicGroup, text: str) -> None:
        """For people."""
        self._turn.notice(group.group_id, text)

    def refuse_join(self, group: ClassicGroup, member: Member, error: int) -> None:
        """Answer the parked JoinGroup of a member, if there is one, with an error."""
        call = group.take_join(member)
        if call is not None:
            known = "" if error == ErrorCode.UNKNOWN_MEMBER_ID else member.member_id
            self._turn.answer(call, JoinGroupResponse(error_code=error, member_id=known))

    def remove(self, group: ClassicGroup, member: Member) -> None:
        """It left, or was not heard of."""
        self.refuse_join(group, member, ErrorCode.UNKNOWN_MEMBER_ID)
        self.answer_sync(group, member, ErrorCode.UNKNOWN_MEMBER_ID)
        self._turn.timers.cancel(SessionEnds(group.group_id, member.member_id))
        group.remove(member.member_id)

    def forget_pending(self, group: ClassicGroup, member_id: str) -> None:
        """An id that was given out is not waited for any more."""
        self._turn.timers.cancel(SessionEnds(group.group_id, member_id))
        group.pending_ids.discard(member_id)
        self.complete_if_all_joined(group)


def _waits_for(group: ClassicGroup) -> str:
    match len(group.members):
        case 0:
            return "its last member is gone"
        case 1:
            return f"its member has {group.rebalance_timeout_ms} ms to join again"
        case count:
            return f"its {count} members have {group.rebalance_timeout_ms} ms to join again"
