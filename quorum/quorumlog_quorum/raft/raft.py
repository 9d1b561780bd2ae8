"""One node's decisions in the quorum. An event and the time go in; effects come out, in the order of execution.

    raft = Raft(key=..., voters=..., config=..., rng=..., log=LogState(...), saved=read_quorum_state(...))
    effects = raft.step(Started(), now_ms)
    ... perform them in order, pass their results to step as events, and call step(TimerFired()) at deadline_ms()

Pure: no I/O, no clock, no randomness but `rng`; record bytes are passed on and never read. Sources: KIP-595, KIP-996,
KIP-853. This module decides which rule answers an event, and answering which rule
answers a message. The rules are in voting, election, leading, confirming, handing_over, following, snapshot_fetching,
snapshot_serving and resigning; they change the state through core, which checks the tables in roles.
"""

from __future__ import annotations

from typing import assert_never

from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.common import Endpoint
from quorumlog.random_source import RandomSource
from quorumlog.records.control import KRaftVersion, Voters
from quorumlog.settings.quorum import RaftConfig
from quorumlog_quorum.raft.answering import on_failure, on_request, on_response
from quorumlog_quorum.raft.confirming import confirm_reads, on_confirmation_requested
from quorumlog_quorum.raft.core import Core
from quorumlog_quorum.raft.effects import RaftEffect
from quorumlog_quorum.raft.election import (
    on_election_timer,
    on_log_truncated,
    on_voter_fetch_timeout,
    resume_candidacy,
    schedule_first_election,
    start_election,
)
from quorumlog_quorum.raft.events import (
    AppendRequested,
    CandidateProbed,
    ConfirmationRequested,
    LogStartRaised,
    LogSynced,
    LogTruncated,
    LogWritten,
    PeerProvenDead,
    RaftEvent,
    RecordsRead,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ShutdownRequested,
    SnapshotFinished,
    SnapshotLost,
    SnapshotPieceStored,
    SnapshotRead,
    SnapshotTaken,
    Started,
    TimerFired,
    UpgradeRequested,
)
from quorumlog_quorum.raft.following import (
    fetch_if_due,
    learn_high_watermark,
    on_observer_fetch_timeout,
)
from quorumlog_quorum.raft.handing_over import go_on, on_shutdown_requested
from quorumlog_quorum.raft.leading import (
    advance,
    on_append_requested,
    on_records_read,
    send_begins,
    serve_parked,
)
from quorumlog_quorum.raft.log_state import LogState
from quorumlog_quorum.raft.membership import Membership
from quorumlog_quorum.raft.quorum_state import QuorumState
from quorumlog_quorum.raft.reconfiguring import advance_change, on_candidate_probed, on_upgrade_requested
from quorumlog_quorum.raft.resigning import (
    on_resigned_timer,
    rank_delay_ms,
    resign,
    resume_resigned,
)
from quorumlog_quorum.raft.roles import Candidate, Follower, Leader, Prospective, RaftRole, Resigned, Unattached
from quorumlog_quorum.raft.snapshot_fetching import on_piece_stored, on_snapshot_finished
from quorumlog_quorum.raft.snapshot_serving import on_snapshot_read
from quorumlog_quorum.raft.timers import deadline_ms
from quorumlog_quorum.raft.voter_requests import ask_if_due
from quorumlog_quorum.raft.voters import VoterKey, VoterSet
from quorumlog_storage.rules.fetch_rule import SnapshotId


class Raft:
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
        membership: Membership | None = None,
    ) -> None:
        """key: this node and its metadata directory. voters: the static set, which is in force until the bootstrap
        checkpoint, a snapshot or the log names another. The set in force decides who is a voter and who an observer.

        is_whole: False for a log that has lost records which were synced. The majority that has committed them may
        have counted this node, so it neither votes nor stands for election until it holds again what is committed.
        """
        self._core = Core(
            key=key,
            voters=voters,
            config=config,
            rng=rng,
            log=log,
            saved=saved,
            is_whole=is_whole,
            membership=membership,
        )

    # A read-only description, for the driver and for observers such as tests and the simulation.

    @property
    def node_id(self) -> NodeId:
        return self._core.node_id

    @property
    def role(self) -> RaftRole:
        return self._core.role.role

    @property
    def epoch(self) -> Epoch:
        return self._core.epoch

    @property
    def leader_id(self) -> NodeId | None:
        return self._core.leader_id

    @property
    def high_watermark(self) -> Offset:
        """Exclusive; -1: not known."""
        return self._core.high_watermark

    @property
    def end_offset(self) -> Offset:
        """Exclusive end of the log, including records whose write is queued."""
        return self._core.log.accepted_end

    @property
    def start_offset(self) -> Offset:
        """Exclusive end of what only the oldest snapshot holds."""
        return self._core.log.start

    @property
    def snapshots(self) -> tuple[SnapshotId, ...]:
        """Those on disk that stand for a prefix of the log, oldest first."""
        return self._core.log.snapshots

    @property
    def voters(self) -> VoterSet:
        """The set in force: the one that was appended last, committed or not."""
        return self._core.voters

    @property
    def can_elect(self) -> bool:
        """Whether this node, on its directory, is a voter that may vote and stand for election."""
        return self._core.can_elect

    @property
    def voters_offset(self) -> Offset | None:
        """Of the record that made the set in force; None: it is the static one."""
        return self._core.history.offset

    @property
    def kraft_version(self) -> int:
        return self._core.history.level

    def endpoint_of(self, node_id: NodeId) -> Endpoint | None:
        """Where a voter, the leader or a bootstrap server listens; None if this node does not know."""
        return self._core.endpoint_of(node_id)

    def voter_records_at(self, offset: Offset) -> tuple[KRaftVersion | None, Voters | None]:
        """What a snapshot that ends at `offset`, exclusive, says about the voters; None: nothing."""
        return self._core.voter_records_at(offset)

    # Events in, effects out.

    def step(self, event: RaftEvent, now_ms: int) -> list[RaftEffect]:
        """Raises NotLeader for AppendRequested; fatal are SplitBrain and TruncationBelowHighWatermark."""
        core = self._core
        self._on(event, now_ms)
        if isinstance(core.role, Leader):
            confirm_reads(core)
            go_on(core, now_ms)
        advance_change(core, now_ms)
        fetch_if_due(core, now_ms)
        ask_if_due(core, now_ms)
        core.log.check_invariants()
        return core.outbox.take()

    def deadline_ms(self) -> int | None:
        """When TimerFired is due; None: no deadline. It may change with each step."""
        return deadline_ms(self._core)

    def _on(self, event: RaftEvent, now_ms: int) -> None:
        match event:
            case Started():
                self._start(now_ms)
            case RequestReceived():
                on_request(self._core, event, now_ms)
            case ResponseReceived():
                on_response(self._core, event, now_ms)
            case RequestFailed():
                on_failure(self._core, event, now_ms)
            case TimerFired():
                self._on_timer(now_ms)
            case LogWritten(end_offset):
                self._core.on_written(end_offset)
                self._on_log_end_changed(now_ms)
            case LogSynced(end_offset):
                self._core.on_synced(end_offset)
                self._on_log_end_changed(now_ms)
            case LogTruncated(end_offset):
                self._core.on_truncated(end_offset)
                on_log_truncated(self._core, now_ms)
            case RecordsRead():
                on_records_read(self._core, event)
            case SnapshotRead():
                on_snapshot_read(self._core, event)
            case SnapshotPieceStored():
                on_piece_stored(self._core, event)
            case SnapshotFinished():
                on_snapshot_finished(self._core, event)
            case SnapshotTaken(snapshot):
                self._core.on_snapshot_taken(snapshot)
            case SnapshotLost(snapshot):
                self._core.on_snapshot_lost(snapshot)
            case LogStartRaised(oldest):
                self._core.raise_log_start(oldest)
            case AppendRequested():
                on_append_requested(self._core, event)
            case PeerProvenDead():
                self._on_proven_dead(event, now_ms)
            case CandidateProbed():
                on_candidate_probed(self._core, event, now_ms)
            case UpgradeRequested():
                on_upgrade_requested(self._core, event, now_ms)
            case ConfirmationRequested(token):
                on_confirmation_requested(self._core, token, now_ms)
            case ShutdownRequested():
                on_shutdown_requested(self._core, event, now_ms)
            case _:
                assert_never(event)

    def _start(self, now_ms: int) -> None:
        """The saved promises decide the first role (KIP-595, start-up)."""
        core = self._core
        leader_id = core.saved.leader_id
        if core.log.last_epoch > core.epoch:
            core.become_unattached(core.log.last_epoch, now_ms)
        elif core.is_voter and leader_id == core.node_id:
            resume_resigned(core, now_ms)
            if len(core.voters) == 1:
                core.become_unattached(core.epoch + 1, now_ms)
        elif core.can_elect and core.voted == core.key and leader_id is None:
            resume_candidacy(core, now_ms)
        elif leader_id is not None and core.may_lead(leader_id):
            core.become_follower(core.epoch, leader_id, now_ms)
        else:
            core.become_unattached(core.epoch, now_ms)
            schedule_first_election(core, now_ms)
        core.announce_leader()
        if core.can_elect and len(core.voters) == 1 and isinstance(core.role, Unattached):
            start_election(core, now_ms)

    def _on_log_end_changed(self, now_ms: int) -> None:
        if isinstance(self._core.role, Leader):
            advance(self._core)
            serve_parked(self._core, now_ms)
        elif isinstance(self._core.role, Follower):
            learn_high_watermark(self._core)

    def _on_proven_dead(self, proof: PeerProvenDead, now_ms: int) -> None:
        """A late proof is ignored: it is of an earlier epoch, and says nothing about the process that leads now."""
        core = self._core
        if (proof.node_id, proof.epoch) != (core.leader_id, core.epoch):
            return
        if isinstance(core.role, Follower | Prospective):
            core.forget_leader(now_ms, rank_delay_ms(core, proof.node_id) if core.is_voter else 0)

    def _on_timer(self, now_ms: int) -> None:
        core = self._core
        match core.role:
            case Unattached(election_at_ms=due):
                if due is not None and due <= now_ms:
                    on_election_timer(core, now_ms)
            case (Prospective() | Candidate()) as role:
                if min(role.election_at_ms, role.votes.retry_at_ms or role.election_at_ms) <= now_ms:
                    on_election_timer(core, now_ms)
            case Follower(fetch_by_ms=due):
                if due <= now_ms and not core.shutting_down:
                    on_voter_fetch_timeout(core, now_ms) if core.can_elect else on_observer_fetch_timeout(core, now_ms)
            case Leader() as leader:
                self._on_leader_timer(leader, now_ms)
            case Resigned():
                on_resigned_timer(core, now_ms)

    def _on_leader_timer(self, leader: Leader, now_ms: int) -> None:
        core = self._core
        lost_at_ms = leader.replicas.quorum_lost_at_ms(core.config.check_quorum_timeout_ms)
        if lost_at_ms is not None and lost_at_ms <= now_ms:
            resign(core, now_ms, leader.replicas.by_progress())
            return
        if leader.begin_at_ms <= now_ms:
            send_begins(core, now_ms)
        serve_parked(core, now_ms)
