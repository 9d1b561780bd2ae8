"""The producer state: ORACLES 3.6, case by case, and against a model that remembers every batch ever sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Offset
from quorumlog.records.batch import NO_PRODUCER, NO_SEQUENCE
from storage import producer_state
from storage.producer_state import (
    REMEMBERED_BATCHES,
    SEQUENCES,
    ProducerEntry,
    ProducerStates,
    Remembered,
    after,
    check,
)

LAST = SEQUENCES - 1
OUT_OF_ORDER, FENCED = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH


@dataclass(frozen=True)
class Batch:
    base_sequence: int
    count: int = 1
    producer_epoch: int = 0
    base_offset: Offset = 0
    producer_id: int = 7
    max_timestamp: int = 1_000

    @property
    def last_offset(self) -> Offset:
        return self.base_offset + self.count - 1


def entry_of(*batches: Batch) -> ProducerEntry | None:
    entry = None
    for batch in batches:
        entry = after(entry, batch)
    return entry


def verdict(entry: ProducerEntry | None, batch: Batch) -> ErrorCode | Offset | None:
    """The error, the base offset of what is repeated, or None: to be appended."""
    try:
        repeated = check(entry, batch)
    except ApiError as error:
        return error.code
    return repeated.base_offset if repeated is not None else None


FIVE = [Batch(10 * n, 10, base_offset=100 + 20 * n) for n in range(5)]  # other producers wrote in between


class LookingBatch(Batch):
    """Looks its producer up whenever it is asked for something, as another thread may."""

    states: ProducerStates
    seen: list[ProducerEntry | None]

    def __getattribute__(self, name: str) -> Any:
        if name in ("producer_epoch", "last_offset", "max_timestamp"):
            LookingBatch.seen.append(LookingBatch.states.entries.get(7))
        return super().__getattribute__(name)


def test_a_known_producer_stays_known_while_its_next_batch_is_noted() -> None:
    states = LookingBatch.states = ProducerStates()
    states.note(Batch(0))
    LookingBatch.seen = []
    states.note(LookingBatch(1))
    assert LookingBatch.seen and None not in LookingBatch.seen
    assert states.entries[7].last_sequence == 1


def test_the_producer_that_wrote_last_comes_last() -> None:
    states = ProducerStates()
    for batch in (Batch(0), Batch(0, producer_id=8), Batch(1)):
        states.note(batch)
    assert list(states.entries) == [8, 7]


CASES = [
    ("an unknown producer", [], Batch(0), None),
    ("an unknown producer with a high sequence", [], Batch(12_345, 5, producer_epoch=9), None),
    ("the next", [Batch(0, 10)], Batch(10), None),
    ("a gap", [Batch(0, 10)], Batch(11), OUT_OF_ORDER),
    ("the first of five again", FIVE, FIVE[0], 100),
    ("the last of five again", FIVE, FIVE[4], 180),
    ("the sixth last again", [*FIVE, Batch(50, 10, base_offset=300)], FIVE[0], OUT_OF_ORDER),
    ("a part of a remembered one", FIVE, Batch(10, 5), OUT_OF_ORDER),
    ("the end of a remembered one", FIVE, Batch(45, 5), OUT_OF_ORDER),
    ("more than a remembered one", FIVE, Batch(40, 11), OUT_OF_ORDER),
    ("an old epoch", [Batch(0, producer_epoch=3)], Batch(1, producer_epoch=2), FENCED),
    ("an old epoch with remembered sequences", [Batch(0, producer_epoch=3)], Batch(0, producer_epoch=2), FENCED),
    ("a new epoch from the start", [Batch(0, 10)], Batch(0, 5, producer_epoch=1), None),
    ("a new epoch from elsewhere", [Batch(0, 10)], Batch(10, producer_epoch=1), OUT_OF_ORDER),
    ("the old epoch's sequences in the new one", FIVE, Batch(0, 10, producer_epoch=1), None),
    ("the end of all sequences, then 0", [Batch(LAST - 9, 10)], Batch(0), None),
    ("a wrong turn at the end", [Batch(LAST - 9, 10)], Batch(1), OUT_OF_ORDER),
    ("over the end inside a batch", [Batch(LAST - 4, 10)], Batch(5), None),
    ("over the end again", [Batch(LAST - 4, 10, base_offset=33)], Batch(LAST - 4, 10), 33),
    ("up to the end", [Batch(LAST - 1, 1)], Batch(LAST), None),
    ("a control batch fences", [Batch(0, 10), Batch(-1, producer_epoch=1)], Batch(10), FENCED),
    ("after a control batch from 0", [Batch(0, 10), Batch(-1, producer_epoch=1)], Batch(0, producer_epoch=1), None),
    ("after a control batch not from 0", [Batch(-1, producer_epoch=1)], Batch(3, producer_epoch=1), OUT_OF_ORDER),
    ("a control batch of the same epoch", [Batch(0, 10), Batch(-1)], Batch(10), None),
    ("a replica takes a gap and goes on behind it", [Batch(0, 10), Batch(50, 10)], Batch(60), None),
]


@pytest.mark.parametrize(("sent", "batch", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_check(sent: list[Batch], batch: Batch, want: ErrorCode | Offset | None) -> None:
    assert verdict(entry_of(*sent), batch) == want


def test_looking_changes_nothing() -> None:
    entry = entry_of(*FIVE)
    check(entry, Batch(50))
    with pytest.raises(ApiError):
        check(entry, Batch(51))
    assert entry == entry_of(*FIVE)


def test_an_entry_says_what_was_last_written() -> None:
    entry = entry_of(*FIVE)
    assert entry is not None
    assert (entry.last_sequence, entry.last_offset) == (49, 189)
    assert entry.batches[0] == Remembered(last_sequence=9, last_offset=109, offset_delta=9, timestamp=1_000)


def test_batches_without_a_producer_id_are_ignored() -> None:
    states = ProducerStates()
    states.note(Batch(-1, producer_id=-1))
    assert states.entries == {}


def test_silence_counts_from_when_it_is_noticed() -> None:
    states = ProducerStates()
    states.note(Batch(0, producer_id=1, max_timestamp=0))  # history: its timestamp says nothing about now
    states.note(Batch(0, producer_id=2))
    states.expire(1_000, 500)
    states.note(Batch(1, producer_id=2))
    states.expire(1_499, 500)
    assert list(states.entries) == [1, 2]
    states.expire(1_500, 500)
    assert list(states.entries) == [2]
    states.expire(1_998, 500)
    assert list(states.entries) == [2]
    states.expire(1_999, 500)
    assert states.entries == {}


def test_beyond_the_limit_the_producer_that_wrote_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_state, "MAX_PRODUCERS", 3)
    states = ProducerStates()
    for producer_id in (1, 2, 3, 1, 4):
        states.note(Batch(0, producer_id=producer_id))
    assert list(states.entries) == [3, 1, 4]


def test_a_state_ends_where_the_last_batch_of_a_producer_ends() -> None:
    states = ProducerStates()
    states.note(Batch(0, 10, base_offset=50))
    assert states.end_offset == 60
    states.note(Batch(NO_SEQUENCE, 1, base_offset=60))  # a control batch
    assert states.end_offset == 61
    states.note(Batch(NO_SEQUENCE, 1, base_offset=61, producer_id=NO_PRODUCER))
    assert states.end_offset == 61


steps = st.lists(
    st.tuples(st.integers(-6, 1), st.integers(1, 4), st.sampled_from([0, 0, 0, 0, 1, -1])), min_size=1, max_size=60
)


@given(steps, st.sampled_from([0, LAST - 20]))
def test_a_leader_agrees_with_a_list_of_everything(steps: list[tuple[int, int, int]], start: int) -> None:
    """The model keeps every batch since the epoch's start as a plain list of sequences.

    step: (which batch: 1 a gap, 0 the next, -n the n-th last again, records if new, change of epoch)
    """
    entry: ProducerEntry | None = None
    epoch, written = 0, [Batch(start, 1, 0, base_offset=0)]
    entry = after(entry, written[0])
    end = 1
    for which, count, change in steps:
        last = written[-1]
        following = (last.base_sequence + last.count) % SEQUENCES
        if which < 0 and -which <= len(written) and change == 0:
            sent = Batch(written[which].base_sequence, written[which].count, epoch, base_offset=1_000_000)
            want: ErrorCode | Offset | None = OUT_OF_ORDER
            if -which <= REMEMBERED_BATCHES:
                want = written[which].base_offset
        elif change < 0:
            sent, want = Batch(following, count, epoch - 1), FENCED
        elif change > 0:
            sent = Batch(max(which, 0), count, epoch + 1)
            want = None if which <= 0 else OUT_OF_ORDER
        else:
            sent = Batch((following + max(which, 0)) % SEQUENCES, count, epoch)
            want = None if which <= 0 else OUT_OF_ORDER
        assert verdict(entry, sent) == want
        if want is None:
            epoch = sent.producer_epoch
            stored = Batch(sent.base_sequence, sent.count, epoch, base_offset=end)
            written = [*written, stored] if change == 0 else [stored]
            entry = after(entry, stored)
            end += sent.count + 2
