"""The state of one node of the quorum, and every way in which it changes.

Nothing else in this package assigns to the core (a test over the syntax tree holds this). The other modules decide and
call the transitions here. `become` changes role, epoch, vote and leader: it checks the tables of roles.py, puts
PersistQuorumState in front of everything that follows from the change, and reports a lost leadership and a new leader.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorum.raft.config import RaftConfig
from quorum.raft.effects import (
    AppendFetched,
    AppendLeaderChange,
    AppendValues,
    HighWatermark,
    LeaderChanged,
    LeadershipLost,
    PersistQuorumState,
    RaftEffect,
    RecordsRegained,
    Reply,
    Send,
    SentRequest,
    SentResponse,
    ShutdownFinished,
    TruncateTo,
)
from quorum.raft.log_state import EpochSpan, LogState
from quorum.raft.quorum_state import QuorumState
from quorum.raft.random_source import RandomSource
from quorum.raft.roles import (
    RESUMED,
    Candidate,
    FetchState,
    Follower,
    Leader,
    RaftRole,
    Resigned,
    RoleState,
    Unattached,
    VoteRound,
    is_legal,
)
from quorum.raft.voters import VoterKey, VoterSet
from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE, Epoch, NodeId, Offset
from quorumlog.messages.quorum import QuorumFetchResponse


@dataclass(frozen=True, slots=True)
class InFlightRequest:
    """A request that has no answer yet. votes: for a vote request, the round that it belongs to."""

    to: NodeId
    message: SentRequest
    votes: VoteRound | None = None


class SplitBrain(AssertionError):
    """Two leaders in one epoch. This must never happen; the node stops."""


class Core:
    """Changed by its own methods only, inside `Raft.step`."""

    def __init__(
        self,
        *,
        key: VoterKey,
        voters: VoterSet,
        config: RaftConfig,
        rng: RandomSource,
        log: LogState,
        saved: QuorumState,
        is_whole: bool = True,
    ) -> None:
        self.key, self.voters, self.config, self.rng, self.log = key, voters, config, rng, log
        self.saved = saved  # as it was read at start; `Raft` decides from it how to go on
        self.epoch: Epoch = saved.epoch
        self.leader_id: NodeId | None = None
        self.voted: VoterKey | None = saved.voted
        self.role: RoleState = Unattached(election_at_ms=None, fetch=FetchState())
        self.is_whole = is_whole  # False: the log lacks records that were synced once; see `regain_records`
        self.high_watermark: Offset = -1  # exclusive; -1: not known since the process started
        # A leader that is proven dead or has resigned, with its epoch: peers that still name it are not believed.
        self.departed_leader: tuple[NodeId, Epoch] | None = None
        self.shutting_down = False
        self.in_flight: dict[int, InFlightRequest] = {}  # by correlation
        self._effects: list[RaftEffect] = []
        self._last_correlation = 0
        self._persisted = saved
        self._announced: tuple[NodeId | None, Epoch] | None = None

    @property
    def node_id(self) -> NodeId:
        return self.key.node_id

    @property
    def is_voter(self) -> bool:
        return self.voters.names(self.key)

    @property
    def can_elect(self) -> bool:
        """Whether this node may vote and stand for election."""
        return self.is_voter and self.is_whole

    @property
    def readable_end(self) -> Offset:
        """The largest high watermark that this node can have, exclusive.

        For a voter it is the synced end. For an observer, which no majority counts, it is the written end; for a leader
        too, because its followers may commit with their own syncs what the leader has only written.
        """
        return self.log.synced_end if self.is_voter and not isinstance(self.role, Leader) else self.log.written_end

    @property
    def leader_hint(self) -> NodeId:
        """The leader as responses name it; NO_NODE if none is known."""
        return NO_NODE if self.leader_id is None else self.leader_id

    @property
    def accepts_leader(self) -> bool:
        """Whether this node may still learn who leads its own epoch."""
        return self.role.role in (RaftRole.UNATTACHED, RaftRole.PROSPECTIVE, RaftRole.CANDIDATE)

    # --- role, epoch, leader and vote ---

    def resume(self, role: Candidate | Resigned) -> None:
        """At start: go on as the candidate or the leader of the saved epoch, without a new promise."""
        assert role.role in RESUMED and self.is_voter and self.epoch == self.saved.epoch
        self.role = role

    def become(
        self, role: RoleState, *, epoch: Epoch, leader_id: NodeId | None = None, voted: VoterKey | None = None
    ) -> None:
        old = self.role
        legal = is_legal(old.role, self.epoch, role.role, epoch, is_voter=self.is_voter)
        assert legal, f"node {self.node_id}: {old.role.value} in {self.epoch} -> {role.role.value} in {epoch}"
        if epoch == self.epoch:
            assert self.voted in (None, voted), f"epoch {epoch}: the vote of {self.voted} cannot become one of {voted}"
            self.check_one_leader(leader_id)
        old_epoch = self.epoch
        self.role, self.epoch, self.leader_id, self.voted = role, epoch, leader_id, voted
        self._persist()
        if isinstance(old, Leader):
            self._end_leadership(old, old_epoch)
        self.announce_leader()
        if self.shutting_down and isinstance(old, Resigned):
            self.add_effect(ShutdownFinished())

    def become_unattached(self, epoch: Epoch, now_ms: int, voted: VoterKey | None = None) -> None:
        """Into a larger epoch; or within this one, to vote or to forget the leader."""
        if epoch == self.epoch:
            voted = voted or self.voted
        self.become(Unattached(self.election_at_ms(now_ms), FetchState()), epoch=epoch, voted=voted)

    def become_follower(self, epoch: Epoch, leader_id: NodeId, now_ms: int) -> None:
        assert leader_id != self.node_id and leader_id in self.voters
        voted = self.voted if epoch == self.epoch else None
        role = Follower(now_ms + self.config.fetch_timeout_ms, FetchState())
        self.become(role, epoch=epoch, leader_id=leader_id, voted=voted)

    def forget_leader(self, now_ms: int, election_in_ms: int) -> None:
        """The leader of this epoch is gone. election_in_ms: how long to wait before an election; voters only."""
        assert self.leader_id is not None
        self.mark_departed(self.leader_id, self.epoch)
        if self.role.role is RaftRole.PROSPECTIVE:
            self.leader_id = None
            self._persist()
            self.announce_leader()
            return
        self.become_unattached(self.epoch, now_ms)
        assert isinstance(self.role, Unattached)
        self.role.elect_at(now_ms + election_in_ms)

    def mark_departed(self, leader_id: NodeId, epoch: Epoch) -> None:
        """Do not believe peers that still name this leader."""
        self.departed_leader = (leader_id, epoch)

    def clear_departed(self) -> None:
        """The leader itself has spoken."""
        self.departed_leader = None

    def learn(self, epoch: Epoch, leader_id: NodeId | None, now_ms: int) -> None:
        """A peer named its epoch and leader: adopt a larger epoch, and the leader if none is known."""
        if leader_id == self.node_id or leader_id not in self.voters or (leader_id, epoch) == self.departed_leader:
            leader_id = None
        if epoch > self.epoch:
            if leader_id is None:
                self.become_unattached(epoch, now_ms)
            else:
                self.become_follower(epoch, leader_id, now_ms)
        elif epoch == self.epoch and leader_id is not None and self.leader_id is None and self.accepts_leader:
            self.become_follower(epoch, leader_id, now_ms)

    def begin_shutdown(self) -> None:
        self.shutting_down = True

    def announce_leader(self) -> None:
        """Report the leader and the epoch, if they differ from the last report."""
        if self._announced != (self.leader_id, self.epoch):
            self._announced = (self.leader_id, self.epoch)
            self.add_effect(LeaderChanged(self.leader_id, self.epoch))

    def check_one_leader(self, leader_id: NodeId | None) -> None:
        """Raises SplitBrain if another node is known to lead this epoch."""
        if None not in (self.leader_id, leader_id) and leader_id != self.leader_id:
            raise SplitBrain(f"epoch {self.epoch} has two leaders, {self.leader_id} and {leader_id}")

    def election_at_ms(self, now_ms: int) -> int | None:
        """A fresh election deadline; None for a node that cannot elect, or shuts down."""
        if not self.can_elect or self.shutting_down:
            return None
        return now_ms + self.config.draw_election_timeout_ms(self.rng)

    def _persist(self) -> None:
        """A resigned leader stays the leader of its epoch on disk: it must restart as one that resigned."""
        if isinstance(self.role, Resigned):
            return
        state = QuorumState(epoch=self.epoch, leader_id=self.leader_id, voted=self.voted)
        if state != self._persisted:
            self._persisted = state
            self.add_effect(PersistQuorumState(state))

    def _end_leadership(self, old: Leader, epoch: Epoch) -> None:
        for parked in (*old.parked, *old.reading.values()):
            self.reply(parked.token, self.fetch_error(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        self.add_effect(LeadershipLost(epoch))

    # --- the log ---

    def regain_records(self) -> None:
        """The log holds all that is committed, and so all that this node has ever acknowledged and that counted."""
        assert not self.is_whole
        self.is_whole = True
        self.add_effect(RecordsRegained())

    def append(self, effect: AppendLeaderChange | AppendValues) -> None:
        """As the leader: give offsets away and queue the write."""
        self.log.accept(EpochSpan(effect.epoch, effect.offset, effect.end_offset))
        self.add_effect(effect)

    def append_fetched(self, effect: AppendFetched) -> None:
        for span in effect.spans:
            self.log.accept(span)
        self.add_effect(effect)

    def truncate(self, end_offset: Offset) -> None:
        self.log.truncate(end_offset)
        self.add_effect(TruncateTo(end_offset))

    def on_written(self, end_offset: Offset) -> None:
        self.log.on_written(end_offset)

    def on_synced(self, end_offset: Offset) -> None:
        self.log.on_synced(end_offset)

    def on_truncated(self, end_offset: Offset) -> None:
        self.log.on_truncated(end_offset)

    def raise_high_watermark(self, offset: Offset) -> None:
        """A smaller one changes nothing: what was committed once stays committed."""
        assert offset <= self.readable_end, f"{offset} is past the own log: {self.log}"
        if offset > self.high_watermark:
            self.high_watermark = offset
            self.add_effect(HighWatermark(offset))

    # --- effects and messages ---

    def add_effect(self, effect: RaftEffect) -> None:
        """Effects are performed in the order in which they are added."""
        self._effects.append(effect)

    def take_effects(self) -> list[RaftEffect]:
        taken, self._effects = self._effects, []
        return taken

    def send(self, to: NodeId, message: SentRequest, votes: VoteRound | None = None, extra_ms: int = 0) -> int:
        """Returns the correlation. extra_ms: added to the time-out of a request that may wait at the receiver."""
        assert to != self.node_id
        self._last_correlation += 1
        self.in_flight[self._last_correlation] = InFlightRequest(to, message, votes)
        self.add_effect(Send(to, message, self._last_correlation, self.config.request_timeout_ms + extra_ms))
        return self._last_correlation

    def finish(self, correlation: int) -> InFlightRequest | None:
        """The request has its answer, or none will come. None: no such request is in flight."""
        return self.in_flight.pop(correlation, None)

    def reply(self, token: int, message: SentResponse) -> None:
        self.add_effect(Reply(token, message))

    def fetch_error(self, code: ErrorCode) -> QuorumFetchResponse:
        return QuorumFetchResponse(
            error_code=code,
            leader_id=self.leader_hint,
            leader_epoch=self.epoch,
            node_endpoints=self.voters.hints(self.leader_id),
        )
