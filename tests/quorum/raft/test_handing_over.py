"""Hand-over of the leadership: when a leader is stopped, and when it is asked to (Kafka's `KafkaRaftClientTest`)."""

from __future__ import annotations

from typing import Any

import pytest
from raft_samples import end_epoch, fetch, follower, leader, names, persisted, role_of, sends

from quorumlog.errors import ErrorCode
from quorumlog.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    TransferLeadershipRequest,
    TransferLeadershipResponse,
    VoteRequest,
)
from quorumlog_quorum.raft.effects import HandOverBegun, LeadershipClaimed, RaftEffect, Reply, ShutdownFinished
from quorumlog_quorum.raft.events import (
    AppendRequested,
    ConfirmationRequested,
    LogSynced,
    LogWritten,
    NotLeader,
    RequestReceived,
    ShutdownRequested,
    TimerFired,
)
from quorumlog_quorum.raft.raft import Raft
from quorumlog_quorum.raft.read_rounds import NONE_TOLD
from quorumlog_quorum.raft.roles import RaftRole
from quorumlog_storage.rules.epochs import EpochStart
from tests.rules import rule

LOG: dict[str, Any] = {"end": 10, "epochs": (EpochStart(4, 0),)}  # LeaderChange is at 10, so the log ends at 11
TOKEN = 70


def claimed(voters: int = 3) -> Raft:
    raft = leader(voters=voters, **LOG)
    for replica in range(1, voters):
        raft.step(fetch(11, 5, replica=replica, token=replica, known=11), 1)
    return raft


def transfer(to: int = -1) -> RequestReceived:
    return RequestReceived(TOKEN, TransferLeadershipRequest(to_node_id=to))


def caught_up(replica: int, end: int = 11, named: int = 1) -> RequestReceived:
    return fetch(end, 5, replica=replica, token=10 + replica, known=end, round_named=named)


def answers(effects: list[RaftEffect]) -> list[tuple[ErrorCode, int]]:
    found = [e.message for e in effects if isinstance(e, Reply)]
    return [(ErrorCode(m.error_code), m.leader_id) for m in found if isinstance(m, TransferLeadershipResponse)]


def preferred(effects: list[RaftEffect]) -> list[int]:
    """The successors as each EndQuorumEpoch names them; [] if none is sent."""
    found = [
        [candidate.node_id for candidate in send.message.preferred_candidates]
        for send in sends(effects, EndQuorumEpochRequest)
        if isinstance(send.message, EndQuorumEpochRequest)
    ]
    assert all(one == found[0] for one in found)
    return found[0] if found else []


# --- the successor is ready first ---


@rule("kraft 3.23")
def test_the_first_voter_that_is_alive_and_caught_up_is_named_first() -> None:
    raft = claimed()
    effects = raft.step(ShutdownRequested(), 2)
    assert names(effects) == ["HandOverBegun", "QuorumFetchResponse", "QuorumFetchResponse"]
    assert preferred(raft.step(caught_up(2), 3)) == [2, 1] and role_of(raft) is RaftRole.RESIGNED


@rule("kraft 3.23")
def test_a_voter_that_stands_still_is_not_named_first() -> None:
    """Node 1 has every record, too, but no fetch of it has come since the hand-over began."""
    raft = claimed()
    raft.step(ShutdownRequested(), 2)
    assert preferred(raft.step(caught_up(1, named=NONE_TOLD), 3)) == []
    assert preferred(raft.step(caught_up(2), 4)) == [2, 1]


@rule("kraft 3.22")
def test_the_successor_must_have_synced_the_last_record() -> None:
    raft = claimed()
    raft.step(AppendRequested(5, [b"a"]), 1)
    raft.step(LogWritten(12), 1)
    raft.step(LogSynced(12), 1)
    raft.step(ShutdownRequested(), 2)
    assert preferred(raft.step(caught_up(2, end=11), 3)) == []
    assert preferred(raft.step(caught_up(2, end=12), 4)) == [2, 1]


@rule("kraft 3.22")
def test_a_voter_that_lacks_the_last_record_is_not_named_although_it_is_committed() -> None:
    raft = claimed()
    raft.step(AppendRequested(5, [b"a"]), 1)
    raft.step(LogWritten(12), 1)
    raft.step(LogSynced(12), 1)
    raft.step(transfer(to=2), 2)
    raft.step(caught_up(1, end=12), 3)
    assert raft.core.high_watermark == 12
    assert preferred(raft.step(caught_up(2, end=11), 4)) == []
    assert preferred(raft.step(caught_up(2, end=12), 5)) == [2, 1]


@rule("kraft 3.21")
def test_all_that_was_appended_is_committed_before_the_leader_resigns() -> None:
    """Of five voters one successor with all records is no majority: their callers would not learn their outcome."""
    raft = claimed(voters=5)
    raft.step(AppendRequested(5, [b"a"]), 1)
    raft.step(LogWritten(12), 1)
    raft.step(LogSynced(12), 1)
    raft.step(ShutdownRequested(), 2)
    assert preferred(raft.step(caught_up(2, end=12), 3)) == []
    effects = raft.step(caught_up(3, end=12), 4)
    assert raft.core.high_watermark == 12 and preferred(effects)[0] in (2, 3)
    assert names(effects).index("HighWatermark") < names(effects).index("EndQuorumEpochRequest")


@rule("kraft 3.21")
def test_nothing_is_appended_once_the_hand_over_has_begun() -> None:
    raft = claimed()
    raft.step(ShutdownRequested(), 2)
    with pytest.raises(NotLeader):
        raft.step(AppendRequested(5, [b"a"]), 3)


@rule("kraft 3.24")
def test_a_stopped_leader_resigns_when_nobody_is_ready_in_time() -> None:
    raft = claimed()
    raft.step(ShutdownRequested(), 2)
    assert preferred(raft.step(TimerFired(), 501)) == []
    assert raft.deadline_ms() == 502
    assert preferred(raft.step(TimerFired(), 502)) == [1, 2]


@rule("kraft 3.13")
def test_without_a_ready_successor_the_voter_with_the_most_records_is_named_first() -> None:
    raft = leader(**LOG)
    raft.step(fetch(10, 4, replica=1, token=1), 1)
    raft.step(fetch(11, 5, replica=2, token=2), 1)
    assert preferred(raft.step(ShutdownRequested(at_once=True), 2)) == [2, 1]


@rule("kraft 3.25")
def test_a_leader_whose_disk_failed_resigns_at_once_also_during_a_hand_over() -> None:
    raft = claimed()
    raft.step(ShutdownRequested(), 2)
    assert preferred(raft.step(ShutdownRequested(at_once=True), 3)) == [1, 2]
    assert preferred(claimed().step(ShutdownRequested(at_once=True), 3)) == [1, 2]


def test_a_stopped_leader_that_is_deposed_meanwhile_has_nothing_to_hand_over() -> None:
    raft = claimed()
    raft.step(ShutdownRequested(), 2)
    begin = BeginQuorumEpochRequest(leader_id=2, leader_epoch=6, voter_id=0)
    assert ShutdownFinished() in raft.step(RequestReceived(3, begin), 3)


# --- asked to ---


def test_a_transfer_is_answered_with_the_successor_before_the_leader_resigns() -> None:
    raft = claimed()
    assert HandOverBegun(5) in raft.step(transfer(), 2)
    effects = raft.step(caught_up(2), 3)
    assert answers(effects) == [(ErrorCode.NONE, 2)] and preferred(effects) == [2, 1]
    assert names(effects).index("TransferLeadershipResponse") < names(effects).index("EndQuorumEpochRequest")


@rule("kraft 3.26")
def test_only_the_voter_that_was_asked_for_is_waited_for() -> None:
    raft = claimed()
    raft.step(transfer(to=1), 2)
    assert preferred(raft.step(caught_up(2), 3)) == []
    assert preferred(raft.step(caught_up(1), 4)) == [1, 2]


@rule("kraft 3.24")
def test_a_leader_goes_on_when_the_voter_is_not_ready_in_time() -> None:
    raft = claimed()
    raft.step(transfer(to=1), 2)
    raft.step(caught_up(2), 3)
    effects = raft.step(TimerFired(), 502)
    assert answers(effects) == [(ErrorCode.REQUEST_TIMED_OUT, 0)]
    assert LeadershipClaimed(5, 11) in effects and role_of(raft) is RaftRole.LEADER
    assert names(raft.step(AppendRequested(5, [b"a"]), 503)) == ["AppendValues"]


@rule("kraft 3.24")
def test_a_leader_that_goes_on_claims_again_only_when_all_is_committed() -> None:
    """The controller's image must hold all that it had appended."""
    raft = claimed()
    raft.step(AppendRequested(5, [b"a"]), 1)
    raft.step(LogWritten(12), 1)
    raft.step(LogSynced(12), 1)
    raft.step(transfer(to=1), 2)
    assert "LeadershipClaimed" not in names(raft.step(TimerFired(), 502))
    assert LeadershipClaimed(5, 12) in raft.step(fetch(12, 5, replica=2), 503)


@rule("kraft 3.26")
@pytest.mark.parametrize(
    ("to", "voters", "code"),
    [
        (0, 3, ErrorCode.NONE),  # it leads already
        (9, 3, ErrorCode.VOTER_NOT_FOUND),
        (-1, 1, ErrorCode.INVALID_REQUEST),
    ],
)
def test_transfers_that_change_nothing(to: int, voters: int, code: ErrorCode) -> None:
    raft = leader(voters=voters, **LOG)
    assert answers(raft.step(transfer(to), 2)) == [(code, 0)]
    assert names(raft.step(AppendRequested(5, [b"a"]), 3)) == ["AppendValues"]


@rule("kraft 3.26")
def test_a_second_transfer_is_refused_and_may_be_tried_again() -> None:
    raft = claimed()
    raft.step(transfer(to=1), 2)
    assert answers(raft.step(RequestReceived(71, TransferLeadershipRequest(to_node_id=2)), 3)) == [
        (ErrorCode.REQUEST_TIMED_OUT, 0)
    ]
    assert ErrorCode.REQUEST_TIMED_OUT.retriable


def test_a_transfer_to_a_node_that_does_not_lead_is_for_the_leader() -> None:
    assert answers(follower(1).step(transfer(), 1)) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, 1)]


@rule("kraft 3.26")
def test_a_transfer_is_answered_when_check_quorum_ends_the_leadership() -> None:
    raft = leader(**LOG)
    raft.step(transfer(), 1_400)
    effects = raft.step(TimerFired(), 1_500)
    assert [code for code, _ in answers(effects)] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


@rule("kraft 3.32")
def test_reads_are_still_confirmed_during_a_hand_over() -> None:
    raft = claimed()
    raft.step(transfer(to=1), 2)
    raft.step(ConfirmationRequested(7), 2)
    assert "LeadershipConfirmed" in names(raft.step(caught_up(2, named=2), 3))


# --- the successor ---


@rule("kraft 1.4", "kraft 3.14")
def test_the_successor_asks_for_votes_at_once_and_only_after_its_own_is_durable() -> None:
    raft = follower(1)
    effects = raft.step(end_epoch(5, successors=(0, 2)), 1)
    requests = [send.message for send in sends(effects, VoteRequest)]
    assert all(isinstance(r, VoteRequest) and r.epoch == 6 and not r.pre_vote for r in requests) and len(requests) == 2
    assert [(state.epoch, state.voted) for state in persisted(effects)] == [(6, raft.core.key)]
    assert names(effects).index("PersistQuorumState") < names(effects).index("VoteRequest")


@rule("kraft 3.14")
@pytest.mark.parametrize("successors", [(2, 0), (2,), ()])
def test_any_other_voter_asks_for_pre_votes_later(successors: tuple[int, ...]) -> None:
    raft = follower(1)
    assert not sends(raft.step(end_epoch(5, successors=successors), 1), VoteRequest)
    (first, _) = sends(raft.step(TimerFired(), raft.deadline_ms() or 0), VoteRequest)
    assert isinstance(first.message, VoteRequest) and first.message.pre_vote
