"""A high watermark waits for the next records while changes follow each other closely, and never for long."""

from __future__ import annotations

from typing import Any

import pytest
from raft_samples import CONFIG, fetch, leader

from quorumlog.messages.quorum import QuorumFetchResponse
from quorumlog_quorum.raft.effects import RaftEffect, ReadForFetch, Reply
from quorumlog_quorum.raft.events import (
    AppendRequested,
    ConfirmationRequested,
    LogSynced,
    LogWritten,
    RecordsRead,
    TimerFired,
)
from quorumlog_quorum.raft.high_watermark_pacing import GAP_MS, RUN, HighWatermarkPacing
from quorumlog_quorum.raft.raft import Raft
from quorumlog_quorum.raft.roles import Leader
from quorumlog_storage.rules.epochs import EpochStart
from tests.rules import rule

LOG: dict[str, Any] = {"end": 10, "epochs": (EpochStart(4, 0),)}


def answers(effects: list[RaftEffect]) -> list[tuple[int, int, bytes]]:
    """The token, high watermark and records of each answer to a fetch."""
    found = [(e.token, e.message) for e in effects if isinstance(e, Reply)]
    return [(t, m.high_watermark, bytes(m.records)) for t, m in found if isinstance(m, QuorumFetchResponse)]


def commit(raft: Raft, now_ms: int, known: int) -> list[RaftEffect]:
    """Append one record and let node 1 fetch past it. Returns what the leader does at that fetch, which has token 1.

    known: the high watermark that the fetch names.
    """
    raft.step(AppendRequested(5, [b"a"]), now_ms)
    end = raft.core.log.accepted_end
    raft.step(LogWritten(end), now_ms)
    raft.step(RecordsRead(1, b"records"), now_ms)
    raft.step(LogSynced(end), now_ms)
    return raft.step(fetch(end, 5, token=1, known=known), now_ms)


def after(commits: int, gap_ms: int) -> tuple[Raft, list[RaftEffect], int]:
    """A leader after so many commits, the first one that of its own first record. Node 1 is told each high watermark by
    the next records, or at once. Returns also what the leader did at the last commit, and its time."""
    raft = leader(**LOG)
    now_ms = 10
    effects = raft.step(fetch(11, 5, token=1, known=-1), now_ms)
    for _ in range(commits - 1):
        if answers(effects):
            raft.step(fetch(raft.core.log.accepted_end, 5, token=1, known=raft.core.high_watermark), now_ms)
        now_ms += gap_ms
        effects = commit(raft, now_ms, known=raft.core.high_watermark)
    return raft, effects, now_ms


@rule("kraft 4.15")
@pytest.mark.parametrize(
    ("commits", "gap_ms", "told"),
    [
        (1, 1, True),
        (RUN - 1, 1, True),
        (RUN, 1, False),
        (RUN + 5, 1, False),
        (RUN, GAP_MS, False),
        (RUN + 5, GAP_MS + 1, True),
    ],
)
def test_a_high_watermark_alone_is_told_at_once_unless_changes_follow_closely(
    commits: int, gap_ms: int, told: bool
) -> None:
    raft, effects, _ = after(commits, gap_ms)
    assert answers(effects) == ([(1, raft.core.high_watermark, b"")] if told else [])


def test_the_next_records_carry_it() -> None:
    raft, _, now_ms = after(RUN, 1)
    committed = raft.core.high_watermark
    raft.step(AppendRequested(5, [b"b"]), now_ms + 1)
    (read,) = raft.step(LogWritten(raft.core.log.accepted_end), now_ms + 1)
    assert isinstance(read, ReadForFetch)
    assert answers(raft.step(RecordsRead(1, b"records"), now_ms + 1)) == [(1, committed, b"records")]


@rule("kraft 4.16", "kraft 4.17")
def test_it_waits_no_longer_than_the_limit() -> None:
    raft, _, now_ms = after(RUN, 1)
    due_ms = now_ms + CONFIG.high_watermark_hold_ms
    assert raft.deadline_ms() == due_ms
    assert answers(raft.step(TimerFired(), due_ms - 1)) == []
    assert answers(raft.step(TimerFired(), due_ms)) == [(1, raft.core.high_watermark, b"")]


def test_a_read_does_not_wait_for_records() -> None:
    raft, _, now_ms = after(RUN, 1)
    assert answers(raft.step(ConfirmationRequested(5), now_ms)) == [(1, raft.core.high_watermark, b"")]


def test_the_pace() -> None:
    pace = HighWatermarkPacing()
    for turn in range(RUN):
        assert not pace.holds
        pace.note(turn, 10 * turn)
    assert pace.holds
    pace.note(RUN - 1, 10_000)
    assert pace.holds, "the high watermark did not rise"
    pace.note(RUN, 10_000)
    assert not pace.holds


def observed(observers: int, commits: int) -> tuple[Raft, int, int]:
    """A leader with so many observers amid commits that are 2 ms apart. Returns also the time of the last one,
    and how often the first observer was answered with records."""
    raft = leader(**LOG)
    raft.step(fetch(11, 5, token=1, known=-1), 10)
    ends = dict.fromkeys(range(100, 100 + observers), 11)
    for node in ends:
        raft.step(fetch(11, 5, replica=node, token=node, known=11), 10)
    now_ms, answered = 10, 0
    for _ in range(commits):
        now_ms += 2
        effects = raft.step(TimerFired(), now_ms)
        effects += commit(raft, now_ms, known=raft.core.high_watermark)
        for read in [one for one in effects if isinstance(one, ReadForFetch) and one.token in ends]:
            answered += read.token == 100
            for token, known, _ in answers(raft.step(RecordsRead(read.token, b"records"), now_ms)):
                raft.step(fetch(read.upper_bound, 5, replica=token, token=token, known=known), now_ms)
    return raft, now_ms, answered


@rule("kraft 4.20")
def test_few_observers_get_each_commit_and_many_get_rounds() -> None:
    _, _, each = observed(2, 60)
    raft, now_ms, rounds = observed(60, 60)
    assert each == 60
    assert rounds == 2, "60 observers: one round in 60 ms, which are 30 commits"
    role = raft.core.role
    assert isinstance(role, Leader) and role.watched_due_ms is not None
    assert now_ms < role.watched_due_ms <= now_ms + CONFIG.observer_round_ms(60), "the last commit waits for a round"
    while (due_ms := raft.deadline_ms() or 0) < role.watched_due_ms:
        raft.step(TimerFired(), due_ms)  # of the voter
    assert due_ms == role.watched_due_ms
    (read,) = [one for one in raft.step(TimerFired(), role.watched_due_ms) if isinstance(one, ReadForFetch)]
    assert read.upper_bound == raft.core.high_watermark
    told = answers(raft.step(RecordsRead(read.token, b"records"), due_ms))
    assert told == [(token, read.upper_bound, b"records") for token in range(100, 160)], "one read answers all of them"


def test_an_observer_that_is_behind_is_not_held_up_by_rounds() -> None:
    raft, now_ms, _ = observed(60, 60)
    (read,) = raft.step(fetch(11, 5, replica=200, token=200, known=-1), now_ms)
    assert isinstance(read, ReadForFetch) and read.upper_bound > 11


def test_a_round_is_never_long() -> None:
    assert CONFIG.observer_round_ms(2) <= 2
    assert CONFIG.observer_round_ms(10_000) == CONFIG.observer_round_max_ms < CONFIG.fetch_max_wait_ms
