"""Cores of a quorum whose voters are in the log, and the events that change them."""

from __future__ import annotations

from random import Random
from typing import Any

from raft_samples import CONFIG, fetch, reply_of, sends

from quorumlog.messages.common import Endpoint
from quorumlog.messages.quorum import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
    VoteRequest,
    VoteResponse,
)
from quorumlog.records.control import KRaftVersion, Voters
from quorumlog_quorum.raft.effects import AppendControl, ProbeCandidate, RaftEffect
from quorumlog_quorum.raft.events import (
    CandidateProbed,
    FoundCandidate,
    LogSynced,
    LogWritten,
    RequestReceived,
    ResponseReceived,
    Started,
)
from quorumlog_quorum.raft.log_state import LogState
from quorumlog_quorum.raft.membership import Membership
from quorumlog_quorum.raft.quorum_state import QuorumState
from quorumlog_quorum.raft.raft import Raft
from quorumlog_quorum.raft.voters import MembershipRecord, Voter, VoterKey, VoterSet, record_of, set_of
from quorumlog_storage.rules.epochs import EpochStart

LISTENER = "INTERNAL"
EPOCH = 5


def directory(node_id: int, other: int = 0) -> bytes:
    """The one that `make_raft` and `fetch` of raft_samples use; other: another one of the same node."""
    return bytes([node_id % 100]) * 15 + bytes([node_id % 100 + 100 * other])


def key(node_id: int, other: int = 0) -> VoterKey:
    return VoterKey(node_id, directory(node_id, other))


def endpoint(node_id: int) -> Endpoint:
    return Endpoint(name=LISTENER, host="h", port=9000 + node_id)


def member(node_id: int, other: int = 0) -> Voter:
    return Voter(node_id=node_id, directory_id=directory(node_id, other), endpoint=endpoint(node_id), max_version=1)


def members(*node_ids: int) -> VoterSet:
    return VoterSet(member(node_id) for node_id in node_ids)


def in_log(voters: VoterSet) -> tuple[MembershipRecord, ...]:
    """kraft.version 1 and this set, at offsets 1 and 2."""
    return MembershipRecord(1, KRaftVersion(1)), MembershipRecord(2, record_of(voters))


def voter_raft(
    node_id: int,
    voters: VoterSet | None = None,
    *,
    static: VoterSet | None = None,
    saved: QuorumState | None = None,
    other: int = 0,
    **membership: Any,
) -> Raft:
    """A core that is not started, with 10 records of epoch 4. voters: as its log says; None: it says nothing."""
    fields = {"endpoints": (endpoint(node_id),), "can_become_voter": True, **membership}
    return Raft(
        key=key(node_id, other),
        voters=static or VoterSet(()),
        config=CONFIG,
        rng=Random(7),
        log=LogState(start=0, end=10, epochs=(EpochStart(4, 0),)),
        saved=saved or QuorumState(epoch=EPOCH),
        membership=Membership(records=in_log(voters) if voters else (), **fields),
    )


def voter_leader(voters: VoterSet | None = None, *, claimed: bool = True, **fields: Any) -> Raft:
    """Node 1 leads epoch 5; its LeaderChange record at offset 10 is committed if `claimed`."""
    voters = voters or (None if "static" in fields else members(1, 2, 3))
    raft = voter_raft(1, voters, saved=QuorumState(epoch=EPOCH, voted=key(1)), **fields)
    effects = raft.step(Started(), 0)
    asked = sends(effects, VoteRequest)
    for send in asked[: (len(asked) + 1) // 2]:
        raft.step(ResponseReceived(send.correlation, VoteResponse(leader_epoch=EPOCH, vote_granted=True)), 0)
    settle(raft)
    if claimed:
        for node_id in raft.core.voters.others(1):
            raft.step(fetch(raft.core.log.accepted_end, EPOCH, replica=node_id, token=900 + node_id, wait_ms=0), 1)
    return raft


def settle(raft: Raft, now_ms: int = 0) -> list[RaftEffect]:
    """All that was appended is written and synced."""
    end = raft.core.log.accepted_end
    return raft.step(LogWritten(end), now_ms) + raft.step(LogSynced(end), now_ms)


def add(
    node_id: int = 4, *, other: int = 0, token: int = 1, timeout_ms: int = 5_000, commit: bool = True, **fields: Any
) -> RequestReceived:
    request = AddRaftVoterRequest(
        timeout_ms=timeout_ms,
        voter_id=node_id,
        voter_directory_id=fields.get("directory_id", directory(node_id, other)),
        listeners=fields.get("listeners", (endpoint(node_id),)),
        ack_when_committed=commit,
    )
    return RequestReceived(token, request)


def remove(node_id: int = 3, *, other: int = 0, token: int = 1) -> RequestReceived:
    request = RemoveRaftVoterRequest(voter_id=node_id, voter_directory_id=directory(node_id, other))
    return RequestReceived(token, request)


def update(node_id: int = 3, *, port: int = 7000, epoch: int = EPOCH, token: int = 1, **fields: Any) -> RequestReceived:
    request = UpdateRaftVoterRequest(
        current_leader_epoch=epoch,
        voter_id=node_id,
        voter_directory_id=fields.get("directory_id", directory(node_id)),
        listeners=fields.get("listeners", (Endpoint(name=LISTENER, host="h", port=port),)),
        min_kraft_version=fields.get("lowest", 0),
        max_kraft_version=fields.get("highest", 1),
    )
    return RequestReceived(token, request)


def probed(effects: list[RaftEffect], node_id: int = 4, other: int = 0, **fields: Any) -> CandidateProbed:
    """The answer of this node to the probe among the effects."""
    (probe,) = [effect for effect in effects if isinstance(effect, ProbeCandidate)]
    answer = {"is_controller": True, "min_version": 0, "max_version": 1, **fields}
    return CandidateProbed(probe.number, FoundCandidate(key(node_id, other), **answer))


def appended_set(effects: list[RaftEffect]) -> VoterSet | None:
    """The voter set that is appended by these effects; None: none is."""
    found = [record for e in effects if isinstance(e, AppendControl) for _, record in e.members]
    sets = [record for record in found if isinstance(record, Voters)]
    return set_of(sets[0]) if sets else None


def code_of(effects: list[RaftEffect]) -> int:
    return reply_of(effects).error_code  # type: ignore[attr-defined, no-any-return]


def text_of(effects: list[RaftEffect]) -> str:
    return reply_of(effects).error_message  # type: ignore[attr-defined, no-any-return]
