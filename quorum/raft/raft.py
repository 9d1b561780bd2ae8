"""One node's decisions in the quorum. An event and the time go in; effects come out, in the order of execution.

    raft = Raft(key=..., voters=..., config=..., rng=..., log=LogState(...), saved=read_quorum_state(...))
    effects = raft.step(Started(), now_ms)
    ... perform them in order, pass their results to step as events, and call step(TimerFired()) at deadline_ms()

Pure: no I/O, no clock, no randomness but `rng`; record bytes are passed on and never read. Sources: KIP-595, KIP-996,
KRAFT.md 2.1 and 2.2, DESIGN.md 5 and 12. This module decides which rule answers an event. The rules are in voting,
election, leading, following and resigning; they change the state through core, which checks the tables in roles.
"""

from __future__ import annotations

from typing import assert_never

from quorum.raft.config import RaftConfig
from quorum.raft.core import Core
from quorum.raft.describe import describe
from quorum.raft.effects import RaftEffect
from quorum.raft.election import (
    on_election_timer,
    on_log_truncated,
    on_vote_failed,
    on_vote_response,
    on_voter_fetch_timeout,
    resume_candidacy,
    schedule_first_election,
    start_election,
)
from quorum.raft.events import (
    AppendRequested,
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
    Started,
    TimerFired,
)
from quorum.raft.following import (
    fetch_if_due,
    learn_high_watermark,
    on_fetch_failed,
    on_fetch_response,
    on_observer_fetch_timeout,
)
from quorum.raft.leading import (
    advance,
    on_append_requested,
    on_fetch_request,
    on_records_read,
    send_begins,
    serve_parked,
)
from quorum.raft.log_state import LogState
from quorum.raft.quorum_state import QuorumState
from quorum.raft.random_source import RandomSource
from quorum.raft.resigning import (
    on_begin_request,
    on_end_answered,
    on_end_request,
    on_resigned_timer,
    rank_delay_ms,
    resign,
    resume_resigned,
    shut_down,
)
from quorum.raft.roles import Candidate, Follower, Leader, Prospective, RaftRole, Resigned, Unattached
from quorum.raft.timers import deadline_ms
from quorum.raft.voters import VoterKey, VoterSet
from quorum.raft.voting import on_vote_request
from quorumlog.ids import NO_NODE, Epoch, NodeId, Offset
from quorumlog.messages.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
    VoteRequest,
    VoteResponse,
)


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
    ) -> None:
        """key: this node and its metadata directory. `voters` decides whether it is a voter or an observer.

        is_whole: False for a log that has lost records which were synced. The majority that has committed them may
        have counted this node, so it neither votes nor stands for election until it holds again what is committed.
        """
        self._core = Core(key=key, voters=voters, config=config, rng=rng, log=log, saved=saved, is_whole=is_whole)

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

    # Events in, effects out.

    def step(self, event: RaftEvent, now_ms: int) -> list[RaftEffect]:
        """Raises NotLeader for AppendRequested; fatal are SplitBrain, TruncationBelowHighWatermark, SnapshotNeeded."""
        core = self._core
        self._on(event, now_ms)
        fetch_if_due(core, now_ms)
        core.log.check_invariants()
        return core.take_effects()

    def deadline_ms(self) -> int | None:
        """When TimerFired is due; None: no deadline. It may change with each step."""
        return deadline_ms(self._core)

    def _on(self, event: RaftEvent, now_ms: int) -> None:
        match event:
            case Started():
                self._start(now_ms)
            case RequestReceived():
                self._on_request(event, now_ms)
            case ResponseReceived():
                self._on_response(event, now_ms)
            case RequestFailed():
                self._on_failure(event, now_ms)
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
            case AppendRequested():
                on_append_requested(self._core, event)
            case PeerProvenDead():
                self._on_proven_dead(event, now_ms)
            case ShutdownRequested():
                shut_down(self._core, now_ms)
            case _:
                assert_never(event)

    def _start(self, now_ms: int) -> None:
        """The saved promises decide the first role (KRAFT 2.1, start-up)."""
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
        elif leader_id in core.voters and leader_id is not None and leader_id != core.node_id:
            core.become_follower(core.epoch, leader_id, now_ms)
        else:
            core.become_unattached(core.epoch, now_ms)
            schedule_first_election(core, now_ms)
        core.announce_leader()
        if core.can_elect and len(core.voters) == 1 and isinstance(core.role, Unattached):
            start_election(core, now_ms)

    def _on_request(self, event: RequestReceived, now_ms: int) -> None:
        core, token = self._core, event.token
        match event.message:
            case VoteRequest() as vote:
                on_vote_request(core, token, vote, now_ms)
            case BeginQuorumEpochRequest() as begin:
                on_begin_request(core, token, begin, now_ms)
            case EndQuorumEpochRequest() as end:
                on_end_request(core, token, end, now_ms)
            case QuorumFetchRequest() as fetch:
                on_fetch_request(core, token, fetch, now_ms)
            case DescribeQuorumRequest():
                core.reply(token, describe(core, now_ms))
            case _:
                assert_never(event.message)

    def _on_response(self, event: ResponseReceived, now_ms: int) -> None:
        core, response = self._core, event.message
        request = core.finish(event.correlation)
        if request is None:
            return
        if request.to == response.leader_id:
            core.clear_departed()
        core.learn(response.leader_epoch, None if response.leader_id == NO_NODE else response.leader_id, now_ms)
        match response:
            case VoteResponse():
                on_vote_response(core, request, response, now_ms)
            case QuorumFetchResponse():
                on_fetch_response(core, event.correlation, request, response, event.spans, now_ms)
            case EndQuorumEpochResponse():
                on_end_answered(core, request, acknowledged=True, now_ms=now_ms)
            case BeginQuorumEpochResponse():
                pass  # the voter's fetches will show that it follows
            case _:
                assert_never(response)

    def _on_failure(self, event: RequestFailed, now_ms: int) -> None:
        request = self._core.finish(event.correlation)
        if request is None:
            return
        match request.message:
            case VoteRequest():
                on_vote_failed(self._core, request, now_ms)
            case QuorumFetchRequest():
                on_fetch_failed(self._core, event.correlation, request, now_ms)
            case EndQuorumEpochRequest():
                on_end_answered(self._core, request, acknowledged=False, now_ms=now_ms)
            case BeginQuorumEpochRequest():
                pass  # it is sent again to the voters that do not fetch

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
            resign(core, now_ms)
            return
        if leader.begin_at_ms <= now_ms:
            send_begins(core, now_ms)
        serve_parked(core, now_ms)
