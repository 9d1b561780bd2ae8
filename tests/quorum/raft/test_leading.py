"""The high watermark, parked fetches, check-quorum, resignation: leading an epoch.

Sources: Kafka's `LeaderStateTest` and `KafkaRaftClientTest`.
"""

from __future__ import annotations

from typing import Any

import pytest
from raft_samples import CONFIG, begin, end_epoch, fetch, follower, leader, names, reply_of, role_of, sends, unattached

from quorumlog.errors import ErrorCode
from quorumlog.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    QuorumFetchResponse,
)
from quorumlog_quorum.raft.effects import (
    HighWatermark,
    LeadershipClaimed,
    RaftEffect,
    ReadForFetch,
    Reply,
    Send,
    ShutdownFinished,
)
from quorumlog_quorum.raft.events import (
    AppendRequested,
    LogSynced,
    LogWritten,
    NotLeader,
    RecordsRead,
    RequestFailed,
    ResponseReceived,
    ShutdownRequested,
    TimerFired,
)
from quorumlog_quorum.raft.raft import Raft
from quorumlog_quorum.raft.roles import Leader, RaftRole
from quorumlog_storage.rules.epochs import EpochStart
from tests.rules import rule

LOG: dict[str, Any] = {
    "end": 10,
    "epochs": (EpochStart(4, 0),),
}  # LeaderChange goes to offset 10, the log then ends at 11


def marks(effects: list[RaftEffect]) -> list[int]:
    return [effect.offset for effect in effects if isinstance(effect, HighWatermark)]


# --- the high watermark ---


@rule("kraft 3.2", "kraft 3.3")
@pytest.mark.parametrize(
    ("voters", "acknowledged", "want"),
    [
        (1, [], 11),
        (2, [(1, 10)], None),  # the first record of the epoch is not on a majority
        (2, [(1, 11)], 11),
        (3, [(1, 11)], 11),
        (3, [(1, 10), (2, 10)], None),  # records of an older epoch are not committed by counting
        (5, [(1, 11)], None),
        (5, [(1, 11), (2, 11)], 11),
    ],
)
def test_high_watermark(voters: int, acknowledged: list[tuple[int, int]], want: int | None) -> None:
    raft = leader(voters=voters, **LOG)
    for replica, offset in acknowledged:
        raft.step(fetch(offset, 4 if offset <= 10 else 5, replica=replica), 1)
    assert raft.core.high_watermark == (-1 if want is None else want)


@rule("kraft 3.4")
def test_the_leader_counts_only_what_it_has_synced() -> None:
    raft = leader(voters=1, settled=False, **LOG)
    raft.step(LogWritten(11), 1)
    assert raft.core.high_watermark == -1
    effects = raft.step(LogSynced(11), 2)
    assert names(effects) == ["HighWatermark", "LeadershipClaimed"]


def test_followers_may_commit_what_the_leader_has_only_written() -> None:
    raft = leader(settled=False, **LOG)
    raft.step(LogWritten(11), 1)
    raft.step(fetch(11, 5, replica=1), 1)
    raft.step(fetch(11, 5, replica=2), 1)
    assert raft.core.high_watermark == 11


@rule("kraft 3.5")
def test_the_high_watermark_never_falls_and_the_leadership_is_claimed_once() -> None:
    raft = leader(**LOG)
    effects = raft.step(fetch(11, 5), 1)
    assert [e for e in effects if isinstance(e, LeadershipClaimed)] == [LeadershipClaimed(5, 11)]
    effects = raft.step(fetch(5, 4), 2)  # the follower has lost its disk
    assert not marks(effects) and raft.core.high_watermark == 11
    effects = raft.step(fetch(11, 5), 3)
    assert not marks(effects) and "LeadershipClaimed" not in names(effects)


@rule("kraft 3.6")
def test_observers_are_not_counted() -> None:
    raft = leader(**LOG)
    raft.step(fetch(11, 5, replica=7), 1)
    assert raft.core.high_watermark == -1


# --- appends ---


def test_appends_get_offsets_in_the_order_of_requests() -> None:
    raft = leader(**LOG)
    first = raft.step(AppendRequested(5, [b"a", b"b"]), 1)
    second = raft.step(AppendRequested(5, [b"c"]), 1)
    assert [(e.offset, e.end_offset) for e in (*first, *second)] == [(11, 13), (13, 14)]  # type: ignore[union-attr]


@rule("kraft 3.7")
@pytest.mark.parametrize("epoch", [4, 6])
def test_append_in_another_epoch_is_refused(epoch: int) -> None:
    with pytest.raises(NotLeader):
        leader().step(AppendRequested(epoch, [b"a"]), 1)


@rule("kraft 3.7")
def test_append_at_a_follower_is_refused() -> None:
    with pytest.raises(NotLeader):
        follower().step(AppendRequested(5, [b"a"]), 1)


# --- fetches ---


@rule("kraft 4.1")
@pytest.mark.parametrize(
    ("offset", "last_epoch", "epoch", "code"),
    [
        (11, 5, 4, ErrorCode.FENCED_LEADER_EPOCH),
        (11, 5, 6, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (-1, 5, 5, ErrorCode.INVALID_REQUEST),
        (5, -1, 5, ErrorCode.INVALID_REQUEST),
        (0, 4, 5, ErrorCode.INVALID_REQUEST),
    ],
)
def test_fetch_errors(offset: int, last_epoch: int, epoch: int, code: ErrorCode) -> None:
    answer = reply_of(leader(**LOG).step(fetch(offset, last_epoch, epoch=epoch), 1))
    assert isinstance(answer, QuorumFetchResponse)
    assert (answer.error_code, answer.leader_id, answer.leader_epoch) == (code, 0, 5)


@rule("kraft 4.2")
def test_fetch_from_a_follower_names_the_leader() -> None:
    answer = reply_of(follower(1).step(fetch(0, -1, replica=2), 1))
    assert isinstance(answer, QuorumFetchResponse)
    assert (answer.error_code, answer.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 1)
    assert [hint.port for hint in answer.node_endpoints] == [9001]


@rule("kraft 4.3")
@pytest.mark.parametrize(("offset", "last_epoch", "want"), [(12, 4, (4, 10)), (12, 5, (5, 11)), (3, 2, (2, 0))])
def test_divergence(offset: int, last_epoch: int, want: tuple[int, int]) -> None:
    answer = reply_of(leader(**LOG).step(fetch(offset, last_epoch), 1))
    assert isinstance(answer, QuorumFetchResponse) and answer.diverging_epoch is not None
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == want


def parked_leader() -> Raft:
    """Everything is committed, and the follower whose fetch (token 1) is parked knows it."""
    raft = leader(**LOG)
    raft.step(fetch(11, 5, token=9), 1)
    assert raft.step(fetch(11, 5, token=1, known=11), 2) == []
    return raft


@rule("kraft 4.6")
def test_a_parked_fetch_waits_for_a_written_end() -> None:
    raft = parked_leader()
    raft.step(AppendRequested(5, [b"a"]), 3)
    (read,) = raft.step(LogWritten(12), 4)
    assert read == ReadForFetch(1, 11, CONFIG.fetch_max_bytes, 12)
    answer = reply_of(raft.step(RecordsRead(1, b"records"), 5))
    assert isinstance(answer, QuorumFetchResponse) and answer.records == b"records" and answer.high_watermark == 11


@rule("kraft 4.6")
def test_a_parked_fetch_is_answered_with_a_new_high_watermark() -> None:
    raft = leader(**LOG)
    assert raft.step(fetch(11, 5, replica=7, token=7), 1) == []  # an observer; nothing is committed yet
    effects = raft.step(fetch(11, 5, replica=1, token=1), 2)
    assert [e.token for e in effects if isinstance(e, Reply)] == [1, 7], "voters come first: a commit waits for them"


@rule("kraft 4.6")
def test_a_parked_fetch_ends_with_its_time() -> None:
    raft = parked_leader()
    assert raft.deadline_ms() == CONFIG.begin_interval_ms
    answer = reply_of(raft.step(TimerFired(), 2 + 500))
    assert isinstance(answer, QuorumFetchResponse) and answer.error_code == 0 and answer.records == b""


@rule("kraft 3.32", "kraft 4.7")
def test_parked_fetches_and_reads_end_with_the_leadership() -> None:
    raft = parked_leader()
    raft.step(AppendRequested(5, [b"a"]), 3)
    raft.step(fetch(11, 5, replica=2, token=2, known=11), 3)
    raft.step(LogWritten(12), 4)
    effects = raft.step(begin(6, leader_id=2), 5)
    answers = {e.token: e.message.error_code for e in effects if isinstance(e, Reply)}
    assert answers[2] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert raft.step(RecordsRead(1, b"records"), 6) == [], "records read for an epoch that is over go nowhere"


@rule("kraft 4.18")
def test_observers_get_what_is_committed_and_voters_what_is_written() -> None:
    """A commit waits for the voters' fetches; a hundred observers must not stand before them in the leader's turn."""
    raft = parked_leader()
    assert raft.step(fetch(11, 5, replica=7, token=7, known=11), 3) == [], "an observer"
    raft.step(AppendRequested(5, [b"a"]), 3)
    assert [e.token for e in raft.step(LogWritten(12), 4) if isinstance(e, ReadForFetch)] == [1]
    raft.step(RecordsRead(1, b"records"), 4)
    assert not [e for e in raft.step(LogSynced(12), 5) if isinstance(e, ReadForFetch | Reply)], "not committed"
    raft.step(AppendRequested(5, [b"b"]), 5)
    raft.step(LogWritten(13), 5)
    effects = raft.step(fetch(12, 5, replica=1, token=8, known=11), 6)
    assert marks(effects) == [12]
    reads = {e.token: (e.offset, e.upper_bound) for e in effects if isinstance(e, ReadForFetch)}
    assert reads == {8: (12, 13), 7: (11, 12)}, "the last record is not committed"
    answer = reply_of(raft.step(RecordsRead(7, b"records"), 6))
    assert isinstance(answer, QuorumFetchResponse) and answer.high_watermark == 12, "one answer for both"


def test_the_fetch_of_one_observer_does_not_look_at_the_others() -> None:
    raft = parked_leader()
    role = raft.core.role
    assert isinstance(role, Leader)
    for node in range(10, 20):
        raft.step(fetch(11, 5, replica=node, token=node, known=11), 3)
    before = role.watching
    raft.step(fetch(11, 5, replica=20, token=20, known=11), 4)
    assert role.watching is before and [one.token for one in before] == list(range(10, 21))
    assert role.watched_due_ms == 3 + CONFIG.fetch_max_wait_ms, "the first of them"
    assert [e.token for e in raft.step(TimerFired(), 503) if isinstance(e, Reply)] == [1, *range(10, 20)]


def test_a_full_purgatory_answers_at_once() -> None:
    raft = parked_leader()
    assert isinstance(raft.core.role, Leader)
    raft.core.role.parked *= CONFIG.max_parked_fetches
    answer = reply_of(raft.step(fetch(11, 5, replica=7, token=77, known=11), 3))
    assert isinstance(answer, QuorumFetchResponse) and answer.error_code == 0


# --- check-quorum and resignation ---


@rule("kraft 3.10")
def test_check_quorum() -> None:
    raft = leader(**LOG)
    raft.step(fetch(11, 5), 1_000)
    raft.step(TimerFired(), 1_000 + CONFIG.check_quorum_timeout_ms - 1)
    assert role_of(raft) is RaftRole.LEADER
    effects = raft.step(TimerFired(), 1_000 + CONFIG.check_quorum_timeout_ms)
    assert role_of(raft) is RaftRole.RESIGNED and "LeadershipLost" in names(effects)
    assert len(sends(effects, EndQuorumEpochRequest)) == 2


@rule("kraft 3.10")
def test_five_voters_need_two_others() -> None:
    raft = leader(voters=5, **LOG)
    raft.step(fetch(11, 5, replica=1), 1_400)
    raft.step(TimerFired(), 1_500)
    assert role_of(raft) is RaftRole.RESIGNED


@rule("kraft 3.11")
def test_fetches_of_observers_do_not_count_for_check_quorum() -> None:
    raft = leader(**LOG)
    raft.step(fetch(11, 5, replica=7), 1_400)
    raft.step(TimerFired(), 1_500)
    assert role_of(raft) is RaftRole.RESIGNED


@rule("kraft 3.12")
def test_a_single_voter_has_no_check_quorum() -> None:
    raft = leader(voters=1)
    assert raft.deadline_ms() is None


@rule("kraft 1.8")
def test_a_resigned_leader_never_stays_in_its_epoch() -> None:
    raft = leader()
    raft.step(TimerFired(), 1_500)
    while role_of(raft) is RaftRole.RESIGNED:
        raft.step(TimerFired(), raft.deadline_ms() or 0)
        for correlation in list(raft.core.outbox.in_flight):
            raft.step(RequestFailed(correlation), raft.deadline_ms() or 0)
    assert (role_of(raft), raft.core.epoch) == (RaftRole.UNATTACHED, 6)


@rule("kraft 3.9")
def test_begin_quorum_epoch_is_repeated_for_voters_that_do_not_fetch() -> None:
    raft = leader()
    raft.step(fetch(1, 5, replica=1), 300)
    (again,) = sends(raft.step(TimerFired(), 500), BeginQuorumEpochRequest)
    assert again.to == 2


@rule("kraft 3.13")
def test_shutdown_names_successors_and_ends_when_all_have_acknowledged() -> None:
    raft = leader(**LOG)
    raft.step(fetch(11, 5, replica=2), 1)
    assert not sends(raft.step(ShutdownRequested(), 1), EndQuorumEpochRequest)
    ends = sends(raft.step(fetch(11, 5, replica=2, round_named=1), 2), EndQuorumEpochRequest)
    preferred = [candidate.node_id for candidate in ends[0].message.preferred_candidates]  # type: ignore[union-attr]
    assert preferred == [2, 1] and [end.to for end in ends] == [2]
    ends += sends(raft.step(TimerFired(), 52), EndQuorumEpochRequest)
    assert [end.to for end in ends] == [2, 1]
    assert raft.step(ResponseReceived(ends[0].correlation, EndQuorumEpochResponse(leader_epoch=5)), 53) == []
    assert raft.step(RequestFailed(ends[1].correlation), 54) == [ShutdownFinished()]


def test_shutdown_of_a_follower_ends_at_once() -> None:
    assert ShutdownFinished() in follower().step(ShutdownRequested(), 1)


# --- EndQuorumEpoch and BeginQuorumEpoch received ---


@rule("kraft 3.14")
@pytest.mark.parametrize(("successors", "delay_ms"), [((0, 2), 0), ((2, 0), 500), ((2,), 1_000)])
def test_end_quorum_epoch(successors: tuple[int, ...], delay_ms: int) -> None:
    raft = follower(1)
    raft.step(end_epoch(5, successors=successors), 100)
    if delay_ms == 0:
        assert role_of(raft) is RaftRole.CANDIDATE and raft.core.epoch == 6
    else:
        assert role_of(raft) is RaftRole.UNATTACHED and raft.deadline_ms() == 100 + delay_ms


@rule("kraft 3.15")
def test_end_of_an_older_epoch_changes_nothing() -> None:
    raft = follower(1)
    answer = reply_of(raft.step(end_epoch(4, successors=(0,)), 1))
    assert role_of(raft) is RaftRole.FOLLOWER and answer.error_code == ErrorCode.FENCED_LEADER_EPOCH  # type: ignore[attr-defined]


@rule("kraft 3.16")
def test_begin_quorum_epoch_is_durable_before_it_is_answered() -> None:
    effects = unattached().step(begin(6), 1)
    assert names(effects) == ["PersistQuorumState", "LeaderChanged", "BeginQuorumEpochResponse", "QuorumFetchRequest"]
    assert isinstance(effects[-1], Send) and effects[-1].to == 1


@rule("kraft 3.17")
@pytest.mark.parametrize(
    ("event", "code"),
    [
        (begin(4), ErrorCode.FENCED_LEADER_EPOCH),
        (begin(6, to=2), ErrorCode.INVALID_VOTER_KEY),
        (begin(6, leader_id=0), ErrorCode.INVALID_REQUEST),
        (begin(6, leader_id=9), ErrorCode.INVALID_REQUEST),
    ],
)
def test_begin_refusals(event: object, code: ErrorCode) -> None:
    answer = reply_of(unattached().step(event, 1))  # type: ignore[arg-type]
    assert answer.error_code == code  # type: ignore[attr-defined]


@rule("kraft 1.14")
def test_two_leaders_in_an_epoch_stop_the_process() -> None:
    with pytest.raises(AssertionError):
        follower(1).step(begin(5, leader_id=2), 1)
