"""Voters that are added, removed and updated: the leader's side, rule by rule (KIP-853)."""

from __future__ import annotations

from random import Random

import pytest
from raft_samples import CONFIG, fetch, fetched, names, sends, voter_set
from voter_samples import (
    EPOCH,
    add,
    appended_set,
    code_of,
    directory,
    endpoint,
    key,
    member,
    members,
    probed,
    remove,
    settle,
    text_of,
    update,
    voter_leader,
    voter_raft,
)

from quorumlog.errors import ErrorCode
from quorumlog.ids import ZERO_UUID
from quorumlog.messages.common import Endpoint
from quorumlog.messages.quorum import (
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    EndQuorumEpochRequest,
    QuorumFetchRequest,
    VoteRequest,
    VoteResponse,
)
from quorumlog.records.control import KRaftVersion
from quorumlog_quorum.raft.effects import AppendControl, HighWatermark, KRaftVersionAnswered, ReadForFetch, Reply
from quorumlog_quorum.raft.events import (
    CandidateProbed,
    RequestReceived,
    ResponseReceived,
    Started,
    TimerFired,
    UpgradeRequested,
)
from quorumlog_quorum.raft.log_state import LogState
from quorumlog_quorum.raft.membership import Membership
from quorumlog_quorum.raft.quorum_state import QuorumState
from quorumlog_quorum.raft.raft import Raft
from quorumlog_quorum.raft.roles import RaftRole
from quorumlog_quorum.raft.voters import BOOTSTRAP, MembershipRecord, VoterSet, record_of
from tests.rules import rule


def acknowledge(raft: Raft, *node_ids: int, now_ms: int = 10) -> list:
    """These nodes have synced all that the leader has."""
    effects = []
    for node_id in node_ids:
        effects += raft.step(
            fetch(raft.core.log.accepted_end, EPOCH, replica=node_id, token=900 + node_id, wait_ms=0), now_ms
        )
    return effects


def replies(effects: list, token: int = 1) -> list[int]:
    return [effect.message.error_code for effect in effects if isinstance(effect, Reply) and effect.token == token]


# --- adding ---


@rule("kraft 6.9", "kraft 6.10")
def test_a_voter_is_added_when_it_has_answered_and_caught_up_and_a_majority_has_the_new_set() -> None:
    raft = voter_leader()
    probing = raft.step(add(), 2)
    assert names(probing) == ["ProbeCandidate"]
    assert raft.step(probed(probing), 3) == []
    behind = raft.step(fetch(4, 4, replica=4, token=7), 4)
    assert appended_set(behind) is None, "the candidate still copies the log"
    caught_up = raft.step(fetch(raft.core.log.accepted_end, EPOCH, replica=4, token=8), 5)
    assert appended_set(caught_up) == members(1, 2, 3, 4) == raft.core.voters, "in force when appended"
    assert replies(settle(raft, 6) + acknowledge(raft, 2)) == [], "two of four are no majority"
    done = acknowledge(raft, 4)
    assert replies(done) == [ErrorCode.NONE]
    order = [name for name in names(done) if name in ("HighWatermark", "AddRaftVoterResponse")]
    assert order == ["HighWatermark", "AddRaftVoterResponse"]


@rule("kraft 4.19")
def test_a_fetch_that_waits_as_an_observers_gets_what_is_not_committed_once_a_set_names_its_node() -> None:
    """Observers get what is committed, and the commit of the new set waits for the node that it names."""
    raft = voter_leader()
    raft.step(probed(raft.step(add(), 2)), 3)
    end = raft.core.log.accepted_end
    raft.step(fetch(end, EPOCH, replica=5, token=9, known=raft.core.high_watermark), 4)
    appending = raft.step(fetch(end, EPOCH, replica=4, token=8, known=raft.core.high_watermark), 5)
    assert appended_set(appending) == members(1, 2, 3, 4)
    reads = [effect for effect in settle(raft, 6) if isinstance(effect, ReadForFetch)]
    assert [(read.token, read.upper_bound) for read in reads] == [(8, raft.core.log.accepted_end)], (
        "and node 5 waits on"
    )


@rule("kraft 6.10")
def test_an_add_that_need_not_wait_for_the_commit_is_answered_when_the_set_is_in_the_log() -> None:
    raft = voter_leader()
    raft.step(probed(raft.step(add(commit=False), 2)), 3)
    done = raft.step(fetch(raft.core.log.accepted_end, EPOCH, replica=4, token=8), 5)
    assert appended_set(done) == members(1, 2, 3, 4) and replies(done) == [ErrorCode.NONE]


WRONG_CANDIDATES = [
    ("nobody answers", None, ErrorCode.REQUEST_TIMED_OUT, "does not answer"),
    ("another node", {"node_id": 5}, ErrorCode.INVALID_REQUEST, "is node 5"),
    ("another directory", {"other": 1}, ErrorCode.INVALID_REQUEST, "is node 4"),
    ("only a broker", {"is_controller": False}, ErrorCode.INVALID_REQUEST, "process.roles"),
    ("older software", {"max_version": 0}, ErrorCode.INVALID_REQUEST, "upgrade its software"),
]


@rule("kraft 6.8")
@pytest.mark.parametrize(
    ("answer", "code", "words"), [case[1:] for case in WRONG_CANDIDATES], ids=[case[0] for case in WRONG_CANDIDATES]
)
def test_a_candidate_that_is_not_who_it_must_be_is_refused(answer: dict | None, code: ErrorCode, words: str) -> None:
    raft = voter_leader()
    probing = raft.step(add(), 2)
    event = CandidateProbed(probing[0].number, None) if answer is None else probed(probing, **answer)  # type: ignore[union-attr]
    effects = raft.step(event, 3)
    assert code_of(effects) == code and words in text_of(effects)
    assert names(raft.step(add(), 4)) == ["ProbeCandidate"], "the next change may begin"


REFUSED_ADDS = [
    ("no leader", voter_raft, add(), ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ("nothing committed yet", lambda: voter_leader(claimed=False), add(), ErrorCode.REQUEST_TIMED_OUT),
    ("kraft.version 0", lambda: voter_leader(static=members(1, 2, 3)), add(), ErrorCode.UNSUPPORTED_VERSION),
    ("a voter", voter_leader, add(3), ErrorCode.DUPLICATE_VOTER),
    ("a voter with another directory", voter_leader, add(3, other=1), ErrorCode.DUPLICATE_VOTER),
    ("no listener", voter_leader, add(listeners=()), ErrorCode.INVALID_REQUEST),
    (
        "not the listener of the quorum",
        voter_leader,
        add(listeners=(Endpoint(name="CLIENT", host="h", port=1),)),
        ErrorCode.INVALID_REQUEST,
    ),
    ("no directory", voter_leader, add(directory_id=b""), ErrorCode.INVALID_REQUEST),
    ("the zero directory", voter_leader, add(directory_id=ZERO_UUID), ErrorCode.INVALID_REQUEST),
    (
        "no node id",
        voter_leader,
        add(-1, directory_id=directory(4), listeners=(endpoint(4),)),
        ErrorCode.INVALID_REQUEST,
    ),
]


@rule("kraft 6.4", "kraft 6.6", "kraft 6.7")
@pytest.mark.parametrize(("make", "event", "code"), [c[1:] for c in REFUSED_ADDS], ids=[c[0] for c in REFUSED_ADDS])
def test_an_add_is_refused(make, event: RequestReceived, code: ErrorCode) -> None:
    raft = make() if make is not voter_raft else started(voter_raft(1, members(1, 2, 3)))
    effects = raft.step(event, 2)
    assert code_of(effects) == code and text_of(effects)
    assert appended_set(effects) is None


def started(raft: Raft) -> Raft:
    raft.step(Started(), 0)
    return raft


@rule("kraft 6.3", "kraft 6.6")
def test_the_checks_of_an_add_come_in_the_order_of_kafka() -> None:
    """A request with every mistake gets the first one's answer, and so on."""
    wrong = {"directory_id": directory(3, 1), "listeners": ()}
    assert code_of(started(voter_raft(1, members(1, 2, 3))).step(add(3, **wrong), 1)) == 6
    assert code_of(voter_leader(claimed=False).step(add(3, **wrong), 1)) == ErrorCode.REQUEST_TIMED_OUT
    assert code_of(voter_leader(static=members(1, 2, 3)).step(add(3, **wrong), 1)) == ErrorCode.UNSUPPORTED_VERSION
    busy = voter_leader()
    busy.step(add(4), 1)
    assert code_of(busy.step(add(3, **wrong), 1)) == ErrorCode.REQUEST_TIMED_OUT
    assert code_of(voter_leader().step(add(3, **wrong), 1)) == ErrorCode.DUPLICATE_VOTER
    assert code_of(voter_leader().step(add(4, listeners=()), 1)) == ErrorCode.INVALID_REQUEST


@rule("kraft 6.9")
def test_a_candidate_that_is_too_slow_is_told_how_far_it_is() -> None:
    raft = voter_leader()
    raft.step(probed(raft.step(add(timeout_ms=300), 2)), 3)
    assert raft.deadline_ms() is not None
    raft.step(fetch(4, 4, replica=4, token=7), 4)
    effects = raft.step(TimerFired(), 302)
    assert replies(effects) == [ErrorCode.REQUEST_TIMED_OUT]
    texts = [e.message.error_message for e in effects if isinstance(e, Reply) and e.token == 1]  # type: ignore[union-attr]
    assert "has 4 of 11 records" in texts[0]
    assert raft.core.voters == members(1, 2, 3)


@rule("kraft 6.9")
def test_a_candidate_that_never_fetches_is_told_so() -> None:
    raft = voter_leader()
    raft.step(probed(raft.step(add(timeout_ms=300), 2)), 3)
    acknowledge(raft, 2, 3, now_ms=301)
    assert raft.deadline_ms() == 302
    assert "does not fetch" in text_of(raft.step(TimerFired(), 302))


@rule("kraft 6.11")
def test_a_change_that_no_majority_takes_up_is_answered_in_time_and_stays_under_way() -> None:
    raft = voter_leader()
    raft.step(remove(3), 2)
    settle(raft, 2)
    acknowledge_late = lambda: raft.step(fetch(11, EPOCH, replica=2, token=902, wait_ms=0), 5_000)  # noqa: E731
    acknowledge_late()
    assert code_of(raft.step(TimerFired(), 5_002)) == ErrorCode.REQUEST_TIMED_OUT
    assert code_of(raft.step(remove(2, token=2), 5_003)) == ErrorCode.REQUEST_TIMED_OUT, "one change at a time"
    acknowledge(raft, 2, now_ms=5_004)
    assert appended_set(raft.step(remove(2, token=3), 5_005)) == members(1)


@rule("kraft 6.11")
def test_losing_the_leadership_ends_a_change_with_an_answer() -> None:
    for change in (add(), remove()):
        raft = voter_leader()
        raft.step(change, 2)
        begin = BeginQuorumEpochRequest(leader_id=2, leader_epoch=9, voter_id=1, leader_endpoints=(endpoint(2),))
        effects = raft.step(RequestReceived(77, begin), 3)
        assert replies(effects) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


# --- removing ---


@rule("kraft 6.12")
def test_a_voter_is_removed_when_a_majority_without_it_has_the_new_set() -> None:
    raft = voter_leader()
    effects = raft.step(remove(3), 2)
    assert appended_set(effects) == members(1, 2) == raft.core.voters
    assert replies(settle(raft, 3) + acknowledge(raft, 3)) == [], "it does not count any more"
    assert replies(acknowledge(raft, 2)) == [ErrorCode.NONE]


REFUSED_REMOVALS = [
    ("nothing committed yet", lambda: voter_leader(claimed=False), remove(), ErrorCode.REQUEST_TIMED_OUT),
    ("kraft.version 0", lambda: voter_leader(static=members(1, 2, 3)), remove(), ErrorCode.UNSUPPORTED_VERSION),
    ("no voter", voter_leader, remove(4), ErrorCode.VOTER_NOT_FOUND),
    ("another directory", voter_leader, remove(3, other=1), ErrorCode.VOTER_NOT_FOUND),
    ("the last voter", lambda: voter_leader(members(1)), remove(1), ErrorCode.INVALID_REQUEST),
]


@rule("kraft 6.12")
@pytest.mark.parametrize(
    ("make", "event", "code"), [c[1:] for c in REFUSED_REMOVALS], ids=[c[0] for c in REFUSED_REMOVALS]
)
def test_a_removal_is_refused(make, event: RequestReceived, code: ErrorCode) -> None:
    effects = make().step(event, 2)
    assert code_of(effects) == code and text_of(effects)


@rule("kraft 6.13")
def test_a_leader_that_removes_itself_leads_without_counting_itself_until_that_is_committed() -> None:
    raft = voter_leader()
    effects = raft.step(remove(1), 2)
    assert appended_set(effects) == members(2, 3)
    assert not [e for e in settle(raft, 3) + acknowledge(raft, 2) if isinstance(e, HighWatermark)], "one of two"
    assert raft.core.role.role is RaftRole.LEADER
    done = acknowledge(raft, 3)
    assert replies(done) == [ErrorCode.NONE]
    assert raft.core.role.role is RaftRole.RESIGNED
    assert {send.to for send in sends(done, EndQuorumEpochRequest)} == {2, 3}
    due = raft.deadline_ms()
    while raft.core.role.role is RaftRole.RESIGNED and due is not None and due < 10_000:
        raft.step(TimerFired(), due)
        due = raft.deadline_ms()
    assert (raft.core.role.role, raft.core.epoch) == (RaftRole.UNATTACHED, EPOCH + 1), (
        "it looks for the leader as an observer"
    )


# --- updating ---


def test_a_voter_that_listens_elsewhere_is_updated_and_answered_before_the_commit() -> None:
    raft = voter_leader()
    effects = raft.step(update(3, port=7000), 2)
    found = appended_set(effects)
    assert found is not None and found.endpoint_of(3) == Endpoint(name="INTERNAL", host="h", port=7000)
    assert code_of(effects) == ErrorCode.NONE
    assert raft.core.endpoint_of(3) == found.endpoint_of(3)


@rule("kraft 6.18")
def test_an_update_that_changes_nothing_appends_nothing() -> None:
    effects = voter_leader().step(update(3, port=9003), 2)
    assert names(effects) == ["UpdateRaftVoterResponse"] and code_of(effects) == ErrorCode.NONE


REFUSED_UPDATES = [
    ("an older epoch", update(3, epoch=EPOCH - 1), ErrorCode.FENCED_LEADER_EPOCH),
    ("a later epoch", update(3, epoch=EPOCH + 1), ErrorCode.UNKNOWN_LEADER_EPOCH),
    ("no voter", update(4), ErrorCode.VOTER_NOT_FOUND),
    ("another directory", update(3, directory_id=directory(3, 1)), ErrorCode.VOTER_NOT_FOUND),
    ("no listener of the quorum", update(3, listeners=()), ErrorCode.INVALID_REQUEST),
    ("software that cannot run the level", update(3, highest=0), ErrorCode.INVALID_REQUEST),
]


@rule("kraft 6.19")
@pytest.mark.parametrize(("event", "code"), [c[1:] for c in REFUSED_UPDATES], ids=[c[0] for c in REFUSED_UPDATES])
def test_an_update_is_refused(event: RequestReceived, code: ErrorCode) -> None:
    assert code_of(voter_leader().step(event, 2)) == code


# --- kraft.version 0 -> 1 ---


def upgraded(raft: Raft, now_ms: int = 3) -> KRaftVersionAnswered | None:
    effects = raft.step(UpgradeRequested(5), now_ms)
    return next((effect for effect in effects if isinstance(effect, KRaftVersionAnswered)), None)


def static() -> VoterSet:
    return VoterSet(voter for voter in voter_set(4).voters if voter.node_id)


@rule("kraft 6.22")
def test_the_upgrade_waits_until_every_voter_has_told_that_it_supports_it() -> None:
    raft = voter_leader(static=static())
    answer = upgraded(raft)
    assert answer is not None and answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    raft.step(update(2, port=9002), 2)
    raft.step(update(3, port=9003, highest=0), 2)
    answer = upgraded(raft)
    assert answer is not None and "voter 3 supports kraft.version 0-0" in answer.text
    raft.step(update(3, port=9003), 2)
    effects = raft.step(UpgradeRequested(5), 3)
    assert appended_set(effects) == members(1, 2, 3) == raft.core.voters and raft.core.history.level == 1
    (control,) = [effect for effect in effects if isinstance(effect, AppendControl)]
    assert [type(record).__name__ for _, record in control.members] == ["KRaftVersion", "Voters"]
    done = settle(raft, 4) + acknowledge(raft, 2)
    assert [e for e in done if isinstance(e, KRaftVersionAnswered)] == [KRaftVersionAnswered(5, ErrorCode.NONE, "")]
    assert upgraded(raft) == KRaftVersionAnswered(5, ErrorCode.NONE, ""), "again: it is there already"


@rule("kraft 6.22")
def test_to_validate_the_upgrade_appends_nothing() -> None:
    raft = voter_leader(static=static())
    (refused,) = raft.step(UpgradeRequested(5, validate_only=True), 2)
    assert isinstance(refused, KRaftVersionAnswered) and refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
    raft.step(update(2, port=9002), 2)
    raft.step(update(3, port=9003), 2)
    effects = raft.step(UpgradeRequested(6, validate_only=True), 3)
    assert effects == [KRaftVersionAnswered(6, ErrorCode.NONE, "")] and raft.core.history.level == 0


def test_only_a_leader_upgrades() -> None:
    answer = upgraded(started(voter_raft(1, static=static())))
    assert answer is not None and answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# --- what others see ---


def test_describe_shows_the_change_and_the_progress_of_the_candidate() -> None:
    raft = voter_leader()
    raft.step(probed(raft.step(add(), 2)), 3)
    raft.step(fetch(4, 4, replica=4, token=7), 4)
    (reply,) = raft.step(RequestReceived(9, DescribeQuorumRequest()), 5)
    assert isinstance(reply, Reply) and isinstance(reply.message, DescribeQuorumResponse)
    described, change = reply.message, reply.message.voter_change
    assert change is not None and (change.kind, change.phase, change.voter_id) == ("add", "catch-up", 4)
    assert (change.log_end_offset, change.leader_end_offset) == (4, 11)
    assert [row.replica_id for row in described.voters] == [1, 2, 3] and described.kraft_version == 1
    assert [(row.replica_id, row.directory_id) for row in described.observers] == [(4, directory(4))]


@rule("kraft 6.13")
def test_a_removed_leader_describes_itself_as_an_observer() -> None:
    raft = voter_leader()
    raft.step(remove(1), 2)
    (reply,) = raft.step(RequestReceived(9, DescribeQuorumRequest()), 5)
    assert isinstance(reply, Reply) and isinstance(reply.message, DescribeQuorumResponse)
    assert [row.replica_id for row in reply.message.voters] == [2, 3]
    assert [row.replica_id for row in reply.message.observers] == [1]


@rule("kraft 6.18")
def test_a_leader_that_listens_elsewhere_updates_its_own_entry() -> None:
    raft = voter_leader(endpoints=(Endpoint(name="INTERNAL", host="h", port=7001),))
    assert raft.core.voters.endpoint_of(1) == Endpoint(name="INTERNAL", host="h", port=7001)


@rule("kraft 6.23")
def test_the_first_leader_writes_the_voters_of_the_bootstrap_checkpoint() -> None:

    held = (KRaftVersion(1), record_of(VoterSet([member(1)])))
    raft = Raft(
        key=key(1),
        voters=VoterSet(()),
        config=CONFIG,
        rng=Random(1),
        log=LogState(start=0, end=0, epochs=()),
        saved=QuorumState(),
        membership=Membership(records=tuple(MembershipRecord(BOOTSTRAP, record) for record in held)),
    )
    effects = raft.step(Started(), 0)
    appends = [effect for effect in effects if type(effect).__name__.startswith("Append")]
    assert [type(effect).__name__ for effect in appends] == ["AppendLeaderChange", "AppendControl"]
    assert appends[1].members == tuple(MembershipRecord(1 + index, record) for index, record in enumerate(held))  # type: ignore[union-attr]


@rule("kraft 6.4")
def test_a_leader_that_knows_all_sets_of_its_log_committed_still_waits_for_its_own_epoch() -> None:
    """An earlier leader may have appended a set that this log lacks and another node has."""
    raft = voter_raft(1, members(1, 2, 3), saved=QuorumState(epoch=EPOCH, leader_id=2))
    (asked,) = sends(raft.step(Started(), 0), QuorumFetchRequest)
    raft.step(fetched(asked.correlation, epoch=EPOCH, leader_id=2, high_watermark=10), 1)
    assert raft.core.high_watermark == 10
    now_ms = 1
    while raft.core.role.role is not RaftRole.LEADER:
        due = raft.deadline_ms()
        assert due is not None and due < 10_000
        now_ms = max(now_ms, due)
        votes = sends(raft.step(TimerFired(), now_ms), VoteRequest)
        while votes and raft.core.role.role is not RaftRole.LEADER:
            granted = VoteResponse(leader_epoch=raft.core.epoch, vote_granted=True)
            votes = sends(raft.step(ResponseReceived(votes[0].correlation, granted), now_ms), VoteRequest)
    refused = raft.step(remove(3), now_ms)
    assert appended_set(refused) is None
    assert code_of(refused) == ErrorCode.REQUEST_TIMED_OUT and "its own epoch" in text_of(refused)
