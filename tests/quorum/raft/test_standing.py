"""What a follower asks about itself as a voter, and how nodes act by the set in force (KIP-595, KIP-853)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from raft_samples import CONFIG, begin, fetch, fetched, names, reply_of, sends, vote
from voter_samples import (
    EPOCH,
    LISTENER,
    add,
    endpoint,
    key,
    member,
    members,
    probed,
    remove,
    settle,
    voter_leader,
    voter_raft,
)

from quorumlog.errors import ErrorCode
from quorumlog.messages.common import Endpoint, EpochEndOffset, NodeEndpoint
from quorumlog.messages.quorum import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    BeginQuorumEpochRequest,
    QuorumFetchRequest,
    QuorumFetchResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    VoteRequest,
    VoteResponse,
)
from quorumlog_quorum.raft.effects import MembershipSettled, RaftEffect
from quorumlog_quorum.raft.events import (
    AppendRequested,
    LogSynced,
    LogTruncated,
    LogWritten,
    RequestReceived,
    ResponseReceived,
    Started,
    TimerFired,
)
from quorumlog_quorum.raft.log_state import EpochSpan
from quorumlog_quorum.raft.membership import MovedVoter
from quorumlog_quorum.raft.outbox import InFlightRequest
from quorumlog_quorum.raft.quorum_state import QuorumState
from quorumlog_quorum.raft.raft import Raft
from quorumlog_quorum.raft.roles import RaftRole
from quorumlog_quorum.raft.voters import MembershipRecord, VoterSet, record_of
from tests.rules import rule

LEADER = 2


def follower(node_id: int, voters: VoterSet | None, **fields: Any) -> Raft:
    """It follows node 2 in epoch 5 and has sent its first fetch."""
    raft = voter_raft(node_id, voters, **fields)
    raft.step(Started(), 0)
    announced = BeginQuorumEpochRequest(
        leader_id=LEADER,
        leader_epoch=EPOCH,
        voter_id=node_id,
        voter_directory_id=key(node_id, fields.get("other", 0)).directory_id,
        leader_endpoints=(endpoint(LEADER),),
    )
    sent = raft.step(RequestReceived(1, announced), 0)
    assert sends(sent, QuorumFetchRequest)
    return raft


def fetches(request: InFlightRequest) -> bool:
    return isinstance(request.message, QuorumFetchRequest)


def answer_fetch(raft: Raft, now_ms: int = 10, **fields: Any) -> list[RaftEffect]:
    """Answer the newest fetch in flight."""
    asked = [
        number for number, request in raft.core.outbox.in_flight.items() if request.to == LEADER and fetches(request)
    ]
    correlation = asked[-1]
    return raft.step(fetched(correlation, epoch=EPOCH, leader_id=LEADER, **fields), now_ms)


def answer(raft: Raft, kind: type, response: Any, now_ms: int) -> list[RaftEffect]:
    (correlation,) = [number for number, asked in raft.core.outbox.in_flight.items() if isinstance(asked.message, kind)]
    return raft.step(ResponseReceived(correlation, response), now_ms)


def new_set(raft: Raft, voters: VoterSet, now_ms: int = 10) -> list[RaftEffect]:
    """The leader sends a voter set as the next record."""
    end = raft.core.log.accepted_end
    span = EpochSpan(EPOCH, end, end + 1, (MembershipRecord(end, record_of(voters)),))
    return answer_fetch(raft, now_ms, records=b"x", spans=(span,))


# --- telling the leader ---


@rule("kraft 6.18")
def test_a_voter_that_listens_elsewhere_tells_the_leader_once_it_has_copied_from_it() -> None:
    moved = Endpoint(name=LISTENER, host="h", port=7003)
    raft = follower(3, members(1, 2, 3), endpoints=(moved,))
    effects = answer_fetch(raft)
    (sent,) = sends(effects, UpdateRaftVoterRequest)
    assert sent.to == LEADER and sent.message.listeners == (moved,) and sent.message.max_kraft_version == 1  # type: ignore[union-attr]
    answer(raft, UpdateRaftVoterRequest, UpdateRaftVoterResponse(leader_id=LEADER, leader_epoch=EPOCH), 20)
    assert sends(answer_fetch(raft, 30), UpdateRaftVoterRequest) == [], "not again before the set had time to arrive"


def test_a_voter_that_has_moved_is_called_at_its_new_address_while_the_log_names_the_old_one() -> None:
    new = replace(endpoint(1), port=7001)
    moves = tuple(
        MovedVoter(node_id=node_id, old=("h", port), new=("h", 7000 + node_id))
        for node_id, port in ((1, 9001), (2, 8002), (4, 9003))  # 2: it is listed elsewhere. 4 is no voter
    )
    raft = voter_raft(3, members(1, 2, 3), moved=moves)
    assert [raft.core.endpoint_of(node_id) for node_id in (1, 2, 3)] == [new, endpoint(2), endpoint(3)]
    raft.step(Started(), 0)
    asked = {sent.to: sent.message for sent in sends(raft.step(TimerFired(), 60_000), VoteRequest)}
    assert asked[1].voter_directory_id == member(1).directory_id, "who answers there must be this voter"  # type: ignore[union-attr]
    raft = follower(3, members(1, 2, 3), moved=(MovedVoter(node_id=LEADER, old=("h", 9002), new=("h", 7002)),))
    assert raft.core.endpoint_of(LEADER) == endpoint(LEADER), "a leader's own word is newer"


def test_a_static_set_is_not_changed_by_moves() -> None:
    raft = voter_raft(3, static=members(1, 2, 3), moved=(MovedVoter(node_id=1, old=("h", 9001), new=("h", 7001)),))
    assert raft.core.endpoint_of(1) == endpoint(1)


def test_a_voter_that_is_listed_as_it_is_tells_nothing() -> None:
    assert sends(answer_fetch(follower(3, members(1, 2, 3))), UpdateRaftVoterRequest) == []


def test_with_a_static_set_each_leader_is_told_once() -> None:
    raft = follower(3, None, static=members(1, 2, 3))
    assert len(sends(answer_fetch(raft), UpdateRaftVoterRequest)) == 1
    answer(raft, UpdateRaftVoterRequest, UpdateRaftVoterResponse(leader_id=LEADER, leader_epoch=EPOCH), 20)
    assert sends(answer_fetch(raft, 9_999), UpdateRaftVoterRequest) == []


def test_a_leader_that_does_not_understand_is_asked_again_later() -> None:
    raft = follower(3, None, static=members(1, 2, 3))
    answer_fetch(raft)
    refused = UpdateRaftVoterResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, leader_id=LEADER, leader_epoch=EPOCH)
    answer(raft, UpdateRaftVoterRequest, refused, 20)
    assert sends(answer_fetch(raft, 500), UpdateRaftVoterRequest) == []
    assert len(sends(raft.step(TimerFired(), 20 + CONFIG.voter_request_retry_ms), UpdateRaftVoterRequest)) == 1


# --- joining by itself ---


@rule("kraft 6.20")
def test_a_controller_on_a_new_directory_removes_its_former_self_then_adds_itself() -> None:
    raft = follower(3, members(1, 2, 3), other=1, auto_join=True)
    (removal,) = sends(answer_fetch(raft), RemoveRaftVoterRequest)
    assert removal.message.voter_directory_id == key(3).directory_id  # type: ignore[union-attr]
    answer(raft, RemoveRaftVoterRequest, RemoveRaftVoterResponse(leader_id=LEADER, leader_epoch=EPOCH), 20)
    new_set(raft, members(1, 2), 30)
    settle(raft, 40)
    (addition,) = sends(raft.step(TimerFired(), 80), AddRaftVoterRequest)
    assert addition.message.voter_directory_id == key(3, 1).directory_id  # type: ignore[union-attr]
    assert not addition.message.ack_when_committed  # type: ignore[union-attr]


NEVER_JOINS = [
    ("a broker alone", {"can_become_voter": False}),
    ("without the setting", {"auto_join": False}),
    ("a directory that was a voter once", {"has_joined": True}),
]


@rule("kraft 6.20", "kraft 6.21")
@pytest.mark.parametrize("fields", [case[1] for case in NEVER_JOINS], ids=[case[0] for case in NEVER_JOINS])
def test_who_never_joins_by_itself(fields: dict[str, Any]) -> None:
    raft = follower(4, members(1, 2, 3), **{"auto_join": True, **fields})
    effects = answer_fetch(raft)
    assert sends(effects, AddRaftVoterRequest) == sends(effects, RemoveRaftVoterRequest) == []


@rule("kraft 6.20")
def test_nobody_joins_a_static_set() -> None:
    raft = follower(4, None, static=members(1, 2, 3), auto_join=True)
    assert sends(answer_fetch(raft), AddRaftVoterRequest) == []


@rule("kraft 6.21")
def test_what_an_operator_removed_stays_removed() -> None:
    raft = follower(4, members(1, 2, 3), auto_join=True)
    assert sends(answer_fetch(raft), AddRaftVoterRequest)
    answer(raft, AddRaftVoterRequest, AddRaftVoterResponse(leader_id=LEADER, leader_epoch=EPOCH), 20)
    new_set(raft, members(1, 2, 3, 4), 30)
    settle(raft, 40)
    noted = answer_fetch(raft, 50, high_watermark=raft.core.log.accepted_end)
    assert MembershipSettled() in noted
    new_set(raft, members(1, 2, 3), 60)
    settle(raft, 70)
    effects = answer_fetch(raft, 80, high_watermark=raft.core.log.accepted_end) + raft.step(TimerFired(), 20_000)
    assert sends(effects, AddRaftVoterRequest) == []


# --- the set in force ---


@rule("kraft 6.2")
def test_an_observer_that_a_set_names_is_a_voter_at_once_and_none_again_when_the_set_is_cut() -> None:
    raft = follower(4, members(1, 2, 3))
    new_set(raft, members(1, 2, 3, 4))
    settle(raft, 11)
    assert raft.core.voters == members(1, 2, 3, 4)
    point = raft.core.log.accepted_end - 1
    answer_fetch(raft, 20, diverging_epoch=EpochEndOffset(epoch=4, end_offset=point))
    assert raft.core.voters == members(1, 2, 3), "reverted with its record"
    raft.step(LogTruncated(point), 21)
    due = raft.deadline_ms()
    while raft.core.role.role is RaftRole.FOLLOWER and due is not None:
        raft.step(TimerFired(), due)
        due = raft.deadline_ms()
    assert raft.core.role.role is RaftRole.UNATTACHED, "an observer never stands for election"


def test_a_new_voter_stands_for_election_when_its_leader_is_gone() -> None:
    raft = follower(4, members(1, 2, 3))
    new_set(raft, members(1, 2, 3, 4))
    settle(raft, 11)
    answer_fetch(raft, 12)
    due = raft.deadline_ms()
    while raft.core.role.role is RaftRole.FOLLOWER and due is not None:
        effects = raft.step(TimerFired(), due)
        due = raft.deadline_ms()
    assert {send.to for send in sends(effects, VoteRequest)} == {1, 2, 3}


@rule("kraft 6.16")
def test_a_controller_that_is_no_voter_fetches_on_only_when_its_records_are_synced() -> None:
    for can_become_voter in (True, False):
        raft = follower(4, members(1, 2, 3), can_become_voter=can_become_voter)
        end = raft.core.log.accepted_end
        answer_fetch(raft, records=b"x", spans=(EpochSpan(EPOCH, end, end + 1),), high_watermark=end + 1)
        written = sends(raft.step(LogWritten(end + 1), 11), QuorumFetchRequest)
        assert len(written) == (0 if can_become_voter else 1)
        assert raft.core.high_watermark == (end if can_become_voter else end + 1)
        raft.step(LogSynced(end + 1), 12)
        assert raft.core.high_watermark == end + 1


@rule("kraft 6.24")
def test_a_node_that_knows_no_voters_finds_the_leader_through_a_bootstrap_server() -> None:
    bootstrap = (Endpoint(name="", host="b", port=1), Endpoint(name="", host="b", port=2))
    raft = voter_raft(4, None, bootstrap=bootstrap, saved=QuorumState())
    (first,) = sends(raft.step(Started(), 0), QuorumFetchRequest)
    assert first.to in (-2, -3) and raft.core.endpoint_of(first.to) == bootstrap[-2 - first.to]
    hint = NodeEndpoint(node_id=LEADER, host="h", port=9002)
    redirect = QuorumFetchResponse(
        error_code=ErrorCode.FENCED_LEADER_EPOCH, leader_id=LEADER, leader_epoch=EPOCH, node_endpoints=(hint,)
    )
    (second,) = sends(raft.step(ResponseReceived(first.correlation, redirect), 10), QuorumFetchRequest)
    assert second.to == LEADER and raft.core.leader_id == LEADER and raft.core.epoch == EPOCH
    assert raft.core.endpoint_of(LEADER) == Endpoint(name=LISTENER, host="h", port=9002)


@rule("kraft 6.17")
def test_a_node_that_was_never_a_voter_grants_votes_that_are_addressed_to_it() -> None:
    """Its set may be older than the candidate's, which names it (KIP-853)."""
    raft = voter_raft(4, members(1, 2, 3))
    raft.step(Started(), 0)
    response = reply_of(raft.step(vote(EPOCH, to=4, candidate_id=2, last=(4, 10)), 1))
    assert isinstance(response, VoteResponse) and response.vote_granted


@rule("kraft 6.17")
def test_a_voter_follows_a_leader_that_its_older_set_does_not_name() -> None:
    raft = voter_raft(3, members(1, 2, 3))
    raft.step(Started(), 0)
    announced = BeginQuorumEpochRequest(
        leader_id=7, leader_epoch=9, voter_id=3, leader_endpoints=(endpoint(7),), voter_directory_id=key(3).directory_id
    )
    raft.step(RequestReceived(1, announced), 1)
    assert (raft.core.role.role, raft.core.leader_id, raft.core.endpoint_of(7)) == (RaftRole.FOLLOWER, 7, endpoint(7))


@rule("kraft 6.17")
def test_a_stranger_without_an_address_is_not_followed() -> None:
    raft = voter_raft(3, members(1, 2, 3))
    raft.step(Started(), 0)
    assert reply_of(raft.step(begin(9, leader_id=7, to=3), 1)).error_code == ErrorCode.INVALID_REQUEST  # type: ignore[attr-defined]


@rule("kraft 1.16")
def test_a_disk_that_forgot_its_votes_is_asked_for_none() -> None:
    """The candidate names the directory that it knows; the same node on another directory refuses."""
    raft = voter_raft(3, members(1, 2, 3), other=1)
    raft.step(Started(), 0)
    event = vote(EPOCH + 1, to=3, candidate_id=2, last=(4, 10))
    asked = VoteRequest(
        **{name: getattr(event.message, name) for name in event.message.__slots__ if name != "voter_directory_id"},
        voter_directory_id=key(3).directory_id,
    )
    response = reply_of(raft.step(RequestReceived(1, asked), 1))
    assert isinstance(response, VoteResponse)
    assert (response.vote_granted, response.error_code) == (False, ErrorCode.INVALID_VOTER_KEY)


@rule("kraft 1.16")
def test_a_disk_that_forgot_is_not_counted_by_its_node_id() -> None:
    raft = voter_leader(members(1, 2, 3))
    before = raft.core.high_watermark
    raft.step(RequestReceived(5, _fetch_of(raft, 3, other=1)), 2)
    raft.step(AppendRequested(EPOCH, [b"x"]), 3)
    settle(raft, 3)
    raft.step(RequestReceived(6, _fetch_of(raft, 3, other=1)), 4)
    assert raft.core.high_watermark == before
    raft.step(fetch(raft.core.log.accepted_end, EPOCH, replica=3, token=7), 5)
    assert raft.core.high_watermark == raft.core.log.accepted_end


def _fetch_of(raft: Raft, node_id: int, other: int) -> QuorumFetchRequest:
    event = fetch(raft.core.log.accepted_end, EPOCH, replica=node_id).message
    assert isinstance(event, QuorumFetchRequest)
    return QuorumFetchRequest(
        **{name: getattr(event, name) for name in event.__slots__ if name != "replica_directory_id"},
        replica_directory_id=key(node_id, other).directory_id,
    )


@rule("kraft 6.15")
def test_a_larger_set_lowers_no_high_watermark() -> None:
    raft = voter_leader(members(1))
    high_watermark = raft.core.high_watermark
    assert high_watermark == raft.core.log.accepted_end
    raft.step(probed(raft.step(add(4, commit=False), 2)), 3)
    raft.step(fetch(raft.core.log.accepted_end, EPOCH, replica=4, token=8), 4)
    assert raft.core.voters == VoterSet([member(1), member(4)])
    settle(raft, 5)
    assert raft.core.high_watermark == high_watermark, "one of two has the new set"


@rule("kraft 6.15")
def test_check_quorum_counts_the_set_in_force() -> None:
    raft = voter_leader(members(1, 2))
    assert "ProbeCandidate" not in names(raft.step(TimerFired(), 100))
    raft.step(remove(2), 200)
    settle(raft, 201)
    for now_ms in range(1_000, 20_000, 1_000):
        raft.step(TimerFired(), now_ms)
    assert raft.core.role.role is RaftRole.LEADER, "a single voter never resigns for silence"
