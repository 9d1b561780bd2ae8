"""The accumulator with sequence numbers, against the worst network: requests overtake, get lost, and arrive late.

The broker is the sequence check of ours and Kafka's (storage/quorumlog_storage/producers/producer_state.py) in front of
a list.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.client.batches.accumulator import Accumulator, Batch, record_bytes
from quorumlog.client.batches.numbering import MAX_PRODUCER_EPOCH, Identity, Number, Numbering
from quorumlog.errors import ApiError
from quorumlog.records import BATCH_OVERHEAD, Buffer, Codec, decode_batch, headers
from quorumlog_storage.producers.producer_state import ProducerStates, check
from tests.parts import few

KEY = ("t", 0)
RECORD_BYTES = record_bytes(None, bytes(100), ())
TWO_RECORDS = BATCH_OVERHEAD + 2 * RECORD_BYTES


@dataclass
class Broker:
    values: list[int] = field(default_factory=list)
    states: ProducerStates = field(default_factory=ProducerStates)

    def take(self, data: Buffer) -> int:
        """Returns the base offset. Raises ApiError."""
        (header,) = headers(data)
        repeated = check(self.states.entries.get(header.producer_id), header)
        if repeated is not None:
            return repeated.base_offset
        base = len(self.values)
        self.states.note(replace(header, base_offset=base))
        self.values += [int(record.value or b"") for record in decode_batch(data, header)]
        return base


class World:
    """One producer and one partition. Batches hold two records."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.accumulator = Accumulator(
            batch_size=TWO_RECORDS, buffer_memory=10**9, delivery_timeout_ms=10**9, idempotent=True
        )
        self.accumulator.identity = Identity(7, 0)
        self.broker = Broker()
        self.under_way: list[tuple[Batch, Buffer]] = []
        self.stragglers: list[Buffer] = []
        self.ended: list[Batch] = []
        self.written = 0

    def append(self) -> None:
        for _ in range(2):
            self.accumulator.append(
                *KEY, 7, None, b"%0100d" % self.written, (), size=RECORD_BYTES, now_ms=0, on_done=self.ended.append
            )
            self.written += 1

    def send(self) -> None:
        if KEY in list(self.accumulator.sendable(0, flushing=True)):
            batch = self.accumulator.take(KEY)
            self.under_way.append((batch, batch.encode(Codec.NONE)))

    def arrive(self) -> None:
        """Any request in flight, in any order."""
        if not self.under_way:
            return
        batch, data = self.under_way.pop(self.rng.randrange(len(self.under_way)))
        how = self.rng.choice(["answered", "answered", "refused", "answer lost", "lost", "late"])
        if how == "late":
            self.stragglers.append(data)
        if how in ("answered", "answer lost"):
            try:
                base = self.broker.take(data)
            except ApiError:
                self.accumulator.retry(batch, 0, out_of_order=how == "answered")
                return
            if how == "answered":
                self.accumulator.delivered(batch, base)
                return
        batch.unknown_outcomes += how != "refused"
        self.accumulator.retry(batch, 0)

    def straggle(self) -> None:
        if self.stragglers:
            data = self.stragglers.pop(self.rng.randrange(len(self.stragglers)))
            try:
                self.broker.take(data)
            except ApiError:
                pass

    def finish(self) -> None:
        while self.accumulator.unfinished:
            self.send()
            self.arrive()
        while self.stragglers:
            self.straggle()


@settings(max_examples=few(300))
@given(st.integers(0, 1 << 32))
def test_each_record_is_stored_once_and_in_order(seed: int) -> None:
    world = World(seed)
    for _ in range(world.rng.randrange(150)):
        step = world.rng.choice([world.append, world.send, world.send, world.arrive, world.arrive, world.straggle])
        step()
        assert len(world.under_way) <= 5
    world.finish()
    assert world.broker.values == list(range(world.written))
    assert not any(batch.may_be_duplicated or batch.error for batch in world.ended)
    stored = [value for batch in world.ended for value in (2 * batch.place, 2 * batch.place + 1)]
    assert sorted(stored) == world.broker.values
    assert all(batch.base_offset == 2 * batch.place for batch in world.ended)


def make(**limits: int) -> Accumulator:
    accumulator = Accumulator(
        **{"batch_size": TWO_RECORDS, "buffer_memory": 10**9, "delivery_timeout_ms": 500, **limits}, idempotent=True
    )
    accumulator.identity = Identity(7, 0)
    return accumulator


def fill(accumulator: Accumulator, batches: int) -> None:
    for _ in range(2 * batches):
        accumulator.append(*KEY, 7, None, bytes(100), (), size=RECORD_BYTES, now_ms=0, on_done=lambda _: None)


def take_all(accumulator: Accumulator) -> list[Batch]:
    taken = []
    while list(accumulator.sendable(0)):
        taken.append(accumulator.take(KEY))
    return taken


def test_the_first_batch_of_an_epoch_goes_alone() -> None:
    accumulator = make()
    fill(accumulator, 8)
    (first,) = take_all(accumulator)
    accumulator.delivered(first, 0)
    assert [batch.number.base_sequence for batch in take_all(accumulator)] == [2, 4, 6, 8, 10]


def test_the_window_starts_at_the_oldest_unanswered_batch() -> None:
    """A broker remembers five batches. With a sixth, it would not recognize a retry of the oldest."""
    accumulator = make()
    fill(accumulator, 9)
    accumulator.delivered(take_all(accumulator)[0], 0)
    oldest, *others = take_all(accumulator)
    for batch in others:
        accumulator.delivered(batch, 0)
    assert take_all(accumulator) == []
    accumulator.retry(oldest, 0)
    assert take_all(accumulator)[0] is oldest


def test_a_batch_that_is_not_full_does_not_follow_one_in_flight() -> None:
    accumulator = make()
    fill(accumulator, 3)
    accumulator.delivered(take_all(accumulator)[0], 0)
    accumulator.append(*KEY, 7, None, b"more", (), size=28, now_ms=0, on_done=lambda _: None)
    taken = take_all(accumulator)
    assert [batch.count for batch in taken] == [2, 2]
    accumulator.delivered(taken[0], 0)
    assert take_all(accumulator) == []
    accumulator.delivered(taken[1], 0)
    assert [batch.count for batch in take_all(accumulator)] == [1]


def test_retries_keep_their_numbers_and_go_one_at_a_time() -> None:
    accumulator = make()
    fill(accumulator, 6)
    accumulator.delivered(take_all(accumulator)[0], 0)
    taken = take_all(accumulator)
    numbers = [batch.number for batch in taken]
    for batch in (taken[3], taken[0], taken[4], taken[2], taken[1]):
        accumulator.retry(batch, 0, out_of_order=batch is not taken[0])
    for want, number in zip(taken, numbers, strict=True):
        assert take_all(accumulator) == [want]
        assert want.number == number
        accumulator.delivered(want, 0)


def test_a_failed_old_batch_holds_back_new_numbers_until_the_others_are_settled() -> None:
    accumulator = make(delivery_timeout_ms=100)
    fill(accumulator, 4)
    accumulator.delivered(take_all(accumulator)[0], 0)
    first, second, third = take_all(accumulator)
    accumulator.failed(first, RuntimeError())
    fill(accumulator, 1)
    assert take_all(accumulator) == []  # new numbers wait
    accumulator.retry(third, 0, out_of_order=True)
    accumulator.delivered(second, 0)
    assert take_all(accumulator) == [third] and third.number == Number(7, 0, 6)
    accumulator.delivered(third, 0)
    assert [batch.number for batch in take_all(accumulator)] == [Number(7, 1, 0)]


def test_batches_lost_by_the_log_get_new_numbers_once_nothing_is_in_flight() -> None:
    accumulator = make()
    fill(accumulator, 4)
    accumulator.delivered(take_all(accumulator)[0], 0)
    first, second, third = take_all(accumulator)
    first.unknown_outcomes = 1
    accumulator.retry(first, 0, out_of_order=True)
    assert take_all(accumulator) == [] and first.number == Number(7, 0, 2)
    accumulator.retry(third, 0, out_of_order=True)
    accumulator.retry(second, 0, out_of_order=True)
    assert take_all(accumulator) == [first]
    assert (first.number, first.unknown_outcomes) == (Number(7, 1, 0), 0)
    (header,) = headers(first.encode(Codec.NONE))
    assert (header.producer_epoch, header.base_sequence) == (1, 0)
    accumulator.delivered(first, 0)
    assert [batch.number.base_sequence for batch in take_all(accumulator)] == [2]  # retries go one at a time


def test_nothing_is_sent_without_an_identity() -> None:
    accumulator = make()
    accumulator.identity = None
    fill(accumulator, 1)
    assert accumulator.needs_identity and take_all(accumulator) == []
    assert accumulator.next_due_ms() == 500  # the delivery timeout


WRAPS = [("at the end", 2**31 - 2, 2, 0), ("over the end", 2**31 - 1, 2, 1), ("before it", 5, 3, 8)]


@pytest.mark.parametrize(("start", "count", "want"), [c[1:] for c in WRAPS], ids=[c[0] for c in WRAPS])
def test_numbers_wrap(start: int, count: int, want: int) -> None:
    numbering = Numbering(Identity(7, 0), next_sequence=start)
    assert numbering.next(count) == Number(7, 0, start)
    assert numbering.next_sequence == want


def test_epochs_end() -> None:
    numbering = Numbering(Identity(7, MAX_PRODUCER_EPOCH - 1))
    assert numbering.new_epoch() and numbering.identity.epoch == MAX_PRODUCER_EPOCH
    assert not numbering.new_epoch()
