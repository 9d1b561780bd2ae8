"""What every part of the core shares: who this node is, where it stands, and the one way to change that.

`become` is the only place where role, epoch, vote and leader change. It checks the table of roles.py, puts
PersistQuorumState in front of whatever follows from the change, and tells the leadership lost and the leader changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorum.raft.chance import Chance
from quorum.raft.config import RaftConfig
from quorum.raft.effects import (
    Answer,
    Effect,
    HighWatermark,
    LeaderChanged,
    LeadershipLost,
    PersistQuorumState,
    Question,
    Reply,
    Send,
    ShutdownFinished,
)
from quorum.raft.log_state import LogState
from quorum.raft.quorum_state import QuorumState
from quorum.raft.roles import Follower, Leader, Pull, Resigned, Role, RoleState, Unattached, VoteRound, is_legal
from quorum.raft.voters import VoterKey, VoterSet
from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE, Epoch, NodeId, Offset
from quorumlog.messages.quorum import QuorumFetchResponse


@dataclass(frozen=True, slots=True)
class Flight:
    """A call under way. votes: the round that it belongs to, for a vote."""

    to: NodeId
    message: Question
    votes: VoteRound | None = None


class SplitBrain(AssertionError):
    """Two leaders in one epoch: what must never happen has happened. This node stops."""


class Core:
    """State of one node of the quorum. Changed by the modules of this package only, inside `Raft.step`."""

    def __init__(
        self, *, key: VoterKey, voters: VoterSet, config: RaftConfig, rng: Chance, log: LogState, saved: QuorumState
    ) -> None:
        self.key, self.voters, self.config, self.rng, self.log = key, voters, config, rng, log
        self.epoch: Epoch = saved.epoch
        self.leader_id: NodeId | None = saved.leader_id
        self.voted: VoterKey | None = saved.voted
        self.role: RoleState = Unattached(election_at_ms=None, pull=Pull())
        self.high_watermark: Offset = -1  # exclusive; -1: not known since the process began
        self.forsaken: tuple[NodeId, Epoch] | None = None  # proven dead, or gone by its own word: hearsay is ignored
        self.shutting_down = False
        self.effects: list[Effect] = []
        self.flights: dict[int, Flight] = {}
        self._last_correlation = 0
        self._persisted = saved
        self._told: tuple[NodeId | None, Epoch] | None = None

    @property
    def node_id(self) -> NodeId:
        return self.key.node_id

    @property
    def is_voter(self) -> bool:
        return self.voters.names(self.key)

    @property
    def readable_end(self) -> Offset:
        """Up to where a high watermark makes sense here: what a voter has synced; what an observer, whom nobody counts,
        has written, and a leader too, since followers may commit with their own syncs what it has only written.
        """
        return self.log.synced_end if self.is_voter and not isinstance(self.role, Leader) else self.log.written_end

    # Roles

    def become(
        self, role: RoleState, *, epoch: Epoch, leader_id: NodeId | None = None, voted: VoterKey | None = None
    ) -> None:
        old = self.role
        legal = is_legal(old.role, self.epoch, role.role, epoch, is_voter=self.is_voter)
        assert legal, f"node {self.node_id}: {old.role.value} in {self.epoch} -> {role.role.value} in {epoch}"
        if epoch == self.epoch:
            assert self.voted in (None, voted), f"epoch {epoch}: the vote of {self.voted} cannot become one of {voted}"
            self.one_leader(leader_id)
        lost = self.epoch
        self.role, self.epoch, self.leader_id, self.voted = role, epoch, leader_id, voted
        self.persist()
        if isinstance(old, Leader):
            self._leave_leadership(old, lost)
        self.tell_leader()
        if self.shutting_down and isinstance(old, Resigned):
            self.effects.append(ShutdownFinished())

    def become_unattached(self, epoch: Epoch, now_ms: int, voted: VoterKey | None = None) -> None:
        """Into a larger epoch, or in this one to vote or to forget the leader."""
        if epoch == self.epoch:
            voted = voted or self.voted
        self.become(Unattached(self.election_at_ms(now_ms), Pull()), epoch=epoch, voted=voted)

    def become_follower(self, epoch: Epoch, leader_id: NodeId, now_ms: int) -> None:
        assert leader_id != self.node_id and leader_id in self.voters
        voted = self.voted if epoch == self.epoch else None
        role = Follower(now_ms + self.config.fetch_timeout_ms, Pull())
        self.become(role, epoch=epoch, leader_id=leader_id, voted=voted)

    def forget_leader(self, now_ms: int, election_in_ms: int) -> None:
        """The leader of this epoch is gone: whoever only repeats its name is not believed (`forsaken`)."""
        assert self.leader_id is not None
        self.forsaken = (self.leader_id, self.epoch)
        if self.role.role is Role.PROSPECTIVE:
            self.leader_id = None
            self.persist()
            self.tell_leader()
            return
        self.become_unattached(self.epoch, now_ms)
        assert isinstance(self.role, Unattached)
        if self.role.election_at_ms is not None:
            self.role.election_at_ms = now_ms + election_in_ms

    def observe(self, epoch: Epoch, leader_id: NodeId | None, now_ms: int) -> None:
        """A peer says where it stands. Larger epochs are adopted, and so is a leader where none is known."""
        if leader_id == self.node_id or leader_id not in self.voters or (leader_id, epoch) == self.forsaken:
            leader_id = None
        if epoch > self.epoch:
            if leader_id is None:
                self.become_unattached(epoch, now_ms)
            else:
                self.become_follower(epoch, leader_id, now_ms)
        elif epoch == self.epoch and leader_id is not None and self.leader_id is None and self.may_follow():
            self.become_follower(epoch, leader_id, now_ms)

    def may_follow(self) -> bool:
        """Whether a leader of the own epoch may be news."""
        return self.role.role in (Role.UNATTACHED, Role.PROSPECTIVE, Role.CANDIDATE)

    def persist(self) -> None:
        """A resigned leader is still the leader of its epoch on disk: it must restart as one that resigned."""
        if isinstance(self.role, Resigned):
            return
        state = QuorumState(epoch=self.epoch, leader_id=self.leader_id, voted=self.voted)
        if state != self._persisted:
            self._persisted = state
            self.effects.append(PersistQuorumState(state))

    def tell_leader(self) -> None:
        if self._told != (self.leader_id, self.epoch):
            self._told = (self.leader_id, self.epoch)
            self.effects.append(LeaderChanged(self.leader_id, self.epoch))

    def election_at_ms(self, now_ms: int) -> int | None:
        """A fresh election deadline; None for those who never elect."""
        if not self.is_voter or self.shutting_down:
            return None
        return now_ms + self.config.draw_election_timeout_ms(self.rng)

    def one_leader(self, leader_id: NodeId | None) -> None:
        """Raises SplitBrain unless this may be the leader of the own epoch."""
        if None not in (self.leader_id, leader_id) and leader_id != self.leader_id:
            raise SplitBrain(f"epoch {self.epoch} has two leaders, {self.leader_id} and {leader_id}")

    def _leave_leadership(self, old: Leader, epoch: Epoch) -> None:
        for parked in (*old.parked, *old.reading.values()):
            self.reply(parked.token, self.fetch_error(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        self.effects.append(LeadershipLost(epoch))

    # Messages

    def send(self, to: NodeId, message: Question, votes: VoteRound | None = None, extra_ms: int = 0) -> int:
        """extra_ms: how much longer than other calls this one may take. Returns the correlation."""
        assert to != self.node_id
        self._last_correlation += 1
        self.flights[self._last_correlation] = Flight(to, message, votes)
        self.effects.append(Send(to, message, self._last_correlation, self.config.request_timeout_ms + extra_ms))
        return self._last_correlation

    def reply(self, token: int, message: Answer) -> None:
        self.effects.append(Reply(token, message))

    @property
    def leader_hint(self) -> NodeId:
        return NO_NODE if self.leader_id is None else self.leader_id

    def fetch_error(self, code: ErrorCode) -> QuorumFetchResponse:
        return QuorumFetchResponse(
            error_code=code,
            leader_id=self.leader_hint,
            leader_epoch=self.epoch,
            node_endpoints=self.voters.hints(self.leader_id),
        )

    def raise_high_watermark(self, offset: Offset) -> bool:
        """True if it is news. A smaller one never is: what was committed once stays committed."""
        assert offset <= self.readable_end, f"{offset} is past the own log: {self.log}"
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        self.effects.append(HighWatermark(offset))
        return True
