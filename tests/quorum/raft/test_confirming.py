"""Confirmed reads: a read is answered only after a majority has followed this leader since it began (Raft 6.4)."""

from __future__ import annotations

from typing import Any

import pytest
from raft_samples import begin, fetch, fetched, follower, leader, names, role_of, sends, unattached

from quorumlog.messages.quorum import QuorumFetchRequest, QuorumFetchResponse
from quorumlog_quorum.raft.effects import LeadershipConfirmed, RaftEffect, Reply
from quorumlog_quorum.raft.events import ConfirmationRequested, TimerFired
from quorumlog_quorum.raft.raft import Raft
from quorumlog_quorum.raft.read_rounds import NONE_TOLD, UNKNOWN
from quorumlog_quorum.raft.roles import RaftRole
from quorumlog_storage.rules.epochs import EpochStart
from tests.rules import rule

LOG: dict[str, Any] = {"end": 10, "epochs": (EpochStart(4, 0),)}  # LeaderChange is at 10, so the log ends at 11


def settled(effects: list[RaftEffect]) -> list[tuple[int, bool]]:
    return [(e.token, e.confirmed) for e in effects if isinstance(e, LeadershipConfirmed)]


def claimed(voters: int = 3) -> Raft:
    """A leader whose first record is committed, and whose followers' fetches are parked."""
    raft = leader(voters=voters, **LOG)
    for replica in range(1, voters):
        raft.step(fetch(11, 5, replica=replica, token=replica, known=11), 1)
    assert raft.core.high_watermark == 11
    return raft


@rule("kraft 3.27")
def test_a_read_answers_the_parked_fetches_and_waits_for_the_next_ones() -> None:
    raft = claimed()
    effects = raft.step(ConfirmationRequested(7), 2)
    replies = [e.message for e in effects if isinstance(e, Reply)]
    assert [reply.read_round for reply in replies if isinstance(reply, QuorumFetchResponse)] == [1, 1]
    assert settled(effects) == []
    assert settled(raft.step(fetch(11, 5, replica=2, known=11, round_named=1), 3)) == [(7, True)]


@rule("kraft 3.28")
def test_a_fetch_that_was_sent_before_the_read_proves_nothing() -> None:
    """It may have been under way while its sender elected another leader. It is answered at once instead."""
    raft = claimed()
    raft.step(ConfirmationRequested(7), 2)
    effects = raft.step(fetch(11, 5, replica=1, token=9, known=11), 3)
    assert settled(effects) == []
    assert [e.token for e in effects if isinstance(e, Reply)] == [9]


@rule("kraft 3.33")
def test_a_fetch_of_software_without_rounds_confirms_what_was_asked_before_it_came() -> None:
    """Otherwise nothing could be described while a cluster is upgraded. Such a fetch is parked as any other."""
    raft = claimed()
    raft.step(ConfirmationRequested(7), 2)
    effects = raft.step(fetch(11, 5, replica=1, token=9, known=11, round_named=UNKNOWN), 3)
    assert settled(effects) == [(7, True)] and "Reply" not in [type(effect).__name__ for effect in effects]
    effects = raft.step(ConfirmationRequested(8), 4)
    assert settled(effects) == [] and [e.token for e in effects if isinstance(e, Reply)] == [9]
    assert settled(raft.step(fetch(11, 5, replica=1, token=10, known=11, round_named=UNKNOWN), 5)) == [(8, True)]


@rule("kraft 3.27")
def test_each_read_waits_for_its_own_round() -> None:
    raft = claimed()
    raft.step(ConfirmationRequested(7), 2)
    raft.step(ConfirmationRequested(8), 2)
    assert settled(raft.step(fetch(11, 5, replica=1, known=11, round_named=1), 3)) == [(7, True)]
    assert settled(raft.step(fetch(11, 5, replica=1, known=11, round_named=2), 4)) == [(8, True)]


def test_one_fetch_confirms_all_reads_that_began_before_its_round() -> None:
    raft = claimed()
    for token in (7, 8, 9):
        raft.step(ConfirmationRequested(token), 2)
    effects = raft.step(fetch(11, 5, replica=1, known=11, round_named=3), 3)
    assert settled(effects) == [(7, True), (8, True), (9, True)]


@rule("kraft 3.27")
def test_five_voters_need_two_others() -> None:
    raft = claimed(voters=5)
    raft.step(ConfirmationRequested(7), 2)
    assert settled(raft.step(fetch(11, 5, replica=1, known=11, round_named=1), 3)) == []
    assert settled(raft.step(fetch(11, 5, replica=1, known=11, round_named=1), 3)) == []
    assert settled(raft.step(fetch(11, 5, replica=4, known=11, round_named=1), 4)) == [(7, True)]


@rule("kraft 3.31")
def test_observers_confirm_nothing_and_stay_parked() -> None:
    raft = claimed()
    raft.step(fetch(11, 5, replica=7, token=70, known=11), 2)
    effects = raft.step(ConfirmationRequested(7), 2)
    assert 70 not in [e.token for e in effects if isinstance(e, Reply)]
    assert settled(raft.step(fetch(11, 5, replica=7, token=71, known=11, round_named=1), 3)) == []


@rule("kraft 3.29")
def test_a_round_that_never_began_is_ignored() -> None:
    raft = claimed()
    raft.step(fetch(11, 5, replica=1, known=11, round_named=99), 2)
    assert settled(raft.step(ConfirmationRequested(7), 3)) == []


@rule("kraft 3.31")
def test_a_single_voter_is_its_own_majority() -> None:
    assert settled(leader(voters=1, **LOG).step(ConfirmationRequested(7), 1)) == [(7, True)]


@rule("kraft 3.30")
def test_a_leader_confirms_nothing_before_a_record_of_its_epoch_is_committed() -> None:
    """It may not know yet what its predecessor has committed."""
    raft = leader(**LOG)
    raft.step(ConfirmationRequested(7), 1)
    assert settled(raft.step(fetch(10, 4, replica=1, round_named=1), 2)) == []
    assert settled(raft.step(fetch(11, 5, replica=1, round_named=1), 3)) == [(7, True)]


@rule("kraft 3.32")
@pytest.mark.parametrize("node", [follower, lambda: leader(voters=3)], ids=["follower", "leader that resigns"])
def test_reads_fail_where_nobody_leads(node: Any) -> None:
    raft = node()
    effects = raft.step(ConfirmationRequested(7), 1)
    if role_of(raft) is RaftRole.LEADER:
        effects = raft.step(TimerFired(), 1_500)
    assert settled(effects) == [(7, False)]


@rule("kraft 3.29")
def test_a_follower_names_the_newest_round_that_its_leader_told_it() -> None:
    raft = follower(1)
    (first,) = raft.core.outbox.in_flight
    (second,) = sends(raft.step(fetched(first, read_round=4), 1), QuorumFetchRequest)
    assert isinstance(second.message, QuorumFetchRequest) and second.message.read_round == 4
    (third,) = sends(raft.step(fetched(second.correlation, read_round=3), 2), QuorumFetchRequest)
    assert isinstance(third.message, QuorumFetchRequest) and third.message.read_round == 4


@rule("kraft 3.28")
def test_a_follower_whose_leader_has_begun_no_round_does_not_pass_for_older_software() -> None:
    """Its next fetch may be under way when the first round begins, so it must not count for that round."""
    raft = unattached()
    (first,) = sends(raft.step(begin(6), 1), QuorumFetchRequest)
    (second,) = sends(raft.step(fetched(first.correlation, epoch=6, read_round=0), 2), QuorumFetchRequest)
    assert isinstance(second.message, QuorumFetchRequest) and second.message.read_round == NONE_TOLD


@rule("kraft 3.29")
def test_rounds_of_an_earlier_leader_are_forgotten() -> None:
    raft = follower(1)
    (first,) = raft.core.outbox.in_flight
    raft.step(fetched(first, read_round=4), 1)
    raft.core.become_follower(6, 2, 2)
    effects = raft.step(TimerFired(), 2)
    (sent,) = sends(effects, QuorumFetchRequest)
    assert isinstance(sent.message, QuorumFetchRequest) and sent.message.read_round == NONE_TOLD
    assert "LeadershipConfirmed" not in names(effects)
