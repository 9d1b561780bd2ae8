"""Standing for election: pre-votes first, then the epoch is raised and votes are counted (KIP-996).

A round that cannot be won any more, because voters refused or could not be asked, is tried again after rand(50..200) ms
while no leader is known (DESIGN 5): after a proven death the survivors learn of it at slightly different times.
"""

from __future__ import annotations

from quorum.raft.core import Core, Flight
from quorum.raft.leading import become_leader
from quorum.raft.roles import Candidate, Follower, Prospective, Unattached, VoteRound
from quorumlog.errors import ErrorCode
from quorumlog.messages.quorum import VoteRequest, VoteResponse


def start_election(core: Core, now_ms: int) -> None:
    """From unattached, a doubting follower, or a round that was lost: ask for pre-votes."""
    assert core.is_voter and not core.shutting_down
    role = Prospective(_deadline_ms(core, now_ms), _new_round(core))
    core.become(role, epoch=core.epoch, leader_id=core.leader_id, voted=core.voted)
    _ask(core, role.votes, pre_vote=True)
    _count(core, now_ms)


def await_first_election(core: Core, now_ms: int) -> None:
    """At start: where no epoch was ever heard of, no leader is waited for (docs/decisions/0007).

    Voters that start together take turns by rank, as after a proven death. A voter that starts empty beside a leader
    does no harm: whoever fetches from that one refuses the pre-vote.
    """
    role = core.role
    assert isinstance(role, Unattached)
    if role.election_at_ms is not None and core.epoch == 0:
        role.election_at_ms = now_ms + core.config.draw_rank_delay_ms(core.voters.rank(core.node_id), core.rng)


def resume_candidacy(core: Core, now_ms: int) -> None:
    """At start: this node has voted for itself in its epoch, and may have been promised votes already."""
    assert core.voted == core.key
    core.role = Candidate(_deadline_ms(core, now_ms), _new_round(core))
    _ask(core, core.role.votes, pre_vote=False)
    _count(core, now_ms)


def on_vote_response(core: Core, flight: Flight, response: VoteResponse, now_ms: int) -> None:
    votes = _open_round(core, flight)
    if votes is None:
        return
    assert isinstance(flight.message, VoteRequest)
    if flight.message.pre_vote and response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        _become_candidate(core, now_ms)  # a voter that knows no pre-vote
        return
    if response.error_code == ErrorCode.NONE and response.vote_granted:
        votes.granted[flight.to] = None
    else:
        votes.refused[flight.to] = None
    _count(core, now_ms)


def on_vote_failed(core: Core, flight: Flight, now_ms: int) -> None:
    votes = _open_round(core, flight)
    if votes is not None:
        votes.refused[flight.to] = None
        _count(core, now_ms)


def on_election_timer(core: Core, now_ms: int) -> None:
    role = core.role
    assert isinstance(role, Unattached | Prospective | Candidate)
    if isinstance(role, Prospective) and core.leader_id is not None:
        core.become_follower(core.epoch, core.leader_id, now_ms)  # nobody else doubts it: believe it once more
    else:
        start_election(core, now_ms)


def doubt_leader(core: Core, now_ms: int) -> None:
    """A voter has fetched nothing within the fetch timeout."""
    assert isinstance(core.role, Follower)
    start_election(core, now_ms)


def _open_round(core: Core, flight: Flight) -> VoteRound | None:
    """The round that an answer belongs to, unless it is over."""
    if isinstance(core.role, Prospective | Candidate) and flight.votes is core.role.votes:
        return core.role.votes
    return None


def _count(core: Core, now_ms: int) -> None:
    role = core.role
    assert isinstance(role, Prospective | Candidate)
    votes = role.votes
    if len(votes.granted) >= core.voters.majority:
        if isinstance(role, Prospective):
            _become_candidate(core, now_ms)
        else:
            become_leader(core, tuple(sorted(votes.granted)), now_ms)
    elif len(core.voters) - len(votes.refused) < core.voters.majority and votes.retry_at_ms is None:
        if core.leader_id is not None:
            core.become_follower(core.epoch, core.leader_id, now_ms)
        else:
            votes.retry_at_ms = now_ms + core.config.draw_rejected_retry_ms(core.rng)


def _become_candidate(core: Core, now_ms: int) -> None:
    role = Candidate(_deadline_ms(core, now_ms), _new_round(core))
    core.become(role, epoch=core.epoch + 1, voted=core.key)
    _ask(core, role.votes, pre_vote=False)
    _count(core, now_ms)


def _ask(core: Core, votes: VoteRound, *, pre_vote: bool) -> None:
    for voter in core.voters.others(core.node_id):
        request = VoteRequest(
            epoch=core.epoch,
            candidate_id=core.node_id,
            candidate_directory_id=core.key.directory_id,
            voter_id=voter,
            voter_directory_id=core.voters.directory_of(voter),
            last_epoch=core.log.last_epoch,
            last_epoch_end_offset=core.log.accepted_end,
            pre_vote=pre_vote,
        )
        core.send(voter, request, votes)


def _new_round(core: Core) -> VoteRound:
    return VoteRound(granted={core.node_id: None})


def _deadline_ms(core: Core, now_ms: int) -> int:
    return now_ms + core.config.draw_election_timeout_ms(core.rng)
