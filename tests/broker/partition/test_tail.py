from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.ids import Offset
from quorumlog.messages.buffer import Buffer
from quorumlog_broker.partition.tail import MAX_BATCHES_READ, Tail, TailBudget, TailCount, TailRead, frame_bytes
from quorumlog_storage.segment.batch import StoredBatch
from tests.parts import few


def batch(base: int, count: int, size: int) -> StoredBatch:
    return stored(base, count, bytes([base % 256]) * size)


def stored(base: int, count: int, part: bytes | memoryview) -> StoredBatch:
    return StoredBatch((part,), len(part), base, base + count - 1, leader_epoch=0, max_timestamp=0)


def parts_of(tail: Tail, offset: Offset, max_bytes: int, upper_bound: Offset) -> list[Buffer] | None:
    found = tail.read(offset, max_bytes, upper_bound)
    return None if found is None else found.parts


def test_a_reader_at_the_end_gets_whole_batches_below_the_bound() -> None:
    tail = Tail(TailBudget(1000))
    tail.put([batch(0, 2, 10)], 10)
    tail.put([batch(2, 3, 10), batch(5, 1, 10)], 20)
    assert parts_of(tail, 3, 1000, 6) == [b"\x02" * 10, b"\x05" * 10]
    assert parts_of(tail, 0, 10, 6) == [b"\x00" * 10]
    assert parts_of(tail, 0, 1, 6) == [b"\x00" * 10]  # the first batch whatever the limit says
    assert parts_of(tail, 2, 1000, 4) == []  # it ends past the bound
    assert tail.read(6, 1000, 6) is None


CUTS = [
    ("all", 0, 1000, 6, 9, TailRead([b"\x00" * 10, b"\x02" * 20, b"\x05" * 10], 40, 3, False)),
    ("the bytes end", 0, 39, 6, 9, TailRead([b"\x00" * 10, b"\x02" * 20], 30, 2, True)),
    ("the bytes end exactly", 0, 40, 6, 9, TailRead([b"\x00" * 10, b"\x02" * 20, b"\x05" * 10], 40, 3, False)),
    ("the batches end", 0, 1000, 6, 2, TailRead([b"\x00" * 10, b"\x02" * 20], 30, 2, True)),
    ("the batches end exactly", 0, 1000, 6, 3, TailRead([b"\x00" * 10, b"\x02" * 20, b"\x05" * 10], 40, 3, False)),
    ("what is readable ends", 0, 1000, 5, 2, TailRead([b"\x00" * 10, b"\x02" * 20], 30, 2, False)),
    ("one that is too large", 3, 5, 6, 9, TailRead([b"\x02" * 20], 20, 1, True)),
]


@pytest.mark.parametrize(
    ("offset", "max_bytes", "bound", "max_batches", "want"), [c[1:] for c in CUTS], ids=[c[0] for c in CUTS]
)
def test_a_read_says_whether_a_limit_cut_it(
    offset: Offset, max_bytes: int, bound: Offset, max_batches: int, want: TailRead
) -> None:
    tail = Tail(TailBudget(1000))
    tail.put([batch(0, 2, 10)], 10)
    tail.put([batch(2, 3, 20), batch(5, 1, 10)], 30)
    assert tail.read(offset, max_bytes, bound, max_batches) == want


def test_a_read_takes_no_more_batches_than_a_turn_has_time_for() -> None:
    tail = Tail(TailBudget(1_000_000))
    tail.put([batch(offset, 1, 1) for offset in range(2 * MAX_BATCHES_READ)], 2 * MAX_BATCHES_READ)
    found = tail.read(0, 1_000_000, 1_000_000)
    assert found is not None and found.batches == MAX_BATCHES_READ and found.is_cut


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 60)), min_size=1, max_size=20),
    st.integers(0, 10),
    st.integers(0, 90),
    st.integers(0, 90),
)
@settings(max_examples=few(300), deadline=None)
def test_a_count_is_that_of_a_read_without_limits(
    batches: list[tuple[int, int]], dropped: int, offset: Offset, bound: Offset
) -> None:
    tail, next_offset = Tail(TailBudget(10_000)), 0
    for count, size in batches:
        tail.put([batch(next_offset, count, size)], size)
        next_offset += count
    for _ in range(min(dropped, len(batches))):
        tail.drop_oldest(tail._chunks[0])
    counted, found = tail.count(offset, bound), tail.read(offset, 1 << 40, bound)
    if found is None:
        assert counted is None
    else:
        assert counted == TailCount(found.size_bytes, found.batches, len(found.parts[0]) if found.parts else 0)


def test_the_oldest_of_any_partition_goes_first() -> None:
    budget = TailBudget(30)
    one, other = Tail(budget), Tail(budget)
    one.put([batch(0, 1, 10)], 10)
    other.put([batch(0, 1, 10)], 10)
    one.put([batch(1, 1, 10)], 10)
    other.put([batch(1, 1, 10)], 10)
    assert (one.start_offset, other.start_offset) == (1, 0)
    other.clear()
    assert budget.charged_bytes == 10
    one.put([batch(2, 1, 40)], 40)  # larger than the whole budget: nothing is kept
    assert one.read(2, 10, 3) is None and budget.charged_bytes == 0


def test_a_gap_drops_what_was_held() -> None:
    tail = Tail(TailBudget(1000))
    tail.put([batch(0, 1, 10)], 10)
    tail.put([batch(5, 1, 10)], 10)
    assert (tail.start_offset, tail.end_offset) == (5, 6)


def test_a_small_view_of_a_large_frame_is_copied_and_a_large_one_charged_whole() -> None:
    budget = TailBudget(10_000)
    tail = Tail(budget)
    frame = bytes(1000)
    small, large = memoryview(frame)[:100], memoryview(frame)[:500]
    tail.put([stored(0, 1, small)], frame_bytes(small))
    assert budget.charged_bytes == 100
    tail.put([stored(1, 1, large)], frame_bytes(large))
    assert budget.charged_bytes == 1100


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 4), st.integers(1, 60)), max_size=60), st.integers(0, 200))
@settings(max_examples=few(100), deadline=None)
def test_what_is_held_is_the_newest_and_within_the_budget(puts: list[tuple[int, int, int]], limit: int) -> None:
    budget = TailBudget(limit)
    tails = [Tail(budget), Tail(budget)]
    logs: list[list[StoredBatch]] = [[], []]
    arrived: list[tuple[int, StoredBatch]] = []
    for which, count, size in puts:
        new = batch(logs[which][-1].next_offset if logs[which] else 0, count, size)
        logs[which].append(new)
        arrived.append((which, new))
        tails[which].put([new], size)
        assert budget.charged_bytes <= limit
    kept: list[list[StoredBatch]] = [[], []]
    room = limit
    for which, one in reversed(arrived):
        room -= one.size
        if room < 0:
            break
        kept[which].insert(0, one)
    for which in (0, 1):
        expected_start = kept[which][0].base_offset if kept[which] else -1
        assert tails[which].start_offset == expected_start
        for one in kept[which]:
            wanted = [part for b in kept[which] if b.base_offset >= one.base_offset for part in b.parts]
            assert parts_of(tails[which], one.next_offset - 1, 10_000, 10_000) == wanted


def test_what_compaction_is_about_to_change_leaves_the_memory() -> None:
    budget = TailBudget(1000)
    tail = Tail(budget)
    for base in (0, 4, 8):
        tail.put([batch(base, 2, 10), batch(base + 2, 2, 10)], 20)
    tail.drop_before(0)
    assert tail.start_offset == 0
    tail.drop_before(6)  # in the middle of an append, which goes as a whole
    assert (tail.start_offset, tail.end_offset, budget.charged_bytes) == (8, 12, 20)
    assert tail.read(4, 1000, 12) is None and parts_of(tail, 8, 1000, 12) == [b"\x08" * 10, b"\x0a" * 10]
    tail.drop_before(12)
    assert tail.end_offset == -1 and budget.charged_bytes == 0
