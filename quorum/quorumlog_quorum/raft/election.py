"""Elections: a round of pre-votes, then a larger epoch and a round of votes (KIP-996).

A round cannot be won when too many voters refused or could not be reached. While no leader is known it is repeated
after rand(50..200) ms: voters learn of a leader's death at slightly different times.

A candidate whose log is still being truncated leads only after LogTruncated: its first record must follow the cut. The
driver's one queue of disk work already orders it so, because the candidate's own vote is persisted after the cut, and
no voter is asked before that. The core does not rely on this order.
"""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.messages.quorum import VoteRequest, VoteResponse
from quorumlog_quorum.raft.core import Core
from quorumlog_quorum.raft.leading import become_leader
from quorumlog_quorum.raft.outbox import InFlightRequest
from quorumlog_quorum.raft.roles import Candidate, Follower, Prospective, Unattached, VoteRound


def start_election(core: Core, now_ms: int) -> None:
    """Ask for pre-votes: from unattached, from a follower whose fetches time out, or after a round that was lost."""
    assert core.can_elect and not core.shutting_down
    role = Prospective(_deadline_ms(core, now_ms), _new_round(core))
    core.become(role, epoch=core.epoch, leader_id=core.leader_id, voted=core.voted)
    _send_vote_requests(core, role.votes, pre_vote=True)
    _count(core, now_ms)


def stand_at_once(core: Core, now_ms: int) -> None:
    """Ask for votes without asking for pre-votes first: the leader itself has named this node its successor.

    Pre-votes protect a leader that lives and is followed. This one has resigned, so its epoch ends in any case.
    """
    assert core.can_elect and not core.shutting_down and core.leader_id is None
    role = Prospective(_deadline_ms(core, now_ms), _new_round(core))
    core.become(role, epoch=core.epoch, voted=core.voted)
    _become_candidate(core, now_ms)


def schedule_first_election(core: Core, now_ms: int) -> None:
    """At start: a node that has never known an epoch does not wait for a leader (docs/decisions/0007).

    Voters that start together take turns by rank, as after a proven death. An empty voter that starts beside a leader
    does no harm: the followers of that leader refuse its pre-vote.
    """
    role = core.role
    assert isinstance(role, Unattached)
    if role.election_at_ms is not None and core.epoch == 0:
        role.elect_at(now_ms + core.config.draw_rank_delay_ms(core.voters.rank(core.node_id), core.rng))


def resume_candidacy(core: Core, now_ms: int) -> None:
    """At start: this node has voted for itself in the saved epoch; others may have voted for it already."""
    assert core.voted == core.key
    role = Candidate(_deadline_ms(core, now_ms), _new_round(core))
    core.resume(role)
    _send_vote_requests(core, role.votes, pre_vote=False)
    _count(core, now_ms)


def on_vote_response(core: Core, request: InFlightRequest, response: VoteResponse, now_ms: int) -> None:
    votes = _open_round(core, request)
    if votes is None:
        return
    assert isinstance(request.message, VoteRequest)
    if request.message.pre_vote and response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        _become_candidate(core, now_ms)  # this voter does not know pre-votes
        return
    if response.error_code == ErrorCode.NONE and response.vote_granted:
        votes.grant(request.to)
    else:
        votes.refuse(request.to)
    _count(core, now_ms)


def on_vote_failed(core: Core, request: InFlightRequest, now_ms: int) -> None:
    votes = _open_round(core, request)
    if votes is not None:
        votes.refuse(request.to)
        _count(core, now_ms)


def on_log_truncated(core: Core, now_ms: int) -> None:
    """A candidate that has a majority already leads now."""
    if isinstance(core.role, Candidate):
        _count(core, now_ms)


def on_election_timer(core: Core, now_ms: int) -> None:
    role = core.role
    assert isinstance(role, Unattached | Prospective | Candidate)
    if isinstance(role, Prospective) and core.leader_id is not None:
        core.become_follower(core.epoch, core.leader_id, now_ms)  # the other voters still follow it
    else:
        start_election(core, now_ms)


def on_voter_fetch_timeout(core: Core, now_ms: int) -> None:
    """A voter has had no good answer from its leader within the fetch timeout."""
    assert isinstance(core.role, Follower)
    start_election(core, now_ms)


def _open_round(core: Core, request: InFlightRequest) -> VoteRound | None:
    """The round that an answer belongs to; None if that round is over."""
    if isinstance(core.role, Prospective | Candidate) and request.votes is core.role.votes:
        return core.role.votes
    return None


def _count(core: Core, now_ms: int) -> None:
    role = core.role
    assert isinstance(role, Prospective | Candidate)
    votes = role.votes
    if len(votes.granted) >= core.voters.majority:
        if isinstance(role, Prospective):
            _become_candidate(core, now_ms)
        elif not core.log.truncating:  # else `on_log_truncated` counts again
            become_leader(core, tuple(sorted(votes.granted)), now_ms)
    elif len(core.voters) - len(votes.refused) < core.voters.majority and votes.retry_at_ms is None:
        if core.leader_id is not None:
            core.become_follower(core.epoch, core.leader_id, now_ms)
        else:
            votes.retry_at(now_ms + core.config.draw_rejected_retry_ms(core.rng))


def _become_candidate(core: Core, now_ms: int) -> None:
    role = Candidate(_deadline_ms(core, now_ms), _new_round(core))
    core.become(role, epoch=core.epoch + 1, voted=core.key)
    _send_vote_requests(core, role.votes, pre_vote=False)
    _count(core, now_ms)


def _send_vote_requests(core: Core, votes: VoteRound, *, pre_vote: bool) -> None:
    """They claim what is synced: nobody leads by records that a power cut would take from it."""
    last_epoch, end_offset = core.log.synced_position
    for voter in core.voters.others(core.node_id):
        request = VoteRequest(
            epoch=core.epoch,
            candidate_id=core.node_id,
            candidate_directory_id=core.key.directory_id,
            voter_id=voter,
            voter_directory_id=core.voters.directory_of(voter),
            last_epoch=last_epoch,
            last_epoch_end_offset=end_offset,
            pre_vote=pre_vote,
        )
        core.send(voter, request, votes)


def _new_round(core: Core) -> VoteRound:
    """A voter grants its own vote. A candidate that is being removed has none."""
    return VoteRound(granted={core.node_id: None} if core.is_voter else {})


def _deadline_ms(core: Core, now_ms: int) -> int:
    return now_ms + core.config.draw_election_timeout_ms(core.rng)
