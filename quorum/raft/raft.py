"""One node's decisions in the quorum: an event and the time go in, effects come out in the order they must happen in.

    raft = Raft(key=..., voters=..., config=..., rng=..., log=LogState(...), saved=read_quorum_state(...))
    effects = raft.step(Started(), now_ms)
    ... perform them in order, feed what comes back into step, and call step(TimerFired()) at deadline_ms()

Pure: no I/O, no clock, no randomness but `rng`, no record bytes looked into. Sources: KIP-595, KIP-996, KRAFT.md 2.1
and 2.2, DESIGN.md 5 and 12. Which file decides what: roles (transition table), core (the one way to change), voting
(granting), election (standing), leading, following, resigning.
"""

from __future__ import annotations

from typing import assert_never

from quorum.raft.chance import Chance
from quorum.raft.config import RaftConfig
from quorum.raft.core import Core
from quorum.raft.describe import describe
from quorum.raft.effects import Effect
from quorum.raft.election import (
    await_first_election,
    doubt_leader,
    on_election_timer,
    on_vote_failed,
    on_vote_response,
    resume_candidacy,
    start_election,
)
from quorum.raft.events import (
    AppendAsked,
    Appended,
    Event,
    LogTruncated,
    PeerProvenDead,
    RecordsRead,
    RequestReceived,
    ResponseReceived,
    RpcFailed,
    ShutdownAsked,
    Started,
    Synced,
    TimerFired,
)
from quorum.raft.following import (
    fetch_if_due,
    learn_high_watermark,
    on_fetch_failed,
    on_fetch_response,
    on_fetch_timeout,
)
from quorum.raft.leading import (
    advance,
    on_append_asked,
    on_fetch_request,
    on_records_read,
    send_begins,
    serve_parked,
)
from quorum.raft.log_state import LogState
from quorum.raft.quorum_state import QuorumState
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
from quorum.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Role, Unattached
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
        self, *, key: VoterKey, voters: VoterSet, config: RaftConfig, rng: Chance, log: LogState, saved: QuorumState
    ) -> None:
        """key: this node and its metadata directory; `voters` decides whether it is a voter or an observer."""
        self.core = Core(key=key, voters=voters, config=config, rng=rng, log=log, saved=saved)

    @property
    def role(self) -> Role:
        return self.core.role.role

    @property
    def epoch(self) -> Epoch:
        return self.core.epoch

    @property
    def leader_id(self) -> NodeId | None:
        return self.core.leader_id

    @property
    def high_watermark(self) -> Offset:
        """Exclusive; -1: not known."""
        return self.core.high_watermark

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Raises NotLeader for AppendAsked; SplitBrain, TruncationBelowHighWatermark, SnapshotNeeded are fatal."""
        core = self.core
        self._on(event, now_ms)
        fetch_if_due(core, now_ms)
        core.log.check_invariants()
        effects, core.effects = core.effects, []
        return effects

    def deadline_ms(self) -> int | None:
        """When TimerFired is due; None while nothing is waited for. Ask again after each step."""
        return deadline_ms(self.core)

    def _on(self, event: Event, now_ms: int) -> None:
        match event:
            case Started():
                self._start(now_ms)
            case RequestReceived():
                self._on_request(event, now_ms)
            case ResponseReceived():
                self._on_response(event, now_ms)
            case RpcFailed():
                self._on_failure(event, now_ms)
            case TimerFired():
                self._on_timer(now_ms)
            case Appended(end_offset):
                self.core.log.on_written(end_offset)
                self._on_log_moved(now_ms)
            case Synced(end_offset):
                self.core.log.on_synced(end_offset)
                self._on_log_moved(now_ms)
            case LogTruncated(end_offset):
                self.core.log.on_truncated(end_offset)
            case RecordsRead():
                on_records_read(self.core, event)
            case AppendAsked():
                on_append_asked(self.core, event)
            case PeerProvenDead(node_id):
                self._on_proven_dead(node_id, now_ms)
            case ShutdownAsked():
                shut_down(self.core, now_ms)
            case _:
                assert_never(event)

    def _start(self, now_ms: int) -> None:
        """What was promised before decides how to go on (KRAFT 2.1, start-up)."""
        core = self.core
        leader_id, core.leader_id = core.leader_id, None
        if core.log.last_epoch > core.epoch:
            core.become_unattached(core.log.last_epoch, now_ms)
        elif core.is_voter and leader_id == core.node_id:
            resume_resigned(core, now_ms)
            if len(core.voters) == 1:
                core.become_unattached(core.epoch + 1, now_ms)
        elif core.is_voter and core.voted == core.key and leader_id is None:
            resume_candidacy(core, now_ms)
        elif leader_id in core.voters and leader_id is not None and leader_id != core.node_id:
            core.become_follower(core.epoch, leader_id, now_ms)
        else:
            core.become_unattached(core.epoch, now_ms)
            await_first_election(core, now_ms)
        core.tell_leader()
        if core.is_voter and len(core.voters) == 1 and isinstance(core.role, Unattached):
            start_election(core, now_ms)

    def _on_request(self, event: RequestReceived, now_ms: int) -> None:
        core, token = self.core, event.token
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
        core, response = self.core, event.message
        flight = core.flights.pop(event.correlation, None)
        if flight is None:
            return
        if flight.to == response.leader_id:
            core.forsaken = None  # it speaks for itself
        core.observe(response.leader_epoch, None if response.leader_id == NO_NODE else response.leader_id, now_ms)
        match response:
            case VoteResponse():
                on_vote_response(core, flight, response, now_ms)
            case QuorumFetchResponse():
                on_fetch_response(core, event.correlation, flight, response, event.spans, now_ms)
            case EndQuorumEpochResponse():
                on_end_answered(core, flight, acknowledged=True, now_ms=now_ms)
            case BeginQuorumEpochResponse():
                pass  # its fetches tell
            case _:
                assert_never(response)

    def _on_failure(self, event: RpcFailed, now_ms: int) -> None:
        flight = self.core.flights.pop(event.correlation, None)
        if flight is None:
            return
        match flight.message:
            case VoteRequest():
                on_vote_failed(self.core, flight, now_ms)
            case QuorumFetchRequest():
                on_fetch_failed(self.core, event.correlation, flight, now_ms)
            case EndQuorumEpochRequest():
                on_end_answered(self.core, flight, acknowledged=False, now_ms=now_ms)
            case BeginQuorumEpochRequest():
                pass  # sent again to whoever does not fetch

    def _on_log_moved(self, now_ms: int) -> None:
        if isinstance(self.core.role, Leader):
            advance(self.core)
            serve_parked(self.core, now_ms)
        elif isinstance(self.core.role, Follower):
            learn_high_watermark(self.core)

    def _on_proven_dead(self, node_id: NodeId, now_ms: int) -> None:
        core = self.core
        if node_id == core.leader_id and isinstance(core.role, Follower | Prospective):
            core.forget_leader(now_ms, rank_delay_ms(core, node_id) if core.is_voter else 0)

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
                    doubt_leader(core, now_ms) if core.is_voter else on_fetch_timeout(core, now_ms)
            case Leader() as leader:
                self._on_leader_timer(leader, now_ms)
            case Resigned():
                on_resigned_timer(core, now_ms)

    def _on_leader_timer(self, leader: Leader, now_ms: int) -> None:
        core = self.core
        lost_at_ms = leader.replicas.quorum_lost_at_ms(core.config.check_quorum_timeout_ms)
        if lost_at_ms is not None and lost_at_ms <= now_ms:
            resign(core, now_ms)
            return
        if leader.begin_at_ms <= now_ms:
            send_begins(core, now_ms)
        serve_parked(core, now_ms)
