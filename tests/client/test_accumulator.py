"""The accumulator: order, batching, limits and exactly one end per batch, against a plain model."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.client.batches.accumulator import Accumulator, Batch, record_bytes
from quorumlog.records import BATCH_OVERHEAD, Codec, Row, decode_batch, headers, lay_out_rows
from tests.parts import few


def make(**limits: Any) -> Accumulator:
    return Accumulator(**{"batch_size": 1000, "buffer_memory": 10_000, "delivery_timeout_ms": 500, **limits})


def add(
    accumulator: Accumulator, value: bytes, *, partition: int = 0, now_ms: int = 0, ended: list[Batch] | None = None
) -> Batch:
    done = (ended if ended is not None else []).append
    batch, _, _ = accumulator.append(
        "t", partition, 7, None, value, (), size=record_bytes(None, value, ()), now_ms=now_ms, on_done=done
    )
    return batch


TEXT = st.text(max_size=80)
BYTES = st.one_of(st.none(), st.binary(max_size=200))
ROWS = st.tuples(st.integers(0, 2**62), BYTES, BYTES, st.lists(st.tuples(TEXT, BYTES), max_size=4).map(tuple))


@given(st.lists(ROWS, min_size=1, max_size=8))
def test_a_batch_is_never_larger_than_its_records_were_counted(rows: list[Row]) -> None:
    bound = BATCH_OVERHEAD + sum(record_bytes(key, value, pairs) for _, key, value, pairs in rows)
    assert len(lay_out_rows(rows).seal(1, 2, 3)) <= bound


def test_a_record_of_nothing_but_long_counts_is_within_its_bound() -> None:
    """The timestamp is 2**62 ms after the first of its batch, so the delta takes nine bytes."""
    rows: list[Row] = [(0, None, None, ()), (2**62, None, None, ())]
    assert len(lay_out_rows(rows).buffer) - len(lay_out_rows(rows[:1]).buffer) <= record_bytes(None, None, ())


def test_records_join_until_the_batch_is_full() -> None:
    accumulator = make(batch_size=BATCH_OVERHEAD + 2 * record_bytes(None, b"xx", ()))
    batches = [add(accumulator, b"xx") for _ in range(5)]
    assert [batches.index(batch) for batch in batches] == [0, 0, 2, 2, 4]


def test_a_batch_in_flight_takes_no_records_and_holds_back_the_next() -> None:
    accumulator = make()
    first = add(accumulator, b"a")
    assert list(accumulator.sendable(0)) == [("t", 0)]
    assert accumulator.take(("t", 0)) is first
    second = add(accumulator, b"b")
    assert second is not first and list(accumulator.sendable(0)) == []
    accumulator.delivered(first, 10)
    assert accumulator.take(("t", 0)) is second


def test_a_retry_goes_before_later_batches_and_waits_for_its_backoff() -> None:
    accumulator = make()
    first = add(accumulator, b"a")
    accumulator.take(("t", 0))
    add(accumulator, b"b")
    accumulator.retry(first, not_before_ms=100)
    assert list(accumulator.sendable(99)) == []
    assert accumulator.next_due_ms() == 100
    assert accumulator.take(("t", 0)) is first and first.attempts == 2


def test_a_retried_batch_is_sent_as_it_was() -> None:
    accumulator = make()
    batch = add(accumulator, b"a")
    accumulator.take(("t", 0))
    data = batch.encode(Codec.NONE)
    accumulator.retry(batch, 0)
    assert add(accumulator, b"b") is not batch
    assert batch.encode(Codec.NONE) is data
    assert (batch.records, batch.count) == ([], 1), "held once"


def test_an_expired_batch_is_given_up_once() -> None:
    accumulator = make(delivery_timeout_ms=100)
    ended: list[Batch] = []
    add(accumulator, b"a", ended=ended)
    accumulator.give_up_expired(99, lambda _: RuntimeError())
    assert ended == []
    accumulator.give_up_expired(100, lambda _: RuntimeError())
    accumulator.give_up_expired(200, lambda _: RuntimeError())
    assert len(ended) == 1 and isinstance(ended[0].error, RuntimeError)
    assert accumulator.buffered_bytes == 0 and accumulator.unfinished == 0


def test_the_partition_that_waited_longest_is_sent_first() -> None:
    """In the order of first use, the first of many partitions would fill every request of a busy producer."""
    accumulator = make(batch_size=BATCH_OVERHEAD + record_bytes(None, b"a", ()))
    for partition in (0, 1, 2, 0):
        add(accumulator, b"a", partition=partition)
    assert list(accumulator.sendable(0)) == [("t", 0), ("t", 1), ("t", 2)]
    first = accumulator.take(("t", 0))
    accumulator.delivered(first, 0)
    assert list(accumulator.sendable(0)) == [("t", 1), ("t", 2), ("t", 0)]


def test_partitions_without_waiting_batches_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a producer with 1,000 partitions looked at all of them before each request."""
    accumulator, looks = make(), 0
    for partition in range(1_000):
        accumulator.delivered(take_new(accumulator, partition), 0)
    add(accumulator, b"a", partition=7)
    due_ms = accumulator._due_ms

    def counted(*given: Any) -> int | None:
        nonlocal looks
        looks += 1
        return due_ms(*given)

    monkeypatch.setattr(accumulator, "_due_ms", counted)
    assert list(accumulator.sendable(0)) == [("t", 7)] and accumulator.next_due_ms() == 0
    assert looks == 2


@settings(max_examples=few(60))
@given(st.integers(0, 1 << 32))
def test_the_waiting_partitions_are_those_with_a_waiting_batch(seed: int) -> None:
    """Compared with a look at every partition that was ever used."""
    rng, accumulator, now_ms = random.Random(seed), make(delivery_timeout_ms=50), 0
    under_way: list[Batch] = []
    for _ in range(150):
        step = rng.choice(["add", "add", "take", "take", "delivered", "retry", "later"])
        if step == "add":
            add(accumulator, b"a", partition=rng.randrange(6), now_ms=now_ms)
        elif step == "take" and (due := list(accumulator.sendable(now_ms))):
            under_way.append(accumulator.take(rng.choice(due)))
        elif step in ("delivered", "retry") and under_way:
            batch = under_way.pop(rng.randrange(len(under_way)))
            accumulator.delivered(batch, 0) if step == "delivered" else accumulator.retry(batch, now_ms + 3)
        elif step == "later":
            now_ms += rng.choice([1, 20])
            accumulator.give_up_expired(now_ms, lambda _: TimeoutError())
        wanted = {key for key, queue in accumulator._queues.items() if queue.waiting}
        assert set(accumulator._waiting) == wanted and (accumulator.next_due_ms() is None) == (not wanted)
    accumulator.fail_all(lambda _: TimeoutError(), under_way=True)
    assert not accumulator._waiting and accumulator.buffered_bytes == 0


def take_new(accumulator: Accumulator, partition: int) -> Batch:
    add(accumulator, b"a", partition=partition)
    return accumulator.take(("t", partition))


def test_linger_delays_a_batch_unless_a_flush_runs() -> None:
    accumulator = make(linger_ms=50)
    add(accumulator, b"a")
    assert list(accumulator.sendable(49)) == []
    assert list(accumulator.sendable(49, flushing=True)) == [("t", 0)]
    assert list(accumulator.sendable(50)) == [("t", 0)]


@pytest.mark.parametrize(
    ("unknown", "failed", "duplicated"), [(0, False, False), (1, False, True), (1, True, False), (2, True, True)]
)
def test_a_duplicate_needs_an_unknown_try_besides_the_final_one(unknown: int, failed: bool, duplicated: bool) -> None:
    batch = Batch("t", 0, 0, lambda _: None, unknown_outcomes=unknown, error=RuntimeError() if failed else None)
    assert batch.may_be_duplicated is duplicated


@given(st.lists(st.tuples(st.sampled_from("atdrf"), st.integers(0, 2), st.binary(max_size=200)), max_size=60))
def test_every_record_ends_once_and_in_order(steps: list[tuple[str, int, bytes]]) -> None:
    """Against a model: each partition delivers its records in the order of appending, in spite of retries."""
    accumulator = make(buffer_memory=10**9, delivery_timeout_ms=10**9)
    appended: dict[int, list[bytes]] = {0: [], 1: [], 2: []}
    logged: dict[int, list[bytes]] = {0: [], 1: [], 2: []}
    under_way: dict[int, Batch] = {}
    ended: list[Batch] = []

    def deliver(batch: Batch) -> None:
        data = batch.encode(Codec.NONE)
        (header,) = headers(data)
        logged[batch.partition] += [record.value or b"" for record in decode_batch(data, header)]
        accumulator.delivered(batch, 0)

    for step, partition, value in steps:
        if step == "a":
            add(accumulator, value, partition=partition, ended=ended)
            appended[partition].append(value)
        elif step == "t" and ("t", partition) in list(accumulator.sendable(0)):
            under_way[partition] = accumulator.take(("t", partition))
        elif step == "d" and partition in under_way:
            deliver(under_way.pop(partition))
        elif step in "rf" and partition in under_way:
            accumulator.retry(under_way.pop(partition), 0)
    for batch in under_way.values():
        deliver(batch)
    while keys := list(accumulator.sendable(0)):
        deliver(accumulator.take(keys[0]))
    assert logged == appended
    assert len(ended) == len(set(map(id, ended))) and accumulator.unfinished == 0 and accumulator.buffered_bytes == 0
