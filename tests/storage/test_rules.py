"""The fetch rule and the commit rule: tables from KIP-320 and KRaft, and two logs that must come to agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.ids import NO_EPOCH, Offset
from quorumlog_storage.rules.commit_rule import high_watermark
from quorumlog_storage.rules.epochs import EpochStart, LeaderEpochCache
from quorumlog_storage.rules.fetch_rule import (
    BOOTSTRAP,
    Diverging,
    FetchAnswer,
    OutOfRange,
    Records,
    SnapshotId,
    TakeSnapshot,
    fetch_answer,
    truncation_point,
)
from tests.rules import rule

EPOCHS = LeaderEpochCache([EpochStart(2, 10), EpochStart(4, 20), EpochStart(7, 30)])

FETCHES: list[tuple[str, int, int, FetchAnswer]] = [
    ("at the end of the latest epoch", 40, 7, Records()),
    ("inside an epoch", 25, 4, Records()),
    ("at an epoch's end, not yet in the next", 30, 4, Records()),
    ("past the end of an older epoch", 31, 4, Diverging(4, 30)),
    ("past our end", 41, 7, Diverging(7, 40)),
    ("an epoch we never had", 25, 5, Diverging(4, 30)),
    ("an epoch above all", 40, 9, Diverging(7, 40)),
    ("an epoch below the first", 12, 1, Diverging(1, 10)),
    ("at the start, older epoch", 10, 1, Records()),
    ("before the start", 9, 2, OutOfRange(10, 40)),
    ("no epoch, in range", 25, NO_EPOCH, Records()),
    ("no epoch, at the end", 40, NO_EPOCH, Records()),
    ("no epoch, past the end", 41, NO_EPOCH, OutOfRange(10, 40)),
]


@pytest.mark.parametrize(("offset", "epoch", "want"), [c[1:] for c in FETCHES], ids=[c[0] for c in FETCHES])
def test_fetch_without_snapshot(offset: int, epoch: int, want: FetchAnswer) -> None:
    got = fetch_answer(log_start=10, log_end=40, epochs=EPOCHS, fetch_offset=offset, last_fetched_epoch=epoch)
    assert got == want


SNAPSHOT_FETCHES: list[tuple[str, int, int, FetchAnswer]] = [
    ("an empty asker", 0, NO_EPOCH, TakeSnapshot(25, 4)),
    ("before the start", 5, 1, TakeSnapshot(25, 4)),
    ("at the start with the snapshot's epoch", 10, 1, Records()),
    ("at the start with another epoch", 10, 0, TakeSnapshot(25, 4)),
    ("at the start without an epoch", 10, NO_EPOCH, TakeSnapshot(25, 4)),
    ("an epoch from before the oldest snapshot", 15, 0, TakeSnapshot(25, 4)),
    ("on the log", 25, 4, Records()),
    ("diverging", 35, 4, Diverging(4, 30)),
]


@pytest.mark.parametrize(
    ("offset", "epoch", "want"), [c[1:] for c in SNAPSHOT_FETCHES], ids=[c[0] for c in SNAPSHOT_FETCHES]
)
def test_fetch_with_snapshots(offset: int, epoch: int, want: FetchAnswer) -> None:
    got = fetch_answer(
        log_start=10,
        log_end=40,
        epochs=EPOCHS,
        fetch_offset=offset,
        last_fetched_epoch=epoch,
        snapshot=SnapshotId(25, 4),
        oldest_snapshot=SnapshotId(10, 1),
    )
    assert got == want


def test_the_bootstrap_snapshot_is_never_offered() -> None:
    got = fetch_answer(
        log_start=0, log_end=40, epochs=EPOCHS, fetch_offset=0, last_fetched_epoch=NO_EPOCH, snapshot=BOOTSTRAP
    )
    assert got == Records()


TRUNCATIONS = [
    ("same epoch, the source is shorter", Diverging(7, 35), 35),
    ("same epoch, ours is shorter", Diverging(4, 99), 30),
    ("an epoch that only the source has", Diverging(5, 33), 30),
    ("an epoch before all of ours", Diverging(1, 7), 7),
    ("an epoch that only the source has, ended before ours", Diverging(5, 22), 22),
    ("a source without records", Diverging(NO_EPOCH, 0), 0),
]


@rule("storage 6.4", "log 1.13")
@pytest.mark.parametrize(("diverging", "want"), [c[1:] for c in TRUNCATIONS], ids=[c[0] for c in TRUNCATIONS])
def test_truncation_point(diverging: Diverging, want: Offset) -> None:
    assert truncation_point(EPOCHS, 40, diverging) == want


def cache_of(log: list[int]) -> LeaderEpochCache:
    cache = LeaderEpochCache()
    for offset, epoch in enumerate(log):
        cache.assign(epoch, offset)
    return cache


def histories() -> st.SearchStrategy[tuple[list[int], list[int]]]:
    """Two logs as lists of epochs, made as Raft makes them: an epoch has one writer, so it is a prefix of one run."""

    @st.composite
    def build(draw: st.DrawFn) -> tuple[list[int], list[int]]:
        logs: list[list[int]] = [[], []]
        for epoch in range(1, draw(st.integers(1, 7))):
            leader = draw(st.integers(0, 1))
            size = draw(st.integers(0, 4))
            if draw(st.booleans()):
                logs[1 - leader] = [*logs[leader], *[epoch] * draw(st.integers(0, size))]
            logs[leader] += [epoch] * size
        return logs[0], logs[1]

    return build()


@rule("storage 6.4", "log 1.7", "log 1.15", "log 1.17")
@given(histories())
def test_a_follower_comes_to_hold_its_leaders_log(logs: tuple[list[int], list[int]]) -> None:
    leader, follower = logs
    common = next((n for n, (a, b) in enumerate(zip(leader, follower, strict=False)) if a != b), None)
    common = min(len(leader), len(follower)) if common is None else common
    for _ in range(30):
        answer = fetch_answer(
            log_start=0,
            log_end=len(leader),
            epochs=cache_of(leader),
            fetch_offset=len(follower),
            last_fetched_epoch=follower[-1] if follower else NO_EPOCH,
        )
        if answer == Records():
            follower = [*follower, *leader[len(follower) :]]
            break
        assert isinstance(answer, Diverging)
        cut = truncation_point(cache_of(follower), len(follower), answer)
        assert common <= cut < len(follower), "truncates, and never what both hold"
        follower = follower[:cut]
    assert follower == leader


CASES = [("one voter", [7], 1, 7), ("slowest of two", [7, 3], 2, 3), ("median of three", [9, 5, 2], 2, 5)]


@pytest.mark.parametrize(("offsets", "required", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_high_watermark(offsets: list[Offset], required: int, want: Offset) -> None:
    assert high_watermark(offsets, required) == want


@given(st.lists(st.integers(0, 50), min_size=1, max_size=7), st.data())
def test_high_watermark_agrees_with_counting(offsets: list[Offset], data: st.DataObject) -> None:
    required = data.draw(st.integers(1, len(offsets)))
    assert high_watermark(offsets, required) == max(o for o in offsets if sum(p >= o for p in offsets) >= required)


@pytest.mark.parametrize("required", [0, 3])
def test_a_quorum_larger_than_the_set_is_our_own_mistake(required: int) -> None:
    with pytest.raises(AssertionError):
        high_watermark([1, 2], required)
