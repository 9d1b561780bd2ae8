from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.partition.tail import Tail, TailBudget, frame_bytes
from storage.batch import StoredBatch


def batch(base: int, count: int, size: int) -> StoredBatch:
    return stored(base, count, bytes([base % 256]) * size)


def stored(base: int, count: int, part: bytes | memoryview) -> StoredBatch:
    return StoredBatch((part,), len(part), base, base + count - 1, leader_epoch=0, max_timestamp=0)


def test_a_reader_at_the_end_gets_whole_batches_below_the_bound() -> None:
    tail = Tail(TailBudget(1000))
    tail.put([batch(0, 2, 10)], 10)
    tail.put([batch(2, 3, 10), batch(5, 1, 10)], 20)
    assert tail.read(3, 1000, 6) == [b"\x02" * 10, b"\x05" * 10]
    assert tail.read(0, 10, 6) == [b"\x00" * 10]
    assert tail.read(0, 1, 6) == [b"\x00" * 10]  # the first batch whatever the limit says
    assert tail.read(2, 1000, 4) == []  # it ends past the bound
    assert tail.read(6, 1000, 6) is None


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
@settings(max_examples=100, deadline=None)
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
            assert tails[which].read(one.next_offset - 1, 10_000, 10_000) == wanted
