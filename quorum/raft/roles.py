"""The roles of a node in the quorum: which may follow which, and what each one knows (KRAFT 2.1).

The tables come first. Observers (nodes that are not voters) move between Unattached and Follower only. A state changes
only through its own methods; a role is replaced by another only through `Core`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from quorum.raft.replicas import Replicas
from quorumlog.ids import Epoch, NodeId, Offset


class RaftRole(Enum):
    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


# Within one epoch. A follower becomes unattached when its leader announced its resignation or was proven dead
# (DESIGN 5), or, on an observer, when the leader did not answer in time. A resigned leader never leads its epoch again.
SAME_EPOCH: dict[RaftRole, frozenset[RaftRole]] = {
    RaftRole.UNATTACHED: frozenset({RaftRole.UNATTACHED, RaftRole.PROSPECTIVE, RaftRole.FOLLOWER}),
    RaftRole.PROSPECTIVE: frozenset({RaftRole.PROSPECTIVE, RaftRole.UNATTACHED, RaftRole.FOLLOWER}),
    RaftRole.CANDIDATE: frozenset({RaftRole.LEADER, RaftRole.PROSPECTIVE, RaftRole.FOLLOWER}),
    RaftRole.LEADER: frozenset({RaftRole.RESIGNED}),
    RaftRole.FOLLOWER: frozenset({RaftRole.PROSPECTIVE, RaftRole.UNATTACHED}),
    RaftRole.RESIGNED: frozenset(),
}

# Into a larger epoch. Every role may learn of one; only a prospective node begins one, as its candidate. A leader is
# made from the candidate of its epoch.
NEW_EPOCH: dict[RaftRole, frozenset[RaftRole]] = {
    role: frozenset({RaftRole.UNATTACHED, RaftRole.FOLLOWER})
    | ({RaftRole.CANDIDATE} if role is RaftRole.PROSPECTIVE else frozenset())
    for role in RaftRole
}

# The first role after a start is one of SAME_EPOCH of an unattached node, or one of these, which a voter resumes.
RESUMED = frozenset({RaftRole.CANDIDATE, RaftRole.RESIGNED})

OBSERVER_ROLES = frozenset({RaftRole.UNATTACHED, RaftRole.FOLLOWER})


def is_legal(old: RaftRole, old_epoch: Epoch, new: RaftRole, new_epoch: Epoch, *, is_voter: bool) -> bool:
    """Whether a node may go from one role and epoch to another."""
    if new_epoch < old_epoch or (not is_voter and new not in OBSERVER_ROLES):
        return False
    if new is RaftRole.CANDIDATE and new_epoch != old_epoch + 1:
        return False
    return new in (SAME_EPOCH if new_epoch == old_epoch else NEW_EPOCH)[old]


@dataclass(slots=True)
class FetchState:
    """A follower's or observer's own fetches: at most one is in flight."""

    in_flight: int | None = None  # its correlation
    retry_at_ms: int | None = None  # set after a fetch that failed

    def on_sent(self, correlation: int) -> None:
        self.in_flight, self.retry_at_ms = correlation, None

    def on_done(self) -> None:
        self.in_flight = None

    def retry_at(self, at_ms: int) -> None:
        self.retry_at_ms = at_ms


@dataclass(slots=True)
class VoteRound:
    """The votes of one round. `granted` holds the node itself from the start. Dicts keep the order of arrival."""

    granted: dict[NodeId, None]
    refused: dict[NodeId, None] = field(default_factory=dict)  # these voters refused, or could not be reached
    retry_at_ms: int | None = None  # set once the round cannot be won

    def grant(self, voter: NodeId) -> None:
        self.granted[voter] = None

    def refuse(self, voter: NodeId) -> None:
        self.refused[voter] = None

    def retry_at(self, at_ms: int) -> None:
        self.retry_at_ms = at_ms


@dataclass(slots=True)
class Unattached:
    role = RaftRole.UNATTACHED
    election_at_ms: int | None  # None: this node never elects (an observer, or one that shuts down)
    fetch: FetchState  # observers look for the leader by fetching from voters

    def elect_at(self, at_ms: int) -> None:
        """Replace the election deadline, if there is one."""
        if self.election_at_ms is not None:
            self.election_at_ms = at_ms

    def elect_no_later_than(self, at_ms: int) -> None:
        """Shorten the election deadline, if there is one."""
        if self.election_at_ms is not None:
            self.election_at_ms = min(self.election_at_ms, at_ms)


@dataclass(slots=True)
class Prospective:
    role = RaftRole.PROSPECTIVE
    election_at_ms: int
    votes: VoteRound


@dataclass(slots=True)
class Candidate:
    role = RaftRole.CANDIDATE
    election_at_ms: int
    votes: VoteRound


@dataclass(slots=True)
class Follower:
    role = RaftRole.FOLLOWER
    fetch_by_ms: int  # the fetch timeout: a good answer is due by then
    fetch: FetchState
    has_fetched: bool = False  # successfully, from this leader, in this epoch
    offered_high_watermark: Offset = -1  # the leader's; this node's own never passes its log

    def on_good_answer(self, fetch_by_ms: int) -> None:
        self.fetch_by_ms, self.has_fetched = fetch_by_ms, True

    def offer_high_watermark(self, offset: Offset) -> None:
        self.offered_high_watermark = max(self.offered_high_watermark, offset)


@dataclass(frozen=True, slots=True)
class ParkedFetch:
    """A fetch that waits for records past `offset`, or for a high watermark past the one that its sender knows."""

    token: int
    replica_id: NodeId
    offset: Offset
    max_bytes: int
    high_watermark: Offset
    deadline_ms: int


@dataclass(slots=True)
class Leader:
    role = RaftRole.LEADER
    epoch_start_offset: Offset  # the offset of its LeaderChange record
    granting: tuple[NodeId, ...]
    replicas: Replicas
    begin_at_ms: int  # when to send BeginQuorumEpoch again to the voters that do not fetch
    parked: list[ParkedFetch] = field(default_factory=list)
    reading: dict[int, ParkedFetch] = field(default_factory=dict)  # by token: fetches whose records are being read
    claimed: bool = False  # its LeaderChange record is committed

    def park(self, fetch: ParkedFetch) -> None:
        self.parked.append(fetch)

    def take_parked(self) -> list[ParkedFetch]:
        taken, self.parked = self.parked, []
        return taken

    def start_reading(self, fetch: ParkedFetch) -> None:
        self.reading[fetch.token] = fetch

    def finish_reading(self, token: int) -> ParkedFetch | None:
        return self.reading.pop(token, None)

    def claim(self) -> None:
        self.claimed = True

    def send_begin_at(self, at_ms: int) -> None:
        self.begin_at_ms = at_ms


@dataclass(slots=True)
class Resigned:
    role = RaftRole.RESIGNED
    election_at_ms: int | None  # None: this node shuts down
    successors: tuple[NodeId, ...]  # the preferred one first
    unacked: dict[NodeId, int | None]  # voter -> when to send EndQuorumEpoch again; None while a request is in flight
    shutdown_by_ms: int | None = None

    def shut_down_by(self, at_ms: int) -> None:
        self.shutdown_by_ms = at_ms

    def on_end_sent(self, voter: NodeId) -> None:
        self.unacked[voter] = None

    def retry_end_at(self, voter: NodeId, at_ms: int) -> None:
        self.unacked[voter] = at_ms

    def on_end_acknowledged(self, voter: NodeId) -> None:
        del self.unacked[voter]

    def finish_shutdown(self) -> None:
        """Send EndQuorumEpoch to no more voters."""
        self.shutdown_by_ms = None
        self.unacked.clear()


RoleState = Unattached | Prospective | Candidate | Leader | Follower | Resigned
