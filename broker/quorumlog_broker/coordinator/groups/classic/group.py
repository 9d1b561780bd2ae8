"""A group of the classic protocol: its members, its generation, and what follows from them. It decides nothing.

The states and the rules of the methods are Kafka's ClassicGroup. Members that join and the generation of a rebalance
that goes on live here only; the log holds stable and empty generations (`GroupMetadataValue`).

One member of a classic group.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum

from quorumlog.messages.groups import JoinedMember
from quorumlog.records.coordinator.offsets import GroupMetadataValue, MemberMetadata
from quorumlog.slices import Pace, Sliced

Protocols = tuple[tuple[str, bytes], ...]
"""(name, metadata) in the order in which the member prefers them."""


@dataclass(slots=True, kw_only=True)
class Member:
    """join, parked_sync: the parked call of that kind, None if there is none.

    is_new: it has joined, and has not been in a generation yet.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    join: int | None = None
    parked_sync: int | None = None

    @property
    def is_waiting(self) -> bool:
        """A call of it is parked, so the member cannot send heartbeats."""
        return self.join is not None or self.parked_sync is not None

    def metadata(self, protocol: str | None) -> bytes:
        """What it said for this protocol; empty for one that it does not know."""
        wanted = protocol or ""
        for name, metadata in self.protocols:
            if name == wanted:
                return metadata
        return b""

    def vote(self, candidates: set[str]) -> str:
        """The first of its protocols that all members support."""
        return next(name for name, _ in self.protocols if name in candidates)


class State(Enum):
    """The names that DescribeGroups and ListGroups show."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class ClassicGroup:
    """generation: 0 before the first one. is_initial: the rebalance under way began with an empty group.

    pending_ids: ids that were given to members which have not joined with them yet.
    unsynced: members of the generation that have not sent their SyncGroup.
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.state = State.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.state_timestamp = -1
        self.members: dict[str, Member] = {}
        self.static: dict[str, str] = {}  # instance id -> member id
        self.pending_ids: set[str] = set()
        self.unsynced: set[str] = set()
        self.is_initial = False
        self.has_new_member = False  # since the delay of the initial rebalance was last armed
        self.waiting_joins = 0  # members with a parked JoinGroup
        self._supporters: Counter[str] = Counter()  # members by the names of their protocols

    # --- what follows ---

    @property
    def all_joined(self) -> bool:
        return self.waiting_joins == len(self.members) and not self.pending_ids

    @property
    def can_rebalance(self) -> bool:
        return self.state in (State.STABLE, State.COMPLETING, State.EMPTY)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of the members'."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def candidates(self) -> set[str]:
        """The protocols that every member supports."""
        return {name for name, count in self._supporters.items() if count == len(self.members)}

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """A member with these may join."""
        if not protocol_type or not protocols:
            return False
        if self.state is State.EMPTY or not self.members:
            return True
        return protocol_type == self.protocol_type and any(
            self._supporters[name] == len(self.members) for name, _ in protocols
        )

    def selected_protocol(self) -> str:
        """The one with the most votes; between equal ones, the one that was voted for first."""
        candidates = self.candidates()
        if len(candidates) == 1:
            return candidates.pop()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def is_leader(self, member_id: str) -> bool:
        return member_id == self.leader

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """For the leader's answer."""
        return tuple(
            JoinedMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(self.protocol),
            )
            for member in self.members.values()
        )

    # --- changes ---

    def add(self, member: Member, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self._hold(member)
        self.pending_ids.discard(member.member_id)

    def _hold(self, member: Member) -> None:
        self.members[member.member_id] = member
        self._count(member.protocols, 1)
        if member.group_instance_id is not None:
            self.static[member.group_instance_id] = member.member_id

    def set_protocols(self, member: Member, protocols: Protocols) -> None:
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, 1)

    def _count(self, protocols: Protocols, difference: int) -> None:
        for name in dict.fromkeys(name for name, _ in protocols):
            self._supporters[name] += difference

    def park_join(self, member: Member, call: int) -> None:
        assert member.join is None
        member.join = call
        self.waiting_joins += 1

    def take_join(self, member: Member) -> int | None:
        """The call that was parked; it has to be answered now."""
        call, member.join = member.join, None
        self.waiting_joins -= call is not None
        return call

    def remove(self, member_id: str) -> Member:
        """The leadership goes to another member, if there is one. No call of it is parked any more."""
        member = self.members.pop(member_id)
        assert not member.is_waiting
        self._count(member.protocols, -1)
        if member.group_instance_id is not None:
            self.static.pop(member.group_instance_id, None)
        self.unsynced.discard(member_id)
        if self.is_leader(member_id):
            self.leader = next(iter(self.members), None)
        return member

    def rename(self, instance: str, new_id: str) -> Member:
        """A static member came back with a new id: it takes the place of the old one, leadership included."""
        old_id = self.static[instance]
        member = self.members[old_id]
        renamed = {new_id if known == old_id else known: one for known, one in self.members.items()}
        self.members = renamed  # at the same place, so that the order of members stays
        member.member_id = new_id
        self.static[instance] = new_id
        if old_id in self.unsynced:
            self.unsynced.discard(old_id)
            self.unsynced.add(new_id)
        if self.is_leader(old_id):
            self.leader = new_id
        return member

    def elect_joined_leader(self) -> bool:
        """Keep a leader that has joined, or take another member that has. False: no member has joined."""
        leader = self.members.get(self.leader or "")
        if leader is not None and leader.join is not None:
            return True
        joined = next((member for member in self.members.values() if member.join is not None), None)
        if joined is None:
            return False
        self.leader = joined.member_id
        return True

    def begin_generation(self, wall_ms: int) -> None:
        """With the members that there are: COMPLETING, or EMPTY."""
        self.generation += 1
        self.unsynced = set()
        if self.members:
            self.protocol = self.selected_protocol()
            self.enter(State.COMPLETING, wall_ms)
        else:
            self.protocol, self.leader = None, None
            self.enter(State.EMPTY, wall_ms)

    def enter(self, state: State, wall_ms: int) -> None:
        self.is_initial = state is State.PREPARING and self.state is State.EMPTY
        self.state = state
        self.state_timestamp = wall_ms

    # --- the record ---

    def to_value(self, assignments: dict[str, bytes]) -> GroupMetadataValue:
        """assignments: by member id; a member that is missing gets none."""
        return GroupMetadataValue(
            self.protocol_type or "",
            self.generation,
            self.protocol,
            self.leader,
            tuple(
                MemberMetadata(
                    member.member_id,
                    member.client_id,
                    member.client_host,
                    member.session_timeout_ms,
                    member.metadata(self.protocol),
                    assignments.get(member.member_id, b""),
                    rebalance_timeout=member.rebalance_timeout_ms,
                    group_instance_id=member.group_instance_id,
                )
                for member in self.members.values()
            ),
            self.state_timestamp,
        )

    def load(self, value: GroupMetadataValue, pace: Pace) -> Sliced[None]:
        """The group as the log has it: stable with these members, or empty."""
        assert not self.members and not self.pending_ids, "a group is loaded once"
        self.generation, self.protocol_type = value.generation, value.protocol_type or None
        self.protocol, self.leader = value.protocol, value.leader
        self.state_timestamp = value.current_state_timestamp
        self.state = State.STABLE if value.members else State.EMPTY
        for one in value.members:
            member = Member(
                member_id=one.member_id,
                group_instance_id=one.group_instance_id,
                client_id=one.client_id,
                client_host=one.client_host,
                rebalance_timeout_ms=one.session_timeout if one.rebalance_timeout < 0 else one.rebalance_timeout,
                session_timeout_ms=one.session_timeout,
                protocols=((value.protocol or "", one.subscription),),
                assignment=one.assignment,
            )
            self._hold(member)
            if pace.is_over():
                yield
