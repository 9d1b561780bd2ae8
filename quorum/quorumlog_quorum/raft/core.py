"""The state of one node of the quorum, and every way in which it changes.

Nothing else in this package assigns to the core (a test over the syntax tree holds this). The other modules decide and
call the transitions here. `become` changes role, epoch, vote and leader: it checks the tables of roles.py, puts
PersistQuorumState in front of everything that follows from the change, and reports a lost leadership and a new leader.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorumlog.ids import NO_NODE, Epoch, NodeId, Offset
from quorumlog.messages.common import Endpoint, NodeEndpoint
from quorumlog.records.control import KRaftVersion, Voters
from quorumlog.settings.quorum import RaftConfig
from quorumlog_quorum.raft.addresses import Addresses
from quorumlog_quorum.raft.effects import (
    AppendControl,
    AppendFetched,
    AppendLeaderChange,
    AppendValues,
    DropSnapshot,
    HighWatermark,
    LeaderChanged,
    LeadershipLost,
    MembershipSettled,
    RaftEffect,
    RecordsRegained,
    RestartLog,
    SentRequest,
    SentResponse,
    ShutdownFinished,
    SnapshotInstalled,
    TruncateTo,
)
from quorumlog_quorum.raft.log_state import EpochSpan, LogState
from quorumlog_quorum.raft.membership import Membership
from quorumlog_quorum.raft.outbox import InFlightRequest, Outbox
from quorumlog_quorum.raft.quorum_state import QuorumState
from quorumlog_quorum.raft.refusals import Refusals
from quorumlog_quorum.raft.roles import (
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
from quorumlog_quorum.raft.snapshot_download import SnapshotDownload
from quorumlog_quorum.raft.voters import MembershipRecord, VoterHistory, VoterKey, VoterSet
from quorumlog_storage.rules.fetch_rule import SnapshotId

if TYPE_CHECKING:
    from random import Random


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
        rng: Random,
        log: LogState,
        saved: QuorumState,
        is_whole: bool = True,
        membership: Membership | None = None,
    ) -> None:
        self.key, self.config, self.rng, self.log = key, config, rng, log
        self.membership = membership or Membership()
        self.history = VoterHistory(voters, self.membership.records)
        self.has_joined = self.membership.has_joined  # this directory was a voter once
        self.addresses = Addresses(key.node_id, self.membership)
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
        self.download: SnapshotDownload | None = None  # of the leader of this epoch
        self._restarting_at: SnapshotId | None = None  # until the log is cut
        self.outbox = Outbox(saved)
        self._announced: tuple[NodeId | None, Epoch] | None = None

    @property
    def node_id(self) -> NodeId:
        return self.key.node_id

    @property
    def voters(self) -> VoterSet:
        """The set in force: the one that was appended last, committed or not."""
        return self.history.voters

    @property
    def is_voter(self) -> bool:
        return self.voters.names(self.key)

    @property
    def can_elect(self) -> bool:
        """Whether this node may stand for election.

        A voter whose removal may not be committed may still be needed: perhaps no other node has its records, while
        the voters of the older set cannot elect without it. It does not count its own vote then (Raft thesis, 4.2.2).
        """
        return (self.is_voter or self.history.is_leaving(self.key, self.high_watermark)) and self.is_whole

    @property
    def syncs_first(self) -> bool:
        """Whether this node acknowledges only what is synced: a voter, and a node that a leader may count already."""
        return self.is_voter or self.membership.can_become_voter

    @property
    def readable_end(self) -> Offset:
        """The largest high watermark that this node can have, exclusive.

        For a voter it is the synced end. For an observer, which no majority counts, it is the written end; for a leader
        too, because its followers may commit with their own syncs what the leader has only written.
        """
        return self.log.synced_end if self.syncs_first and not isinstance(self.role, Leader) else self.log.written_end

    @property
    def leader_hint(self) -> NodeId:
        """The leader as responses name it; NO_NODE if none is known."""
        return NO_NODE if self.leader_id is None else self.leader_id

    @property
    def accepts_leader(self) -> bool:
        """Whether this node may still learn who leads its own epoch."""
        return self.role.role in (RaftRole.UNATTACHED, RaftRole.PROSPECTIVE, RaftRole.CANDIDATE)

    # --- voters, and where nodes listen ---

    def endpoint_of(self, node_id: NodeId) -> Endpoint | None:
        """Where a node listens, as far as this one knows."""
        return self.addresses.of(node_id, self.history)

    @property
    def listener(self) -> str:
        """The name of the internal listener; empty if it is not known."""
        return self.addresses.listener(self.history)

    def hints(self) -> tuple[NodeEndpoint, ...]:
        """The address of the leader, as responses carry it; empty if it is not known."""
        endpoint = None if self.leader_id is None else self.endpoint_of(self.leader_id)
        if self.leader_id is None or endpoint is None:
            return ()
        return (NodeEndpoint(node_id=self.leader_id, host=endpoint.host, port=endpoint.port),)

    def may_lead(self, node_id: NodeId) -> bool:
        """Whether another node can be followed. The set in force here may be older than the leader's."""
        return node_id != self.node_id and node_id >= 0 and self.endpoint_of(node_id) is not None

    def _add_records(self, records: tuple[MembershipRecord, ...]) -> None:
        for record in records:
            self.history.add(record)
        if records:
            self._on_voters_changed()

    def _on_voters_changed(self) -> None:
        if isinstance(self.role, Leader):
            self.role.replicas.change_voters(self.voters, self.key)

    def note_joined(self) -> None:
        """A committed set has named this directory: it never joins again by itself."""
        self.has_joined = True
        self.add_effect(MembershipSettled())

    # --- role, epoch, leader and vote ---

    def resume(self, role: Candidate | Resigned) -> None:
        """At start: go on as the candidate or the leader of the saved epoch, without a new promise."""
        assert role.role in RESUMED and (self.is_voter or self.can_elect) and self.epoch == self.saved.epoch
        self.role = role

    def become(
        self, role: RoleState, *, epoch: Epoch, leader_id: NodeId | None = None, voted: VoterKey | None = None
    ) -> None:
        old = self.role
        legal = is_legal(old.role, self.epoch, role.role, epoch, can_elect=self.can_elect)
        assert legal, f"node {self.node_id}: {old.role.value} in {self.epoch} -> {role.role.value} in {epoch}"
        if epoch == self.epoch:
            assert self.voted in (None, voted), f"epoch {epoch}: the vote of {self.voted} cannot become one of {voted}"
            self.check_one_leader(leader_id)
        else:
            self.drop_download()
        old_epoch = self.epoch
        self.role, self.epoch, self.leader_id, self.voted = role, epoch, leader_id, voted
        self._persist()
        if isinstance(old, Leader):
            self._end_leadership(old, old_epoch)
        self.announce_leader()
        if self.shutting_down and isinstance(old, Leader | Resigned) and not isinstance(role, Resigned):
            self.add_effect(ShutdownFinished())

    def become_unattached(self, epoch: Epoch, now_ms: int, voted: VoterKey | None = None) -> None:
        """Into a larger epoch; or within this one, to vote or to forget the leader."""
        if epoch == self.epoch:
            voted = voted or self.voted
        self.become(Unattached(self.election_at_ms(now_ms), FetchState()), epoch=epoch, voted=voted)

    def become_follower(self, epoch: Epoch, leader_id: NodeId, now_ms: int) -> None:
        endpoint = self.endpoint_of(leader_id)
        assert endpoint is not None and self.may_lead(leader_id), f"node {self.node_id} cannot follow {leader_id}"
        self.addresses.keep(leader_id, endpoint)
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
        if leader_id is None or not self.may_lead(leader_id) or (leader_id, epoch) == self.departed_leader:
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
        if not isinstance(self.role, Resigned):
            self.outbox.persist(QuorumState(epoch=self.epoch, leader_id=self.leader_id, voted=self.voted))

    def _end_leadership(self, old: Leader, epoch: Epoch) -> None:
        for answer in self.refusals.of_former(self.node_id, old):
            self.add_effect(answer)
        self.add_effect(LeadershipLost(epoch))

    # --- the log ---

    def regain_records(self) -> None:
        """The log holds all that is committed, and so all that this node has ever acknowledged and that counted."""
        assert not self.is_whole
        self.is_whole = True
        self.add_effect(RecordsRegained())

    def append(self, effect: AppendLeaderChange | AppendValues | AppendControl) -> None:
        """As the leader: give offsets away and queue the write. A new voter set is in force at once."""
        self.log.accept(EpochSpan(effect.epoch, effect.offset, effect.end_offset))
        self.add_effect(effect)
        if isinstance(effect, AppendControl):
            self._add_records(effect.members)

    def append_members(self, records: Sequence[KRaftVersion | Voters]) -> None:
        """As the leader: append control records about the voters, alone in their batch."""
        start = self.log.accepted_end
        members = tuple(MembershipRecord(start + index, record) for index, record in enumerate(records))
        self.append(AppendControl(start, self.epoch, members))

    def append_fetched(self, effect: AppendFetched) -> None:
        for span in effect.spans:
            self.log.accept(span)
            self._add_records(span.members)
        self.add_effect(effect)

    def truncate(self, end_offset: Offset) -> None:
        self.log.truncate(end_offset)
        self.history.truncate(end_offset)
        self.add_effect(TruncateTo(end_offset))

    def voter_records_at(self, offset: Offset) -> tuple[KRaftVersion | None, Voters | None]:
        """What a snapshot that ends at `offset`, exclusive, says about the voters; None: nothing."""
        return self.history.at(offset)

    def on_written(self, end_offset: Offset) -> None:
        self.log.on_written(end_offset)

    def on_synced(self, end_offset: Offset) -> None:
        self.log.on_synced(end_offset)

    def on_truncated(self, end_offset: Offset) -> None:
        self.log.on_truncated(end_offset)
        if self._restarting_at is not None:
            installed, self._restarting_at = self._restarting_at, None
            self.add_effect(SnapshotInstalled(installed))
            self.raise_high_watermark(installed.offset)

    # --- snapshots ---

    def begin_download(self, snapshot: SnapshotId) -> None:
        self.drop_download()
        self.download = SnapshotDownload(snapshot)

    def drop_download(self) -> None:
        """Forget the snapshot that is being fetched, if there is one."""
        if self.download is not None:
            self.add_effect(DropSnapshot(self.download.snapshot))
            self.download = None

    def install_download(self) -> None:
        """The snapshot is on disk: it takes the place of the whole log."""
        assert self.download is not None and self.download.is_finished
        snapshot, members, self.download = self.download.snapshot, self.download.members, None
        self.log.restart_at(snapshot)
        self.history.restart(snapshot.offset, *members)
        self._restarting_at = snapshot
        self.add_effect(RestartLog(snapshot))

    def on_snapshot_taken(self, snapshot: SnapshotId) -> None:
        self.log.add_snapshot(snapshot)

    def on_snapshot_lost(self, snapshot: SnapshotId) -> None:
        self.log.forget_snapshot(snapshot)

    def raise_log_start(self, oldest: SnapshotId) -> None:
        self.log.raise_start(oldest)
        self.history.trim(oldest.offset)

    def raise_high_watermark(self, offset: Offset) -> None:
        """A smaller one changes nothing: what was committed once stays committed."""
        assert offset <= self.readable_end, f"{offset} is past the own log: {self.log}"
        if offset > self.high_watermark:
            self.high_watermark = offset
            self.add_effect(HighWatermark(offset))

    # --- effects and messages ---

    def add_effect(self, effect: RaftEffect) -> None:
        """Effects are performed in the order in which they are added."""
        self.outbox.add(effect)

    def send(self, to: NodeId, message: SentRequest, votes: VoteRound | None = None, extra_ms: int = 0) -> int:
        """Returns the correlation. extra_ms: added to the time-out of a request that may wait at the receiver."""
        assert to != self.node_id
        return self.outbox.send(InFlightRequest(to, message, votes), self.config.request_timeout_ms + extra_ms)

    def reply(self, token: int, message: SentResponse) -> None:
        self.outbox.reply(token, message)

    @property
    def refusals(self) -> Refusals:
        return Refusals(self.leader_hint, self.epoch, self.hints())
