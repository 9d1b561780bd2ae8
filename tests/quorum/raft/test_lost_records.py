"""A voter whose log lacks records that were synced: it follows, and it neither votes nor stands for election.

It may have acknowledged what it lacks, so a majority that counts it could elect a leader without a committed record
(Raft §5.4.1). It is whole again once it holds all that a leader has committed in its own epoch (Raft §5.4.2).
"""

from __future__ import annotations

from typing import Any

import pytest
from raft_samples import (
    CONFIG,
    begin,
    end_epoch,
    fetched,
    follower,
    make_raft,
    names,
    reply_of,
    role_of,
    sends,
    unattached,
    vote,
)

from quorumlog.messages.quorum import QuorumFetchRequest, VoteRequest, VoteResponse
from quorumlog_quorum.raft.events import LogSynced, LogWritten, PeerProvenDead, Started, TimerFired
from quorumlog_quorum.raft.log_state import EpochSpan
from quorumlog_quorum.raft.quorum_state import QuorumState
from quorumlog_quorum.raft.raft import Raft
from quorumlog_quorum.raft.roles import RaftRole
from quorumlog_quorum.raft.voters import VoterKey
from quorumlog_storage.rules.epochs import EpochStart
from tests.rules import rule

LOG: dict[str, Any] = {"end": 10, "epochs": (EpochStart(4, 0),), "is_whole": False}
LATE_MS = 60_000
OWN = VoterKey(0, bytes(16))


def granted(raft: Raft, **request: Any) -> bool:
    answer = reply_of(raft.step(vote(**request), 1))
    assert isinstance(answer, VoteResponse) and answer.error_code == 0
    return answer.vote_granted


@rule("kraft 1.15")
@pytest.mark.parametrize("pre_vote", [True, False])
def test_it_grants_no_vote(pre_vote: bool) -> None:
    whole: dict[str, Any] = {**LOG, "is_whole": True}
    request: dict[str, Any] = {"epoch": 6, "last": (4, 20), "pre": pre_vote}
    assert granted(unattached(**whole), **request)
    assert not granted(unattached(**LOG), **request)


def started(saved: QuorumState, voters: int = 3) -> Raft:
    raft = make_raft(voters=voters, saved=saved, **LOG)
    raft.step(Started(), 0)
    return raft


SAVED = [
    ("it had voted for nobody", 3, QuorumState(epoch=5)),
    ("it is alone", 1, QuorumState(epoch=5)),
    ("it was the leader, alone", 1, QuorumState(epoch=5, leader_id=0, voted=OWN)),
    ("it was a candidate, and others may have voted for it", 3, QuorumState(epoch=5, voted=OWN)),
    ("it was the leader", 3, QuorumState(epoch=5, leader_id=0, voted=OWN)),
    ("it was a follower", 3, QuorumState(epoch=5, leader_id=1)),
]


@rule("kraft 1.15")
@pytest.mark.parametrize(("voters", "saved"), [case[1:] for case in SAVED], ids=[case[0] for case in SAVED])
def test_it_never_stands_for_election(voters: int, saved: QuorumState) -> None:
    raft = make_raft(voters=voters, saved=saved, **LOG)
    asked = list(sends(raft.step(Started(), 0), VoteRequest))
    for _ in range(20):
        due = raft.deadline_ms()
        if due is None:
            break
        asked += sends(raft.step(TimerFired(), max(due, 0)), VoteRequest)
    assert asked == [] and role_of(raft) not in (RaftRole.PROSPECTIVE, RaftRole.CANDIDATE, RaftRole.LEADER)


@pytest.mark.parametrize("event", [PeerProvenDead(1, 5), end_epoch(5, successors=(0, 2)), end_epoch(5)])
def test_it_leaves_the_election_to_others_when_the_leader_goes(event: Any) -> None:
    raft = follower(**LOG)
    effects = list(raft.step(event, 1))
    assert raft.core.leader_id is None and raft.deadline_ms() is None
    assert not sends(effects, VoteRequest)


def test_it_follows_a_leader_that_it_could_not_find_itself() -> None:
    raft = started(QuorumState(epoch=5))
    assert sends(raft.step(begin(6), 10), QuorumFetchRequest)
    assert role_of(raft) is RaftRole.FOLLOWER


def in_flight(raft: Raft) -> int:
    return max(raft.core.outbox.in_flight)


def caught_up(high_watermark: int, span: EpochSpan) -> tuple[Raft, list[str]]:
    raft = follower(**LOG)
    raft.step(fetched(in_flight(raft), records=b"r", spans=(span,), high_watermark=high_watermark), 1)
    raft.step(LogWritten(span.end_offset), 2)
    return raft, names(raft.step(LogSynced(span.end_offset), 3))


@rule("kraft 1.15")
def test_it_votes_again_once_it_holds_what_is_committed_in_the_leaders_epoch() -> None:
    raft, effects = caught_up(12, EpochSpan(5, 10, 12))
    assert "RecordsRegained" in effects
    raft.step(PeerProvenDead(1, 5), 4)
    assert raft.deadline_ms() is not None
    assert granted(raft, epoch=6, last=(5, 12))


HELD_BACK = [
    ("the leader has committed more", 13, EpochSpan(5, 10, 12)),
    ("the leader has committed nothing of its own epoch", 10, EpochSpan(5, 10, 12)),
    ("the records are of an epoch before", 12, EpochSpan(4, 10, 12)),
    ("the leader does not know what is committed", -1, EpochSpan(5, 10, 12)),
]


@pytest.mark.parametrize(
    ("high_watermark", "span"), [case[1:] for case in HELD_BACK], ids=[case[0] for case in HELD_BACK]
)
def test_it_is_not_whole_before(high_watermark: int, span: EpochSpan) -> None:
    raft, effects = caught_up(high_watermark, span)
    assert "RecordsRegained" not in effects
    raft.step(PeerProvenDead(1, 5), 4)
    assert not granted(raft, epoch=6, last=(5, 12))


def test_records_that_are_not_synced_do_not_count() -> None:
    raft = follower(**LOG)
    effects = raft.step(fetched(in_flight(raft), records=b"r", spans=(EpochSpan(5, 10, 12),), high_watermark=12), 1)
    effects += raft.step(LogWritten(12), 2)
    assert "RecordsRegained" not in names(effects)


def test_a_leader_that_falls_silent_is_waited_for() -> None:
    raft = follower(**LOG)
    effects = raft.step(TimerFired(), CONFIG.fetch_timeout_ms + LATE_MS)
    assert role_of(raft) is RaftRole.UNATTACHED and not sends(effects, VoteRequest)
    assert sends(raft.step(begin(5), LATE_MS * 2), QuorumFetchRequest), "it says that it is alive"
