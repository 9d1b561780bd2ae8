"""Granting, requesting and counting votes.

Sources: KIP-595, KIP-996; Kafka's `KafkaRaftClientTest` and `KafkaRaftClientPreVoteTest`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from raft_samples import (
    CONFIG,
    begin,
    candidate,
    fetched,
    follower,
    leader,
    make_raft,
    names,
    persisted,
    prospective,
    reply_of,
    resigned,
    role_of,
    sends,
    unattached,
    vote,
)

from quorumlog.errors import ErrorCode
from quorumlog.messages.common import EpochEndOffset
from quorumlog.messages.quorum import BeginQuorumEpochRequest, VoteRequest, VoteResponse
from quorumlog_quorum.raft.effects import RaftEffect, Reply
from quorumlog_quorum.raft.events import (
    LogSynced,
    LogTruncated,
    LogWritten,
    PeerProvenDead,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    Started,
    TimerFired,
)
from quorumlog_quorum.raft.log_state import EpochSpan
from quorumlog_quorum.raft.quorum_state import QuorumState
from quorumlog_quorum.raft.raft import Raft
from quorumlog_quorum.raft.roles import RaftRole
from quorumlog_quorum.raft.voters import VoterKey
from quorumlog_storage.rules.epochs import EpochStart
from tests.rules import rule

LOG: dict[str, Any] = {"end": 10, "epochs": (EpochStart(4, 0),)}  # ends at (epoch 4, offset 10)


def fetched_follower() -> Raft:
    raft = follower(**LOG)
    (correlation,) = raft.core.outbox.in_flight
    raft.step(fetched(correlation), 0)
    return raft


def voted_for_2() -> Raft:
    raft = make_raft(saved=QuorumState(epoch=5, voted=VoterKey(2, bytes([2]) * 16)), **LOG)
    raft.step(Started(), 0)
    return raft


MAKERS: dict[str, Callable[[], Raft]] = {
    "unattached": lambda: unattached(**LOG),
    "voted for 2": voted_for_2,
    "prospective": lambda: prospective(**LOG),
    "candidate": lambda: candidate(**LOG),
    "leader": lambda: leader(**LOG),
    "follower": lambda: follower(**LOG),
    "follower that fetched": fetched_follower,
    "resigned": lambda: resigned(**LOG),
}
# role: (standard vote, pre-vote) in the own epoch, the candidate's log being as good as ours
GRANTS = {
    "unattached": (True, True),
    "voted for 2": (True, True),
    "prospective": (True, True),
    "candidate": (False, True),
    "leader": (False, False),
    "follower": (False, True),
    "follower that fetched": (False, False),
    "resigned": (False, True),
}


def granted(raft: Raft, **request: Any) -> bool:
    answer = reply_of(raft.step(vote(**request), 1))
    assert isinstance(answer, VoteResponse) and answer.error_code == 0
    return answer.vote_granted


@rule("kraft 1.7", "kraft 2.7", "kraft 2.8")
@pytest.mark.parametrize("role", GRANTS)
@pytest.mark.parametrize("pre", [False, True])
def test_granting_in_the_own_epoch(role: str, pre: bool) -> None:
    assert granted(MAKERS[role](), pre=pre, last=(4, 10)) == GRANTS[role][pre]


@rule("kraft 2.10")
@pytest.mark.parametrize("role", GRANTS)
@pytest.mark.parametrize("epoch", [5, 6, 9])
def test_a_pre_vote_of_any_epoch_is_answered_by_role_and_changes_nothing(role: str, epoch: int) -> None:
    raft = MAKERS[role]()
    before = (role_of(raft), raft.core.epoch, raft.core.leader_id, raft.core.voted, raft.deadline_ms())
    (reply,) = raft.step(vote(epoch=epoch, last=(5, 11), pre=True), 1)  # a log that is better than any here
    assert isinstance(reply, Reply) and isinstance(reply.message, VoteResponse)
    assert reply.message.vote_granted == GRANTS[role][True] and reply.message.leader_epoch == 5
    assert (role_of(raft), raft.core.epoch, raft.core.leader_id, raft.core.voted, raft.deadline_ms()) == before


@rule("kraft 2.9")
def test_a_follower_that_no_longer_hears_its_leader_grants_a_pre_vote() -> None:
    raft = fetched_follower()
    raft.step(TimerFired(), CONFIG.fetch_timeout_ms)
    assert role_of(raft) is RaftRole.PROSPECTIVE
    assert granted(raft, epoch=6, last=(5, 11), pre=True) and raft.core.epoch == 5


@rule("kraft 2.4")
@pytest.mark.parametrize("role", GRANTS)
def test_a_vote_of_a_larger_epoch_makes_everyone_unattached_first(role: str) -> None:
    raft = MAKERS[role]()
    assert granted(raft, epoch=6, last=(5, 11))  # the leader's own log already ends with the first record of its epoch
    assert role_of(raft) is RaftRole.UNATTACHED and raft.core.epoch == 6


@rule("kraft 2.5")
@pytest.mark.parametrize(
    ("last", "enough"),
    [((4, 9), False), ((3, 99), False), ((4, 10), True), ((4, 11), True), ((5, 1), True), ((-1, 0), False)],
)
@pytest.mark.parametrize("pre", [False, True])
def test_a_vote_needs_a_log_that_is_up_to_date(last: tuple[int, int], enough: bool, pre: bool) -> None:
    assert granted(unattached(**LOG), epoch=6, last=last, pre=pre) == enough


@rule("kraft 2.6")
def test_one_vote_in_an_epoch() -> None:
    raft = unattached()
    assert granted(raft, candidate_id=2) and granted(raft, candidate_id=2)
    assert not granted(raft, candidate_id=1)
    assert granted(raft, candidate_id=1, epoch=6)


@rule("kraft 1.16")
def test_a_vote_belongs_to_a_directory() -> None:
    raft = make_raft(saved=QuorumState(epoch=5, voted=VoterKey(2, b"other directory!")))
    raft.step(Started(), 0)
    assert not granted(raft, candidate_id=2)


@rule("kraft 2.1", "kraft 2.2", "kraft 2.3")
@pytest.mark.parametrize(
    ("request_fields", "code"),
    [
        ({"epoch": 4, "last": (3, 9)}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": 5, "last": (5, 9)}, ErrorCode.INVALID_REQUEST),
        ({"epoch": 5, "last": (6, 9), "pre": True}, ErrorCode.INVALID_REQUEST),
        ({"epoch": -1, "last": (-1, 0)}, ErrorCode.INVALID_REQUEST),
        ({"last": (-2, 0)}, ErrorCode.INVALID_REQUEST),
        ({"last": (4, -1)}, ErrorCode.INVALID_REQUEST),
        ({"last": (-1, 5)}, ErrorCode.INVALID_REQUEST),
        ({"candidate_id": 0}, ErrorCode.INVALID_REQUEST),
        ({"to": 1}, ErrorCode.INVALID_VOTER_KEY),
    ],
)
def test_refusals(request_fields: dict[str, Any], code: ErrorCode) -> None:
    raft = unattached()
    effects = raft.step(vote(**request_fields), 1)
    answer = reply_of(effects)
    assert isinstance(answer, VoteResponse) and answer.error_code == code and not answer.vote_granted
    assert not persisted(effects) and raft.core.epoch == 5


@rule("kraft 2.2")
@pytest.mark.parametrize(
    "message",
    [
        replace(vote().message, voter_directory_id=b"another disk 16b"),
        replace(begin(6).message, voter_directory_id=b"another disk 16b"),
    ],
)
def test_what_is_meant_for_another_directory_of_this_node_is_refused(
    message: VoteRequest | BeginQuorumEpochRequest,
) -> None:
    """It asks for promises that another disk has given, or not."""
    raft = unattached()
    effects = raft.step(RequestReceived(1, message), 1)
    assert names(effects) == [type(message).__name__.replace("Request", "Response")]
    assert reply_of(effects).error_code == ErrorCode.INVALID_VOTER_KEY
    assert raft.core.epoch == 5


@rule("kraft 2.11")
def test_a_vote_is_durable_before_it_is_sent() -> None:
    effects = unattached().step(vote(epoch=6), 1)
    assert names(effects) == ["PersistQuorumState", "LeaderChanged", "VoteResponse"]
    assert persisted(effects)[0] == QuorumState(epoch=6, voted=VoterKey(2, bytes([2]) * 16))


@rule("kraft 2.10")
def test_a_pre_vote_promises_nothing() -> None:
    assert names(unattached().step(vote(pre=True), 1)) == ["VoteResponse"]


@rule("kraft 1.6")
def test_the_own_vote_is_durable_before_others_are_asked() -> None:
    raft = prospective()
    first, _ = (c for c, sent in raft.core.outbox.in_flight.items() if isinstance(sent.message, VoteRequest))
    effects = raft.step(ResponseReceived(first, VoteResponse(leader_epoch=5, vote_granted=True)), 1)
    assert role_of(raft) is RaftRole.CANDIDATE and raft.core.epoch == 6
    assert names(effects) == ["PersistQuorumState", "LeaderChanged", "VoteRequest", "VoteRequest"]
    assert persisted(effects) == [QuorumState(epoch=6, voted=VoterKey(0, bytes(16)))]


@rule("kraft 1.6")
def test_leadership_is_durable_before_its_first_record() -> None:
    raft = candidate()
    (first, *_) = raft.core.outbox.in_flight
    effects = raft.step(ResponseReceived(first, VoteResponse(leader_epoch=5, vote_granted=True)), 1)
    told = ["BeginQuorumEpochRequest"] * 2
    assert names(effects) == [*told, "PersistQuorumState", "LeaderChanged", "AppendLeaderChange"]


@rule("kraft 2.14")
def test_a_round_that_cannot_be_won_is_tried_again_soon() -> None:
    raft = prospective()
    now = 1_000
    for correlation in list(raft.core.outbox.in_flight)[:2]:
        raft.step(ResponseReceived(correlation, VoteResponse(leader_epoch=5)), now)
    retry = raft.deadline_ms()
    assert retry is not None and CONFIG.rejected_retry_min_ms <= retry - now <= CONFIG.rejected_retry_max_ms
    assert len(sends(raft.step(TimerFired(), retry), VoteRequest)) == 2 and raft.core.epoch == 5


@rule("kraft 1.4")
def test_a_candidate_that_lost_asks_for_pre_votes_before_it_raises_the_epoch_again() -> None:
    raft = candidate()
    for correlation in list(raft.core.outbox.in_flight):
        raft.step(RequestFailed(correlation), 10)
    retry = raft.deadline_ms()
    assert retry is not None
    (request, _) = sends(raft.step(TimerFired(), retry), VoteRequest)
    assert role_of(raft) is RaftRole.PROSPECTIVE and request.message.pre_vote and request.message.epoch == 5  # type: ignore[union-attr]


@rule("kraft 2.12")
def test_an_answer_to_an_older_round_is_ignored() -> None:
    raft = candidate()
    old, *_ = raft.core.outbox.in_flight
    raft.step(TimerFired(), raft.deadline_ms() or 0)
    raft.step(ResponseReceived(old, VoteResponse(leader_epoch=5, vote_granted=True)), 2_000)
    assert role_of(raft) is RaftRole.PROSPECTIVE


@rule("kraft 2.13")
def test_an_answer_from_a_larger_epoch_ends_the_candidacy() -> None:
    raft = candidate()
    first, second = raft.core.outbox.in_flight
    raft.step(ResponseReceived(first, VoteResponse(leader_epoch=9, leader_id=2)), 1)
    assert (role_of(raft), raft.core.epoch, raft.core.leader_id) == (RaftRole.FOLLOWER, 9, 2)
    raft.step(ResponseReceived(second, VoteResponse(leader_epoch=5, vote_granted=True)), 1)
    assert role_of(raft) is RaftRole.FOLLOWER


def grant_all(raft: Raft, now_ms: int) -> list[RaftEffect]:
    """Every open vote request is granted, one after another. Returns the effects of the last grant."""
    effects: list[RaftEffect] = []
    for correlation in [c for c, sent in raft.core.outbox.in_flight.items() if isinstance(sent.message, VoteRequest)]:
        effects = raft.step(ResponseReceived(correlation, VoteResponse(leader_epoch=5, vote_granted=True)), now_ms)
    return effects


def test_a_candidate_claims_only_what_it_has_synced() -> None:
    """A fetched tail is queued or written; a power cut would take it."""
    raft = follower(**LOG)
    (correlation,) = raft.core.outbox.in_flight
    spans = (EpochSpan(4, 10, 12), EpochSpan(5, 12, 13))
    raft.step(fetched(correlation, records=b"r", spans=spans), 0)
    requests = sends(raft.step(TimerFired(), 60_000), VoteRequest)
    assert [(sent.message.last_epoch, sent.message.last_epoch_end_offset) for sent in requests] == [(4, 10)] * 2
    raft = follower(**LOG)
    (correlation,) = raft.core.outbox.in_flight
    raft.step(fetched(correlation, records=b"r", spans=spans), 0)
    raft.step(LogWritten(13), 1)
    raft.step(LogSynced(13), 1)
    requests = sends(raft.step(TimerFired(), 60_000), VoteRequest)
    assert [(sent.message.last_epoch, sent.message.last_epoch_end_offset) for sent in requests] == [(5, 13)] * 2


@rule("kraft 1.17")
def test_a_candidate_leads_only_when_its_log_has_been_cut() -> None:
    raft = follower(**LOG)
    (correlation,) = raft.core.outbox.in_flight
    raft.step(fetched(correlation, diverging_epoch=EpochEndOffset(epoch=4, end_offset=8)), 1)
    raft.step(TimerFired(), 1 + CONFIG.fetch_timeout_ms)
    grant_all(raft, 2_010)
    assert role_of(raft) is RaftRole.CANDIDATE and raft.core.epoch == 6
    assert grant_all(raft, 2_020) == [] and role_of(raft) is RaftRole.CANDIDATE, "its log still has records after 8"
    effects = raft.step(LogTruncated(8), 2_030)
    assert role_of(raft) is RaftRole.LEADER and names(effects)[-1] == "AppendLeaderChange"
    assert raft.core.log.accepted_end == 9


def test_a_candidate_without_a_majority_goes_on_asking_when_its_log_has_been_cut() -> None:
    raft = follower(**LOG)
    (correlation,) = raft.core.outbox.in_flight
    raft.step(fetched(correlation, diverging_epoch=EpochEndOffset(epoch=4, end_offset=8)), 1)
    raft.step(TimerFired(), 1 + CONFIG.fetch_timeout_ms)
    grant_all(raft, 2_010)
    assert raft.step(LogTruncated(8), 2_020) == [] and role_of(raft) is RaftRole.CANDIDATE


@rule("kraft 2.15")
def test_a_voter_that_knows_no_pre_vote() -> None:
    raft = prospective()
    first, *_ = raft.core.outbox.in_flight
    raft.step(ResponseReceived(first, VoteResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, leader_epoch=5)), 1)
    assert role_of(raft) is RaftRole.CANDIDATE


@rule("kraft 2.16")
def test_a_prospective_voter_follows_its_leader_again_when_others_refuse() -> None:
    raft = follower()
    raft.step(TimerFired(), CONFIG.fetch_timeout_ms)
    assert role_of(raft) is RaftRole.PROSPECTIVE and raft.core.leader_id == 1
    votes = [c for c, sent in raft.core.outbox.in_flight.items() if isinstance(sent.message, VoteRequest)]
    for correlation in votes:
        raft.step(ResponseReceived(correlation, VoteResponse(leader_epoch=5, leader_id=1)), 1_001)
    assert role_of(raft) is RaftRole.FOLLOWER and raft.core.epoch == 5


@rule("kraft 2.16")
def test_a_prospective_voter_follows_its_leader_again_when_nobody_answers() -> None:
    raft = follower()
    raft.step(TimerFired(), CONFIG.fetch_timeout_ms)
    assert role_of(raft) is RaftRole.PROSPECTIVE
    due_ms = raft.deadline_ms()
    assert due_ms is not None
    raft.step(TimerFired(), due_ms)
    assert (role_of(raft), raft.core.leader_id, raft.core.epoch) == (RaftRole.FOLLOWER, 1, 5)


@rule("kraft 2.17")
@pytest.mark.parametrize(
    ("node_id", "leader_id", "rank"), [(0, 1, 0), (2, 1, 1), (0, 2, 0), (1, 2, 1), (1, 0, 0), (2, 0, 1)]
)
def test_survivors_of_a_dead_leader_wait_by_rank(node_id: int, leader_id: int, rank: int) -> None:
    raft = follower(leader_id, node_id=node_id)
    raft.step(PeerProvenDead(leader_id, 5), 100)
    due = raft.deadline_ms()
    assert role_of(raft) is RaftRole.UNATTACHED and raft.core.leader_id is None and due is not None
    assert 0 <= due - 100 - rank * CONFIG.rank_step_ms <= CONFIG.rank_jitter_ms


@rule("kraft 2.18")
def test_only_a_departed_leader_itself_can_bring_itself_back() -> None:
    raft = follower(1)
    raft.step(PeerProvenDead(1, 5), 0)
    raft.step(TimerFired(), 200)
    votes = [c for c, sent in raft.core.outbox.in_flight.items() if sent.to == 2]
    raft.step(ResponseReceived(votes[-1], VoteResponse(leader_epoch=5, leader_id=1)), 210)
    assert raft.core.leader_id is None
    raft.step(begin(5, leader_id=1), 220)
    assert role_of(raft) is RaftRole.FOLLOWER and raft.core.leader_id == 1


def test_the_death_of_a_node_that_does_not_lead_changes_nothing() -> None:
    raft = follower(1)
    raft.step(PeerProvenDead(2, 5), 0)
    assert role_of(raft) is RaftRole.FOLLOWER


def test_a_late_proof_of_death_does_not_make_a_follower_forget_the_same_node_elected_again() -> None:
    raft = follower(1)
    raft.step(begin(7, leader_id=1), 10)
    raft.step(PeerProvenDead(1, 5), 20)
    assert (role_of(raft), raft.core.epoch, raft.core.leader_id) == (RaftRole.FOLLOWER, 7, 1)
    raft.step(PeerProvenDead(1, 7), 30)
    assert (role_of(raft), raft.core.epoch, raft.core.leader_id) == (RaftRole.UNATTACHED, 7, None)
