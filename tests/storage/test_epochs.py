"""The leader epoch cache against the scenarios of KIP-101 and KIP-279 (docs/log-scenarios.md, "Leader epochs")."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.ids import NO_EPOCH
from quorumlog_storage.files.text_checkpoint import CorruptCheckpoint
from quorumlog_storage.rules.epochs import EpochEnd, EpochStart, LeaderEpochCache
from tests.rules import rule

Pairs = list[tuple[int, int]]


def cache_of(pairs: Pairs) -> LeaderEpochCache:
    return LeaderEpochCache(EpochStart(*pair) for pair in pairs)


def pairs_of(cache: LeaderEpochCache) -> Pairs:
    return [(entry.epoch, entry.start_offset) for entry in cache.entries]


ASSIGN: list[tuple[str, Pairs, Pairs]] = [
    ("the first start of an epoch stays", [(2, 10), (2, 20)], [(2, 10)]),
    ("an earlier start of the last epoch wins", [(2, 10), (2, 7)], [(2, 7)]),
    ("a lower epoch removes higher ones behind it", [(2, 10), (3, 15), (2, 20)], [(2, 10)]),
    ("a lower epoch at a later offset", [(1, 5), (3, 15), (2, 20)], [(1, 5), (2, 20)]),
    ("a start before the last one removes it", [(4, 9), (5, 7)], [(5, 7)]),
    ("an equal start replaces", [(2, 9), (3, 9)], [(3, 9)]),
    ("epochs need not begin at 0", [(7, 0), (9, 4), (12, 8)], [(7, 0), (9, 4), (12, 8)]),
]


@rule("storage 6.1", "log 1.1", "log 1.2", "log 1.3")
@pytest.mark.parametrize(("assigned", "want"), [c[1:] for c in ASSIGN], ids=[c[0] for c in ASSIGN])
def test_assign(assigned: Pairs, want: Pairs) -> None:
    assert pairs_of(cache_of(assigned)) == want


THREE: Pairs = [(2, 10), (4, 20), (7, 30)]
END: list[tuple[str, Pairs, int, tuple[int, int] | None]] = [
    ("latest ends at the log's end", THREE, 7, (7, 44)),
    ("an older one ends where the next begins", THREE, 4, (4, 30)),
    ("a missing middle one: the floor", THREE, 5, (4, 30)),
    ("below the first: itself, the first start", THREE, 1, (1, 10)),
    ("above the latest: unknown", THREE, 8, None),
    ("none: unknown", THREE, NO_EPOCH, None),
    ("empty cache: unknown", [], 0, None),
]


@rule("storage 6.2", "log 1.4", "log 1.5", "log 1.6")
@pytest.mark.parametrize(("entries", "epoch", "want"), [c[1:] for c in END], ids=[c[0] for c in END])
def test_end_offset(entries: Pairs, epoch: int, want: tuple[int, int] | None) -> None:
    assert cache_of(entries).end_offset_for(epoch, 44) == (EpochEnd(*want) if want else None)


FROM_START: list[tuple[str, int, Pairs]] = [
    ("between two moves the first", 15, [(2, 15), (4, 20), (7, 30)]),
    ("at an exact start keeps it", 20, [(4, 20), (7, 30)]),
    ("at the first start does nothing", 10, THREE),
    ("above all keeps the latest, moved", 99, [(7, 99)]),
    ("below the first does nothing", 3, THREE),
    ("negative does nothing", -1, THREE),
]


@rule("storage 6.2", "log 1.8")
@pytest.mark.parametrize(("offset", "want"), [c[1:] for c in FROM_START], ids=[c[0] for c in FROM_START])
def test_truncate_from_start(offset: int, want: Pairs) -> None:
    cache = cache_of(THREE)
    assert cache.truncate_from_start(offset) == (want != THREE)
    assert pairs_of(cache) == want


FROM_END: list[tuple[str, int, Pairs]] = [
    ("between epochs drops the newer", 25, THREE[:2]),
    ("at a boundary drops that epoch", 20, THREE[:1]),
    ("before all drops all", 10, []),
    ("past the last start keeps all", 31, THREE),
    ("-1 does nothing", -1, THREE),
]


@rule("storage 6.2", "log 1.9")
@pytest.mark.parametrize(("offset", "want"), [c[1:] for c in FROM_END], ids=[c[0] for c in FROM_END])
def test_truncate_from_end(offset: int, want: Pairs) -> None:
    cache = cache_of(THREE)
    assert cache.truncate_from_end(offset) == (want != THREE)
    assert pairs_of(cache) == want


@rule("log 1.9")
def test_truncating_an_empty_cache_does_nothing() -> None:
    cache = LeaderEpochCache()
    assert not cache.truncate_from_end(0) and not cache.truncate_from_start(5)


@rule("log 1.11")
@pytest.mark.parametrize(("offset", "want"), [(9, None), (10, 2), (19, 2), (20, 4), (30, 7), (1000, 7)])
def test_epoch_for_offset(offset: int, want: int | None) -> None:
    assert cache_of(THREE).epoch_for(offset) == want


@rule("storage 10.3", "log 1.10")
def test_a_checkpoint_is_kafkas_text_and_reads_back_equal() -> None:
    content = cache_of(THREE).render()
    assert content == b"0\n3\n2 10\n4 20\n7 30\n"
    assert LeaderEpochCache.parse("f", content).entries == cache_of(THREE).entries


@pytest.mark.parametrize("content", [b"", b"0\n", b"0", b"0\n0\n"])
def test_an_empty_checkpoint_holds_nothing(content: bytes) -> None:
    assert LeaderEpochCache.parse("f", content).entries == ()


BAD = [
    (b"1\n0\n", 1),
    (b"0\n2\n1 1\n", 2),
    (b"0\nx\n", 2),
    (b"0\n1\n1\n", 3),
    (b"0\n1\n1 2 3\n", 3),
    (b"0\n1\n 1_0 2\n", 3),
    ("0\n1\n١ 2\n".encode(), 3),
    (b"0\n2\n2 5\n1 9\n", 4),
    (b"0\n2\n2 5\n3 5\n", 4),
    (b"0\n1\n-1 5\n", 3),
    (b"0\n1\n1 99999999999999999999\n", 3),
    (b"0\n1\n1 9223372036854775808\n", 3),
    (b"0\n1\n\xff 1\n", 3),
]


@pytest.mark.parametrize(("content", "line"), BAD)
def test_a_bad_checkpoint_says_where(content: bytes, line: int) -> None:
    with pytest.raises(CorruptCheckpoint) as caught:
        LeaderEpochCache.parse("f", content)
    assert caught.value.line == line


@rule("storage 6.1")
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), max_size=12), st.integers(-1, 10))
def test_columns_increase_and_the_end_agrees_with_a_search(assigned: Pairs, epoch: int) -> None:
    cache = cache_of(assigned)
    entries = pairs_of(cache)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(entries))
    known = [e for e, _ in entries if e <= epoch]
    later = [start for e, start in entries if e > epoch]
    want = None
    if epoch >= 0 and entries and epoch <= entries[-1][0]:
        want = EpochEnd(max(known, default=epoch), min(later, default=99))
    assert cache.end_offset_for(epoch, 99) == want


@given(st.one_of(st.binary(max_size=60), st.text("01 -\n9x", max_size=40).map(str.encode)))
def test_any_bytes_give_entries_or_a_typed_error(content: bytes) -> None:
    try:
        cache = LeaderEpochCache.parse("f", content)
    except CorruptCheckpoint:
        return
    assert LeaderEpochCache.parse("f", cache.render()).entries == cache.entries
