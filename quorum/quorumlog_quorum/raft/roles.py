"""The roles of a node in the quorum: which may follow which, and what each one knows (KIP-595).

The tables come first. Observers (nodes that are not voters) move between Unattached and Follower only. A state changes
only through its own methods; a role is replaced by another only through `Core`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.quorum import FetchSnapshotRequest
from quorumlog_quorum.raft.high_watermark_pacing import HighWatermarkPacing
from quorumlog_quorum.raft.read_rounds import NONE_TOLD, ReadRounds
from quorumlog_quorum.raft.replicas import Replicas
from quorumlog_quorum.raft.voter_change import VoterChange
from quorumlog_quorum.raft.voters import Voter, VoterKey, VoterSet


class RaftRole(Enum):
    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


# Within one epoch. A follower becomes unattached when its leader announced its resignation or was proven dead,
# or, on an observer, when the leader did not answer in time. A resigned leader never leads its epoch again.
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


def is_legal(old: RaftRole, old_epoch: Epoch, new: RaftRole, new_epoch: Epoch, *, can_elect: bool) -> bool:
    """Whether a node may go from one role and epoch to another."""
    if new_epoch < old_epoch:
        return False
    if not can_elect and new not in OBSERVER_ROLES and (old, new) != (RaftRole.LEADER, RaftRole.RESIGNED):
        return False  # a leader that was removed resigns
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
class VoterRequestState:
    """A follower's own requests about itself as a voter: at most one is in flight."""

    in_flight: int | None = None  # its correlation
    due_at_ms: int = 0  # not before
    is_told: bool = False  # this leader knows what it must know of this node

    def on_sent(self, correlation: int) -> None:
        self.in_flight = correlation

    def on_done(self, again_at_ms: int, *, is_told: bool = False) -> None:
        self.in_flight, self.due_at_ms, self.is_told = None, again_at_ms, is_told


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
    voter_request: VoterRequestState = field(default_factory=VoterRequestState)
    offered_high_watermark: Offset = -1  # the leader's; this node's own never passes its log
    read_round: int = NONE_TOLD  # the newest that this leader has told

    def on_good_answer(self, fetch_by_ms: int, read_round: int) -> None:
        """read_round: 0 if the leader has begun none; a follower that named 0 would pass for older software."""
        self.fetch_by_ms, self.has_fetched = fetch_by_ms, True
        if read_round > 0:
            self.read_round = max(self.read_round, read_round)

    def offer_high_watermark(self, offset: Offset) -> None:
        self.offered_high_watermark = max(self.offered_high_watermark, offset)


@dataclass(frozen=True, slots=True)
class ParkedFetch:
    """A fetch that waits for records past `offset`, or for a high watermark past the one that its sender knows."""

    token: int
    key: VoterKey  # who asks
    offset: Offset
    max_bytes: int
    high_watermark: Offset
    deadline_ms: int
    hold_until_ms: int  # until then a high watermark may wait for records (high_watermark_pacing.py)
    read_round: int  # the newest that its sender knows


@dataclass(frozen=True, slots=True)
class HandOver:
    """A leader that looks for a successor (handing_over.py). wanted: None: the voter that is ready first.

    token: of the request that asked for it; None: this leader is stopped.
    """

    wanted: NodeId | None
    token: int | None
    round: int  # the read round that the successor must name
    until_ms: int


@dataclass(slots=True)
class Leader:
    role = RaftRole.LEADER
    epoch_start_offset: Offset  # the offset of its LeaderChange record
    replicas: Replicas
    rounds: ReadRounds
    begin_at_ms: int  # when to send BeginQuorumEpoch again to the voters that do not fetch
    parked: list[ParkedFetch] = field(default_factory=list)  # of voters
    watching: list[ParkedFetch] = field(default_factory=list)  # of observers, which get what is committed
    watched_high_watermark: Offset = (
        -1
    )  # what observers may have: the high watermark of the last round of answers to them
    watched_at_ms: int = 0  # when that was
    watched_due_ms: int | None = None  # when the first wait of an observer is over; None: none waits
    sorted_by: Offset | None = None  # the voters' record by which fetches were told apart; None: the static set
    pace: HighWatermarkPacing = field(default_factory=HighWatermarkPacing)
    reading: dict[int, ParkedFetch] = field(default_factory=dict)  # by token: fetches whose records are being read
    sharing: dict[int, list[int]] = field(default_factory=dict)  # by token of a read: other fetches that it answers
    claim_end: Offset = 0  # exclusive; set at the start: what must be committed before it claims its leadership
    claimed: bool = False
    hand_over: HandOver | None = None  # under way: nothing is appended
    change: VoterChange | None = None  # of the voters: at most one is under way
    updates: dict[NodeId, Voter] = field(default_factory=dict)  # what voters of a static set told about themselves
    reading_snapshots: dict[int, FetchSnapshotRequest] = field(default_factory=dict)  # by token

    def __post_init__(self) -> None:
        self.claim_end = self.epoch_start_offset + 1

    @property
    def awaited_round(self) -> int:
        """The newest read round that something waits for; 0: nothing does."""
        return max(self.rounds.awaited, 0 if self.hand_over is None else self.hand_over.round)

    def park(self, fetch: ParkedFetch) -> None:
        """Of a voter."""
        self.parked.append(fetch)

    def watch(self, fetch: ParkedFetch, due_ms: int) -> None:
        """Park the fetch of an observer. due_ms: look at it then at the latest."""
        self.watching.append(fetch)
        self.hold_watching(due_ms)

    def take_parked(self) -> list[ParkedFetch]:
        taken, self.parked = self.parked, []
        return taken

    def take_watching(self, high_watermark: Offset, now_ms: int) -> list[ParkedFetch]:
        """A round of answers: to be looked at for this high watermark."""
        taken, self.watching = self.watching, []
        if high_watermark > self.watched_high_watermark:
            self.watched_at_ms = now_ms
        self.watched_due_ms, self.watched_high_watermark = None, high_watermark
        return taken

    def hold_watching(self, until_ms: int) -> None:
        """The next round takes place then."""
        self.watched_due_ms = until_ms if self.watched_due_ms is None else min(until_ms, self.watched_due_ms)

    def sort_parked(self, voters: VoterSet, sorted_by: Offset | None) -> None:
        """Another set is in force: a node that it names must get what is not committed, and no other."""
        everyone = [*self.parked, *self.watching]
        self.parked = [fetch for fetch in everyone if voters.names(fetch.key)]
        self.watching = [fetch for fetch in everyone if not voters.names(fetch.key)]
        self.sorted_by, self.watched_due_ms = sorted_by, min((one.deadline_ms for one in self.watching), default=None)
        self.watched_high_watermark = -1  # they are looked at next

    def holds_high_watermark_of(self, fetch: ParkedFetch, now_ms: int) -> bool:
        """Whether a new high watermark alone is no reason yet to answer this fetch."""
        return now_ms < fetch.hold_until_ms and self.pace.holds

    def start_reading(self, fetch: ParkedFetch) -> None:
        self.reading[fetch.token] = fetch

    def share_reading(self, token: int, fetch: ParkedFetch) -> None:
        """The read that `token` began answers this fetch, too."""
        self.reading[fetch.token] = fetch
        self.sharing.setdefault(token, []).append(fetch.token)

    def finish_reading(self, token: int) -> list[int]:
        """The tokens of the fetches that this read answers; none if it was begun in another leadership."""
        if self.reading.pop(token, None) is None:
            return []
        others = self.sharing.pop(token, [])
        for other in others:
            del self.reading[other]
        return [token, *others]

    def begin_change(self, change: VoterChange) -> None:
        assert self.change is None, f"two changes of the voters: {self.change}, {change}"
        self.change = change

    def end_change(self) -> None:
        self.change = None

    def note_update(self, voter: Voter) -> None:
        self.updates[voter.node_id] = voter

    def start_reading_snapshot(self, token: int, request: FetchSnapshotRequest) -> None:
        self.reading_snapshots[token] = request

    def finish_reading_snapshot(self, token: int) -> FetchSnapshotRequest | None:
        return self.reading_snapshots.pop(token, None)

    def claim(self) -> None:
        self.claimed = True

    def begin_hand_over(self, hand_over: HandOver) -> None:
        assert self.hand_over is None
        self.hand_over = hand_over

    def end_hand_over(self, claim_end: Offset) -> None:
        """Go on leading. It claims its leadership again when all below claim_end is committed."""
        self.hand_over, self.claimed, self.claim_end = None, False, claim_end

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
