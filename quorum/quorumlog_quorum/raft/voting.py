"""Answering a VoteRequest: docs/kraft-rules.md, "Votes", rule by rule.

A node votes for one candidate per epoch. A pre-vote asks how this node would vote. It promises nothing and changes
nothing: not even a larger epoch in it is adopted (KIP-996, Raft 9.6), else a voter could depose a healthy leader by
asking. A candidate that a majority supports goes on to a larger epoch anyway. A voter that is alone in a larger epoch
tells it in its answer to the leader's BeginQuorumEpoch; the election that follows takes it in again.

A node whose log lacks records that it may have acknowledged grants nothing: it would not see that a candidate lacks
them, too.
"""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_EPOCH, ZERO_UUID, Epoch, Offset
from quorumlog.messages.quorum import VoteRequest, VoteResponse
from quorumlog_quorum.raft.core import Core
from quorumlog_quorum.raft.roles import Follower, RaftRole
from quorumlog_quorum.raft.voters import VoterKey


def on_vote_request(core: Core, token: int, request: VoteRequest, now_ms: int) -> None:
    code = _refusal(core, request)
    if code is not ErrorCode.NONE:
        core.reply(token, _response(core, code))
        return
    if request.epoch > core.epoch and not request.pre_vote:
        core.become_unattached(request.epoch, now_ms)
    candidate = VoterKey(request.candidate_id, request.candidate_directory_id or ZERO_UUID)
    granted = core.is_whole and would_grant(
        role=core.role.role,
        pre_vote=request.pre_vote,
        up_to_date=is_up_to_date(request, core.log.position),
        has_fetched=isinstance(core.role, Follower) and core.role.has_fetched,
        leader_known=core.leader_id is not None,
        voted=core.voted,
        candidate=candidate,
    )
    if granted and not request.pre_vote and core.voted is None:
        core.become_unattached(core.epoch, now_ms, voted=candidate)
    core.reply(token, _response(core, ErrorCode.NONE, granted=granted))


def is_up_to_date(request: VoteRequest, position: tuple[Epoch, Offset]) -> bool:
    """Whether the candidate's log holds at least as much as one that ends at `position` (last epoch, end offset)."""
    return (request.last_epoch, request.last_epoch_end_offset) >= position


def would_grant(
    *,
    role: RaftRole,
    pre_vote: bool,
    up_to_date: bool,
    has_fetched: bool,
    leader_known: bool,
    voted: VoterKey | None,
    candidate: VoterKey,
) -> bool:
    """Rules 2 and 3, by the role in this node's own epoch.

    has_fetched: this follower has fetched from its leader in this epoch, and its fetch timeout has not ended since: the
    leader is alive, so a pre-vote is refused, whatever its epoch.
    """
    if role is RaftRole.LEADER:
        return False
    if pre_vote:
        return up_to_date and not (role is RaftRole.FOLLOWER and has_fetched)
    if role not in (RaftRole.UNATTACHED, RaftRole.PROSPECTIVE):
        return False
    if voted is not None:
        return voted == candidate
    return up_to_date and not leader_known


def _refusal(core: Core, request: VoteRequest) -> ErrorCode:
    """Rule 1, then the epoch rule."""
    if not _is_possible(request) or request.candidate_id == core.node_id:
        return ErrorCode.INVALID_REQUEST
    if request.voter_id != core.node_id or request.voter_directory_id not in (b"", core.key.directory_id):
        return ErrorCode.INVALID_VOTER_KEY
    if request.epoch < core.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.NONE


def _is_possible(request: VoteRequest) -> bool:
    """An empty log ends at (NO_EPOCH, 0). No record has an epoch that its candidate has not reached."""
    if request.epoch < 0 or request.candidate_id < 0 or len(request.candidate_directory_id) not in (0, len(ZERO_UUID)):
        return False
    if request.last_epoch < NO_EPOCH or request.last_epoch_end_offset < 0:
        return False
    if (request.last_epoch == NO_EPOCH) != (request.last_epoch_end_offset == 0):
        return False
    return request.last_epoch <= request.epoch if request.pre_vote else request.last_epoch < request.epoch


def _response(core: Core, code: ErrorCode, granted: bool = False) -> VoteResponse:
    return VoteResponse(
        error_code=code,
        leader_id=core.leader_hint,
        leader_epoch=core.epoch,
        vote_granted=granted,
        node_endpoints=core.hints(),
    )
