"""The epoch rule of every request and of every response, as one table (KIP-595, RPCs).

A request of an older epoch is refused and changes nothing. One of a larger epoch is adopted first by Vote, Begin and
End; a Fetch is answered UNKNOWN_LEADER_EPOCH, and a pre-vote only as a question. A response of a larger epoch is
adopted, whatever it answers; one of an older epoch, or to a request of an earlier role, is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from raft_samples import (
    CONFIG,
    begin,
    candidate,
    end_epoch,
    fetch,
    fetched,
    follower,
    leader,
    prospective,
    reply_of,
    resigned,
    role_of,
    sends,
    unattached,
    vote,
)

from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE
from quorumlog.messages.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    QuorumFetchRequest,
    VoteRequest,
    VoteResponse,
)
from quorumlog_quorum.raft.effects import PersistQuorumState, RaftEffect
from quorumlog_quorum.raft.events import (
    LogSynced,
    LogWritten,
    RequestReceived,
    ResponseReceived,
    ShutdownRequested,
    TimerFired,
)
from quorumlog_quorum.raft.quorum_state import QuorumState
from quorumlog_quorum.raft.raft import Raft
from quorumlog_quorum.raft.roles import RaftRole
from quorumlog_quorum.raft.voters import VoterKey
from quorumlog_storage.rules.epochs import EpochStart
from tests.rules import rule

OWN = 5
ROLES: dict[str, Callable[[], Raft]] = {
    "unattached": unattached,
    "prospective": prospective,
    "candidate": candidate,
    "leader": leader,
    "follower": follower,
    "resigned": resigned,
}
REQUESTS: dict[str, Callable[[int], RequestReceived]] = {
    "Vote": lambda epoch: vote(epoch, last=(0, 1)),
    "BeginQuorumEpoch": lambda epoch: begin(epoch),
    "EndQuorumEpoch": lambda epoch: end_epoch(epoch),
    "QuorumFetch": lambda epoch: fetch(0, -1, epoch=epoch),
}


def code_of(effects: list[Any]) -> ErrorCode:
    return ErrorCode(reply_of(effects).error_code)  # type: ignore[attr-defined]


@rule("kraft 3.19")
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("kind", REQUESTS)
def test_a_request_of_an_older_epoch_is_refused_and_changes_nothing(kind: str, role: str) -> None:
    raft = ROLES[role]()
    before = (raft.core.epoch, role_of(raft), raft.core.leader_id)
    effects = raft.step(REQUESTS[kind](OWN - 1), 1)
    assert code_of(effects) is ErrorCode.FENCED_LEADER_EPOCH
    answer = reply_of(effects)
    assert answer.leader_epoch == OWN  # type: ignore[attr-defined]
    assert (raft.core.epoch, role_of(raft), raft.core.leader_id) == before


@rule("kraft 3.19")
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("kind", ["Vote", "BeginQuorumEpoch", "EndQuorumEpoch"])
def test_a_request_of_a_larger_epoch_is_adopted_first(kind: str, role: str) -> None:
    raft = ROLES[role]()
    raft.step(REQUESTS[kind](OWN + 2), 1)
    assert raft.core.epoch == OWN + 2 and role_of(raft) in (RaftRole.UNATTACHED, RaftRole.FOLLOWER)


@rule("kraft 3.19")
@pytest.mark.parametrize("role", ROLES)
def test_a_fetch_of_a_larger_epoch_changes_nothing(role: str) -> None:
    raft = ROLES[role]()
    before = (raft.core.epoch, role_of(raft))
    assert code_of(raft.step(REQUESTS["QuorumFetch"](OWN + 2), 1)) is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert (raft.core.epoch, role_of(raft)) == before


@pytest.mark.parametrize("role", [role for role in ROLES if role != "leader"])
def test_a_fetch_of_the_own_epoch_is_for_the_leader(role: str) -> None:
    assert code_of(ROLES[role]().step(fetch(0, -1, epoch=OWN), 1)) is ErrorCode.NOT_LEADER_OR_FOLLOWER


# --- responses ---

RESPONSES: list[tuple[str, Callable[[], Raft], type, Callable[[int], Any]]] = [
    ("Vote", candidate, VoteRequest, lambda epoch: VoteResponse(leader_epoch=epoch)),
    ("pre-vote", prospective, VoteRequest, lambda epoch: VoteResponse(leader_epoch=epoch)),
    ("Begin", leader, BeginQuorumEpochRequest, lambda epoch: BeginQuorumEpochResponse(leader_epoch=epoch)),
]


@rule("kraft 3.20")
@pytest.mark.parametrize(("make", "request_type", "respond"), [r[1:] for r in RESPONSES], ids=[r[0] for r in RESPONSES])
def test_a_response_of_a_larger_epoch_is_adopted(make: Any, request_type: type, respond: Any) -> None:
    raft = make()
    found = [c for c, sent in raft.core.outbox.in_flight.items() if isinstance(sent.message, request_type)]
    raft.step(ResponseReceived(found[0], respond(OWN + 3)), 1)
    assert raft.core.epoch == OWN + 3 and role_of(raft) is RaftRole.UNATTACHED


def answered_end(raft: Raft, leader_id: int) -> list[RaftEffect]:
    """A voter has acknowledged EndQuorumEpoch in a larger epoch."""
    correlation = next(iter(raft.core.outbox.in_flight))
    answer = EndQuorumEpochResponse(leader_epoch=OWN + 1, leader_id=leader_id)
    return raft.step(ResponseReceived(correlation, answer), 1)


@rule("kraft 3.20")
def test_an_answer_to_a_resignation_that_names_a_leader_is_adopted() -> None:
    raft = resigned()
    answered_end(raft, leader_id=2)
    assert (raft.core.epoch, raft.core.leader_id, role_of(raft)) == (OWN + 1, 2, RaftRole.FOLLOWER)


@rule("kraft 3.20")
def test_the_successors_epoch_and_the_vote_for_it_are_one_write() -> None:
    """It acknowledges in its new epoch and asks for a vote in it, in either order."""
    raft = resigned()
    assert answered_end(raft, leader_id=NO_NODE) == [] and role_of(raft) is RaftRole.RESIGNED
    effects = raft.step(vote(OWN + 1, candidate_id=2, last=(OWN, 100)), 2)
    (written,) = [effect for effect in effects if isinstance(effect, PersistQuorumState)]
    assert written.state == QuorumState(epoch=OWN + 1, voted=VoterKey(2, bytes([2]) * 16))


def test_a_candidate_that_is_told_to_lead_already_goes_on_as_a_candidate() -> None:
    """It announced its leadership, ended before that was durable, and has started again."""
    raft = candidate()
    for correlation in list(raft.core.outbox.in_flight):
        answer = VoteResponse(leader_epoch=OWN, leader_id=0, error_code=ErrorCode.NONE)
        raft.step(ResponseReceived(correlation, answer), 1)
        assert (raft.core.epoch, raft.core.leader_id, role_of(raft)) == (OWN, None, RaftRole.CANDIDATE)


@rule("kraft 3.20")
def test_a_fetch_response_of_a_larger_epoch_is_adopted() -> None:
    raft = follower(1)
    (correlation,) = raft.core.outbox.in_flight
    raft.step(fetched(correlation, epoch=OWN + 3, leader_id=2, error_code=ErrorCode.FENCED_LEADER_EPOCH), 1)
    assert (raft.core.epoch, raft.core.leader_id, role_of(raft)) == (OWN + 3, 2, RaftRole.FOLLOWER)


@pytest.mark.parametrize("granted", [True, False])
def test_votes_that_come_after_the_candidate_follows_are_ignored(granted: bool) -> None:
    raft = candidate()
    first, second = raft.core.outbox.in_flight
    raft.step(begin(OWN, leader_id=2), 1)
    for correlation in (first, second):
        raft.step(ResponseReceived(correlation, VoteResponse(leader_epoch=OWN, vote_granted=granted)), 2)
    assert (role_of(raft), raft.core.leader_id) == (RaftRole.FOLLOWER, 2)


def test_pre_votes_that_come_after_the_vote_began_are_ignored() -> None:
    raft = prospective()
    first, second = raft.core.outbox.in_flight
    granted = VoteResponse(leader_epoch=OWN, vote_granted=True)
    raft.step(ResponseReceived(first, granted), 1)
    assert (role_of(raft), raft.core.epoch) == (RaftRole.CANDIDATE, OWN + 1)
    raft.step(ResponseReceived(second, granted), 2)
    assert (role_of(raft), raft.core.epoch) == (RaftRole.CANDIDATE, OWN + 1)


@rule("kraft 3.20")
def test_votes_that_come_after_the_leader_resigned_do_not_bring_it_back() -> None:
    raft = leader()
    (late,) = [c for c, sent in raft.core.outbox.in_flight.items() if isinstance(sent.message, VoteRequest)]
    raft.step(ShutdownRequested(at_once=True), 1)
    raft.step(ResponseReceived(late, VoteResponse(leader_epoch=OWN, vote_granted=True)), 2)
    assert role_of(raft) is RaftRole.RESIGNED


# --- check-quorum and resignation ---

LOG: dict[str, Any] = {"end": 10, "epochs": (EpochStart(4, 0),)}


@pytest.mark.parametrize(
    ("what", "event"),
    [
        ("a fetch", fetch(11, 5)),
        ("a fetch that diverges", fetch(11, 3)),  # of a voter that must first truncate
        ("a fetch of an old offset", fetch(2, 4)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_any_fetch_of_a_voter_renews_check_quorum(what: str, event: RequestReceived) -> None:
    raft = leader(**LOG)
    raft.step(event, 1_400)
    raft.step(TimerFired(), 1_500)
    assert role_of(raft) is RaftRole.LEADER, what
    raft.step(TimerFired(), 1_400 + CONFIG.check_quorum_timeout_ms)
    assert role_of(raft) is RaftRole.RESIGNED


@pytest.mark.parametrize("event", [fetch(11, 5, epoch=4), fetch(11, 5, epoch=6), begin(4), vote(4)])
def test_requests_of_other_epochs_do_not_renew_check_quorum(event: RequestReceived) -> None:
    raft = leader(**LOG)
    raft.step(event, 1_400)
    raft.step(TimerFired(), 1_500)
    assert role_of(raft) is RaftRole.RESIGNED


@rule("kraft 3.14")
@pytest.mark.parametrize(
    ("candidates", "position", "want_ms"),
    [
        (2, 0, 0),
        (2, 1, 500),
        (3, 1, 250),
        (3, 2, 500),
        (5, 1, 62),
        (5, 2, 124),
        (5, 3, 248),
        (5, 4, 496),
        (20, 1, 1),
        (20, 19, 1_000),
        (3, None, 1_000),
    ],
)
def test_the_wait_of_each_successor(candidates: int, position: int | None, want_ms: int) -> None:
    """Kafka's rule: it doubles with the position, up to election.backoff.max.ms."""
    assert CONFIG.successor_delay_ms(position, candidates) == want_ms


@rule("kraft 1.8")
def test_a_former_leader_tells_the_others_at_once_and_never_leads_its_epoch_again() -> None:
    raft = resigned()
    ends = [sent.message for sent in raft.core.outbox.in_flight.values()]
    assert len(ends) == 2 and all(isinstance(end, EndQuorumEpochRequest) and end.leader_epoch == OWN for end in ends)
    answer = reply_of(raft.step(vote(OWN), 1))
    assert not answer.vote_granted  # type: ignore[attr-defined]
    assert code_of(raft.step(fetch(0, -1, epoch=OWN), 2)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    raft.step(TimerFired(), 5_000)
    assert role_of(raft) is not RaftRole.LEADER and raft.core.epoch == OWN + 1


@rule("kraft 3.15")
def test_the_end_of_an_epoch_by_a_node_that_did_not_lead_it_is_acknowledged_and_changes_nothing() -> None:
    raft = follower(1)
    assert code_of(raft.step(end_epoch(OWN, leader_id=2, successors=(0,)), 1)) is ErrorCode.NONE
    assert (role_of(raft), raft.core.leader_id) == (RaftRole.FOLLOWER, 1)


# --- a tail that is not synced ---


def test_a_candidate_with_accepted_records_counts_only_what_it_has_synced() -> None:
    """Its own vote is persisted behind the appends that wait, so they are synced before anyone is asked; even if they
    were not, it commits nothing by them."""
    raft = candidate(**LOG)
    raft.core.log.on_written(10)
    votes = [c for c, sent in raft.core.outbox.in_flight.items() if isinstance(sent.message, VoteRequest)]
    raft.step(ResponseReceived(votes[0], VoteResponse(leader_epoch=OWN, vote_granted=True)), 1)
    assert role_of(raft) is RaftRole.LEADER and raft.core.high_watermark == -1
    raft.step(fetch(11, 5, replica=1), 2)  # a follower cannot have what was not written
    assert raft.core.high_watermark == -1
    raft.step(LogWritten(11), 3)
    assert (
        raft.core.high_watermark == -1
    )  # of two ends, 11 and the own 10, a majority of three has 10: of an older epoch
    raft.step(LogSynced(11), 4)
    assert raft.core.high_watermark == 11
    assert not sends(raft.step(TimerFired(), 5), QuorumFetchRequest)
