"""A core in each role, and the events that most tests need."""

from __future__ import annotations

from random import Random
from typing import Any

from quorumlog.messages.common import Endpoint
from quorumlog.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    PreferredCandidate,
    QuorumFetchRequest,
    QuorumFetchResponse,
    VoteRequest,
    VoteResponse,
)
from quorumlog.settings.quorum import RaftConfig
from quorumlog_quorum.raft.effects import PersistQuorumState, RaftEffect, Reply, Send
from quorumlog_quorum.raft.events import LogSynced, LogWritten, RequestReceived, ResponseReceived, Started, TimerFired
from quorumlog_quorum.raft.log_state import LogState
from quorumlog_quorum.raft.quorum_state import QuorumState
from quorumlog_quorum.raft.raft import Raft
from quorumlog_quorum.raft.roles import RaftRole
from quorumlog_quorum.raft.voters import Voter, VoterKey, VoterSet
from quorumlog_storage.rules.epochs import EpochStart

CONFIG = RaftConfig()


def voter_set(count: int = 3) -> VoterSet:
    return VoterSet(Voter(node_id=i, endpoint=Endpoint(name="INTERNAL", host="h", port=9000 + i)) for i in range(count))


def make_raft(
    node_id: int = 0,
    *,
    voters: int = 3,
    end: int = 0,
    epochs: tuple[EpochStart, ...] = (),
    saved: QuorumState | None = None,
    is_whole: bool = True,
) -> Raft:
    """A core that is not started."""
    return Raft(
        key=VoterKey(node_id, bytes([node_id]) * 16),
        voters=voter_set(voters),
        config=CONFIG,
        rng=Random(7),
        log=LogState(start=0, end=end, epochs=epochs),
        saved=saved or QuorumState(),
        is_whole=is_whole,
    )


def unattached(node_id: int = 0, *, epoch: int = 5, **log: Any) -> Raft:
    raft = make_raft(node_id, saved=QuorumState(epoch=epoch), **log)
    raft.step(Started(), 0)
    return raft


def follower(of: int = 1, *, epoch: int = 5, node_id: int = 0, **log: Any) -> Raft:
    """It has sent its first fetch."""
    raft = make_raft(node_id, saved=QuorumState(epoch=epoch, leader_id=of), **log)
    raft.step(Started(), 0)
    return raft


def candidate(*, epoch: int = 5, **log: Any) -> Raft:
    saved = QuorumState(epoch=epoch, voted=VoterKey(0, bytes(16)))
    raft = make_raft(0, saved=saved, **log)
    raft.step(Started(), 0)
    return raft


def prospective(*, epoch: int = 5, **log: Any) -> Raft:
    raft = unattached(epoch=epoch, **log)
    raft.step(TimerFired(), raft.deadline_ms() or 0)
    return raft


def resigned(*, epoch: int = 5, **log: Any) -> Raft:
    raft = make_raft(0, saved=QuorumState(epoch=epoch, leader_id=0), **log)
    raft.step(Started(), 0)
    return raft


def leader(*, epoch: int = 5, voters: int = 3, settled: bool = True, **log: Any) -> Raft:
    """Elected at time 0; its LeaderChange record is synced if `settled`."""
    saved = QuorumState(epoch=epoch, voted=VoterKey(0, bytes(16)))
    raft = make_raft(0, voters=voters, saved=saved, **log)
    for send in sends(raft.step(Started(), 0), VoteRequest)[: voters // 2]:
        raft.step(ResponseReceived(send.correlation, VoteResponse(leader_epoch=epoch, vote_granted=True)), 0)
    if settled:
        end = raft.core.log.accepted_end
        raft.step(LogWritten(end), 0)
        raft.step(LogSynced(end), 0)
    return raft


def vote(
    epoch: int = 5, *, to: int = 0, candidate_id: int = 2, last: tuple[int, int] = (4, 10), pre: bool = False
) -> RequestReceived:
    request = VoteRequest(
        epoch=epoch,
        candidate_id=candidate_id,
        candidate_directory_id=bytes([candidate_id]) * 16,
        voter_id=to,
        last_epoch=last[0],
        last_epoch_end_offset=last[1],
        pre_vote=pre,
    )
    return RequestReceived(1, request)


def begin(epoch: int, leader_id: int = 1, to: int = 0) -> RequestReceived:
    return RequestReceived(1, BeginQuorumEpochRequest(leader_id=leader_id, leader_epoch=epoch, voter_id=to))


def end_epoch(epoch: int, leader_id: int = 1, successors: tuple[int, ...] = ()) -> RequestReceived:
    preferred = tuple(PreferredCandidate(node_id=node_id) for node_id in successors)
    return RequestReceived(
        1, EndQuorumEpochRequest(leader_id=leader_id, leader_epoch=epoch, preferred_candidates=preferred)
    )


def fetch(
    offset: int,
    last_epoch: int,
    *,
    epoch: int = 5,
    replica: int = 1,
    token: int = 1,
    known: int = -1,
    wait_ms: int = 500,
    round_named: int = -1,
) -> RequestReceived:
    request = QuorumFetchRequest(
        replica_id=replica,
        replica_directory_id=bytes([replica]) * 16 if replica >= 0 else b"",
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        max_wait_ms=wait_ms,
        max_bytes=1 << 20,
        high_watermark=known,
        read_round=round_named,
    )
    return RequestReceived(token, request)


def fetched(correlation: int, *, epoch: int = 5, leader_id: int = 1, **fields: Any) -> ResponseReceived:
    spans = fields.pop("spans", ())
    response = QuorumFetchResponse(leader_id=leader_id, leader_epoch=epoch, **fields)
    return ResponseReceived(correlation, response, spans)


def sends(effects: list[RaftEffect], kind: type) -> list[Send]:
    return [effect for effect in effects if isinstance(effect, Send) and isinstance(effect.message, kind)]


def reply_of(effects: list[RaftEffect]) -> object:
    (reply,) = [effect for effect in effects if isinstance(effect, Reply)]
    return reply.message


def names(effects: list[RaftEffect]) -> list[str]:
    """The effects by the names of their types, in order; a Send or Reply by that of its message."""
    return [
        type(effect.message).__name__ if isinstance(effect, Send | Reply) else type(effect).__name__
        for effect in effects
    ]


def persisted(effects: list[RaftEffect]) -> list[QuorumState]:
    return [effect.state for effect in effects if isinstance(effect, PersistQuorumState)]


def role_of(raft: Raft) -> RaftRole:
    """A call, because a type checker would take the property for a constant between two assertions."""
    return raft.core.role.role
