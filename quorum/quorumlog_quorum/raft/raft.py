"""One node's decisions in the quorum. An event and the time go in; effects come out, in the order of execution.

    raft = Raft(key=..., voters=..., config=..., rng=..., log=LogState(...), saved=read_quorum_state(...))
    effects = raft.step(Started(), now_ms)
    ... perform them in order, pass their results to step as events, and call step(TimerFired()) at deadline_ms()

Pure: no I/O, no clock, no randomness but `rng`; record bytes are passed on and never read. Sources: KIP-595, KIP-996,
KIP-853. This module decides which rule answers an event, answering which one answers a message, and here stands when
the timer of each role is due. The rules are in voting, election, leading, confirming, handing_over, following,
snapshot_fetching, snapshot_serving and resigning; they change the state through core, which checks the tables in roles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, assert_never

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
from quorumlog_quorum.raft.roles import Candidate, FetchState, Follower, Leader, Prospective, Resigned, Unattached
from quorumlog_quorum.raft.snapshot_fetching import on_piece_stored, on_snapshot_finished
from quorumlog_quorum.raft.snapshot_serving import on_snapshot_read
from quorumlog_quorum.raft.voter_change import ChangePhase
from quorumlog_quorum.raft.voter_requests import ask_at_ms, ask_if_due
from quorumlog_quorum.raft.voters import VoterKey, VoterSet

if TYPE_CHECKING:
    from random import Random


class Raft:
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
        """key: this node and its metadata directory. voters: the static set, which is in force until the bootstrap
        checkpoint, a snapshot or the log names another. The set in force decides who is a voter and who an observer.

        is_whole: False for a log that has lost records which were synced. The majority that has committed them may
        have counted this node, so it neither votes nor stands for election until it holds again what is committed.
        """
        # Everybody may read it: the driver, tests, the simulation. Only rules that `step` calls change it.
        self.core = Core(
            key=key,
            voters=voters,
            config=config,
            rng=rng,
            log=log,
            saved=saved,
            is_whole=is_whole,
            membership=membership,
        )

    def step(self, event: RaftEvent, now_ms: int) -> list[RaftEffect]:
        """Raises NotLeader for AppendRequested; fatal are SplitBrain and TruncationBelowHighWatermark."""
        core = self.core
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
        return deadline_ms(self.core)

    def _on(self, event: RaftEvent, now_ms: int) -> None:
        match event:
            case Started():
                self._start(now_ms)
            case RequestReceived():
                on_request(self.core, event, now_ms)
            case ResponseReceived():
                on_response(self.core, event, now_ms)
            case RequestFailed():
                on_failure(self.core, event, now_ms)
            case TimerFired():
                self._on_timer(now_ms)
            case LogWritten(end_offset):
                self.core.on_written(end_offset)
                self._on_log_end_changed(now_ms)
            case LogSynced(end_offset):
                self.core.on_synced(end_offset)
                self._on_log_end_changed(now_ms)
            case LogTruncated(end_offset):
                self.core.on_truncated(end_offset)
                on_log_truncated(self.core, now_ms)
            case RecordsRead():
                on_records_read(self.core, event)
            case SnapshotRead():
                on_snapshot_read(self.core, event)
            case SnapshotPieceStored():
                on_piece_stored(self.core, event)
            case SnapshotFinished():
                on_snapshot_finished(self.core, event)
            case SnapshotTaken(snapshot):
                self.core.on_snapshot_taken(snapshot)
            case SnapshotLost(snapshot):
                self.core.on_snapshot_lost(snapshot)
            case LogStartRaised(oldest):
                self.core.raise_log_start(oldest)
            case AppendRequested():
                on_append_requested(self.core, event)
            case PeerProvenDead():
                self._on_proven_dead(event, now_ms)
            case CandidateProbed():
                on_candidate_probed(self.core, event, now_ms)
            case UpgradeRequested():
                on_upgrade_requested(self.core, event, now_ms)
            case ConfirmationRequested(token):
                on_confirmation_requested(self.core, token, now_ms)
            case ShutdownRequested():
                on_shutdown_requested(self.core, event, now_ms)
            case _:
                assert_never(event)

    def _start(self, now_ms: int) -> None:
        """The saved promises decide the first role (KIP-595, start-up)."""
        core = self.core
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
        if isinstance(self.core.role, Leader):
            advance(self.core)
            serve_parked(self.core, now_ms)
        elif isinstance(self.core.role, Follower):
            learn_high_watermark(self.core)

    def _on_proven_dead(self, proof: PeerProvenDead, now_ms: int) -> None:
        """A late proof is ignored: it is of an earlier epoch, and says nothing about the process that leads now."""
        core = self.core
        if (proof.node_id, proof.epoch) != (core.leader_id, core.epoch):
            return
        if isinstance(core.role, Follower | Prospective):
            core.forget_leader(now_ms, rank_delay_ms(core, proof.node_id) if core.is_voter else 0)

    def _on_timer(self, now_ms: int) -> None:
        core = self.core
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
        core = self.core
        lost_at_ms = leader.replicas.quorum_lost_at_ms(core.config.check_quorum_timeout_ms)
        if lost_at_ms is not None and lost_at_ms <= now_ms:
            resign(core, now_ms, leader.replicas.by_progress())
            return
        if leader.begin_at_ms <= now_ms:
            send_begins(core, now_ms)
        serve_parked(core, now_ms)


def deadline_ms(core: Core) -> int | None:
    role = core.role  # a leader with many observers is asked most often
    return min(_leader_deadlines(core, role) if isinstance(role, Leader) else _deadlines(core), default=None)


def _deadlines(core: Core) -> Iterator[int]:
    match core.role:
        case Unattached(election_at_ms=election_at_ms, fetch=fetch):
            if election_at_ms is not None:
                yield election_at_ms
            if not core.is_voter:
                yield from _fetch_deadlines(core, fetch)
        case (Prospective() | Candidate()) as role:
            yield role.election_at_ms
            if role.votes.retry_at_ms is not None:
                yield role.votes.retry_at_ms
        case Follower(fetch_by_ms=fetch_by_ms, fetch=fetch):
            if not core.shutting_down:
                yield fetch_by_ms
                yield from _fetch_deadlines(core, fetch)
                ask_ms = ask_at_ms(core)
                if ask_ms is not None:
                    yield ask_ms
        case Resigned() as resigned:
            yield from _resigned_deadlines(resigned)


def _fetch_deadlines(core: Core, fetch: FetchState) -> Iterator[int]:
    if fetch.in_flight is None and fetch.retry_at_ms is not None and not core.shutting_down:
        yield fetch.retry_at_ms


def _leader_deadlines(core: Core, leader: Leader) -> Iterator[int]:
    if leader.replicas.voters:
        yield leader.begin_at_ms
    lost_at_ms = leader.replicas.quorum_lost_at_ms(core.config.check_quorum_timeout_ms)
    if lost_at_ms is not None:
        yield lost_at_ms
    if leader.hand_over is not None:
        yield leader.hand_over.until_ms
    for parked in leader.parked:
        yield parked.deadline_ms
        if core.high_watermark > parked.high_watermark:  # it waits for records
            yield parked.hold_until_ms
    if leader.watched_due_ms is not None:
        yield leader.watched_due_ms
    if leader.change is not None and (leader.change.token is not None or leader.change.phase is not ChangePhase.COMMIT):
        yield leader.change.deadline_ms


def _resigned_deadlines(resigned: Resigned) -> Iterator[int]:
    if resigned.election_at_ms is not None:
        yield resigned.election_at_ms
    if resigned.shutdown_by_ms is not None:
        yield resigned.shutdown_by_ms
    for due_at_ms in resigned.unacked.values():
        if due_at_ms is not None:
            yield due_at_ms
