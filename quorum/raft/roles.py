"""The roles of a node in the quorum, what each knows, and which may follow which: the table first (KRAFT 2.1).

Observers (nodes that are no voters) move between Unattached and Follower only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from quorum.raft.replicas import Replicas
from quorumlog.ids import Epoch, NodeId, Offset


class Role(Enum):
    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


# Within one epoch. A follower becomes unattached when its leader said that it resigns, was proven dead (DESIGN 5),
# or, at an observer, was silent for too long. A resigned leader never comes back in its epoch.
SAME_EPOCH: dict[Role, frozenset[Role]] = {
    Role.UNATTACHED: frozenset({Role.UNATTACHED, Role.PROSPECTIVE, Role.FOLLOWER}),
    Role.PROSPECTIVE: frozenset({Role.PROSPECTIVE, Role.UNATTACHED, Role.FOLLOWER}),
    Role.CANDIDATE: frozenset({Role.LEADER, Role.PROSPECTIVE, Role.FOLLOWER}),
    Role.LEADER: frozenset({Role.RESIGNED}),
    Role.FOLLOWER: frozenset({Role.PROSPECTIVE, Role.UNATTACHED}),
    Role.RESIGNED: frozenset(),
}

# Into a larger epoch: every role learns of it; only a prospective node makes one, and leaders are made inside theirs.
NEW_EPOCH: dict[Role, frozenset[Role]] = {
    role: frozenset({Role.UNATTACHED, Role.FOLLOWER}) | ({Role.CANDIDATE} if role is Role.PROSPECTIVE else frozenset())
    for role in Role
}

OBSERVER_ROLES = frozenset({Role.UNATTACHED, Role.FOLLOWER})


def is_legal(old: Role, old_epoch: Epoch, new: Role, new_epoch: Epoch, *, is_voter: bool) -> bool:
    """Whether a node may go from one role and epoch to another."""
    if new_epoch < old_epoch or (not is_voter and new not in OBSERVER_ROLES):
        return False
    if new is Role.CANDIDATE and new_epoch != old_epoch + 1:
        return False
    return new in (SAME_EPOCH if new_epoch == old_epoch else NEW_EPOCH)[old]


@dataclass(slots=True)
class Pull:
    """A node's own fetching: at most one fetch is under way."""

    in_flight: int | None = None  # its correlation
    retry_at_ms: int | None = None  # after one that failed


@dataclass(slots=True)
class VoteRound:
    """The votes of one round; `granted` holds the node itself from the start. Dicts keep the order of arrival."""

    granted: dict[NodeId, None]
    refused: dict[NodeId, None] = field(default_factory=dict)  # said no, or could not be asked
    retry_at_ms: int | None = None  # set once the round cannot be won


@dataclass(slots=True)
class Unattached:
    role = Role.UNATTACHED
    election_at_ms: int | None  # voters only
    pull: Pull  # observers look for the leader by fetching from voters


@dataclass(slots=True)
class Prospective:
    role = Role.PROSPECTIVE
    election_at_ms: int
    votes: VoteRound


@dataclass(slots=True)
class Candidate:
    role = Role.CANDIDATE
    election_at_ms: int
    votes: VoteRound


@dataclass(slots=True)
class Follower:
    role = Role.FOLLOWER
    fetch_by_ms: int  # without a good answer until then, the leader is doubted
    pull: Pull
    has_fetched: bool = False  # successfully, from this leader, in this epoch
    offered_high_watermark: Offset = -1  # as the leader told it; ours is never past our own log


@dataclass(frozen=True, slots=True)
class ParkedFetch:
    """A fetch that waits for news: for a written end past `offset`, or a high watermark past the one it knows."""

    token: int
    replica_id: NodeId
    offset: Offset
    max_bytes: int
    high_watermark: Offset
    deadline_ms: int


@dataclass(slots=True)
class Leader:
    role = Role.LEADER
    epoch_start_offset: Offset  # where its LeaderChange record is
    granting: tuple[NodeId, ...]
    replicas: Replicas
    begin_at_ms: int  # next time to tell the voters that do not fetch
    parked: list[ParkedFetch] = field(default_factory=list)
    reading: dict[int, ParkedFetch] = field(default_factory=dict)  # answers whose records are being read, by token
    claimed: bool = False  # its LeaderChange record is committed


@dataclass(slots=True)
class Resigned:
    role = Role.RESIGNED
    election_at_ms: int | None  # None while shutting down
    successors: tuple[NodeId, ...]  # the best first
    unacked: dict[NodeId, int | None]  # voter -> when to tell it again; None while a call is under way
    shutdown_by_ms: int | None = None


RoleState = Unattached | Prospective | Candidate | Leader | Follower | Resigned
