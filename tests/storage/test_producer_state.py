"""The producer state against docs/log-scenarios.md, "Producers", and a model that remembers every batch ever sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Offset
from quorumlog.records.control import EndTxnMarker
from quorumlog.records.format.batch import CONTROL, NO_PRODUCER, NO_SEQUENCE, TRANSACTIONAL
from quorumlog_storage.producers import producer_state
from quorumlog_storage.producers.producer_state import (
    NO_OFFSET,
    REMEMBERED_BATCHES,
    SEQUENCES,
    ProducerEntry,
    ProducerStates,
    Remembered,
    after,
    check,
    check_marker,
)
from quorumlog_storage.producers.transactions import EndedTransaction
from tests.rules import rule

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
    attributes: int = 0

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


@rule("storage 4.2", "storage 4.3", "log 3.8", "log 6.1", "log 6.3")
@pytest.mark.parametrize(("sent", "batch", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_check(sent: list[Batch], batch: Batch, want: ErrorCode | Offset | None) -> None:
    assert verdict(entry_of(*sent), batch) == want


@rule("log 6.4")
def test_looking_changes_nothing() -> None:
    entry = entry_of(*FIVE)
    check(entry, Batch(50))
    with pytest.raises(ApiError):
        check(entry, Batch(51))
    assert entry == entry_of(*FIVE)


@rule("storage 4.1")
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


# --- transactions ---

ABORT, COMMIT = EndTxnMarker(committed=False, coordinator_epoch=5), EndTxnMarker(committed=True, coordinator_epoch=5)
TXN = Batch(0, attributes=TRANSACTIONAL, base_offset=10)
END = Batch(NO_SEQUENCE, attributes=TRANSACTIONAL | CONTROL, base_offset=11)
INVALID_TXN, COORDINATOR_FENCED = ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_transaction_begins_with_its_first_batch_and_ends_with_the_marker() -> None:
    states = ProducerStates()
    assert states.note(TXN) is None
    assert states.note(Batch(1, attributes=TRANSACTIONAL, base_offset=11)) is None
    assert states.entries[7].first_offset == 10 and states.transactions.ongoing == {10: 7}
    ended = states.note(Batch(NO_SEQUENCE, attributes=TRANSACTIONAL | CONTROL, base_offset=12), COMMIT)
    assert ended == EndedTransaction(7, 10, 12, 13, committed=True)
    assert states.entries[7].first_offset == NO_OFFSET and states.transactions.ongoing == {}
    assert states.note(Batch(NO_SEQUENCE, attributes=TRANSACTIONAL | CONTROL, base_offset=13), ABORT) is None


@rule("log 6.15")
def test_the_last_stable_offset_behind_a_transaction_is_where_the_earliest_of_the_others_begins() -> None:
    states = ProducerStates()
    for offset, producer in enumerate((1, 2, 3)):
        states.note(Batch(0, attributes=TRANSACTIONAL, base_offset=offset, producer_id=producer))
    ends = []
    for offset, producer in enumerate((2, 1, 3), 3):
        marker = Batch(NO_SEQUENCE, attributes=TRANSACTIONAL | CONTROL, base_offset=offset, producer_id=producer)
        ended = states.note(marker, ABORT)
        assert ended is not None
        ends.append(ended.last_stable_offset)
    assert ends == [0, 2, 6]


def test_a_new_epoch_does_not_end_the_open_transaction() -> None:
    states = ProducerStates()
    states.note(TXN)
    states.note(Batch(0, attributes=TRANSACTIONAL, base_offset=12, producer_epoch=1))
    assert states.entries[7].first_offset == 10


@rule("log 6.5")
def test_nothing_but_its_transaction_comes_from_a_producer_that_has_one_open() -> None:
    entry = entry_of(TXN)
    assert verdict(entry, Batch(1)) is INVALID_TXN
    assert verdict(entry, Batch(1, attributes=TRANSACTIONAL)) is None
    assert verdict(entry, Batch(0)) == 10, "a repetition is answered"


MARKERS = [  # entry's epoch 3 and coordinator epoch 5; transaction version, is open, marker's epochs, error
    ("equal epochs", 0, True, 3, 5, None),
    ("equal epochs, nothing open", 1, False, 3, 5, None),
    ("a later producer epoch", 0, True, 4, 5, None),
    ("an older producer epoch", 0, True, 2, 5, FENCED),
    ("an older coordinator", 0, True, 3, 4, COORDINATOR_FENCED),
    ("an older coordinator, nothing open", 0, False, 3, 4, COORDINATOR_FENCED),
    ("a later coordinator", 0, True, 3, 6, None),
    ("version 2: the bumped epoch", 2, True, 4, 5, None),
    ("version 2: the epoch of the records", 2, True, 3, 5, FENCED),
    ("version 2: a repetition, nothing open", 2, False, 3, 5, None),
    ("version 2: an older epoch, nothing open", 2, False, 2, 5, FENCED),
]


@rule("storage 5.2", "log 3.7", "log 6.13", "bug 9600", "bug 19999")
@pytest.mark.parametrize(
    ("version", "is_open", "epoch", "coordinator", "want"), [c[1:] for c in MARKERS], ids=[c[0] for c in MARKERS]
)
def test_which_marker_may_be_written(
    version: int, is_open: bool, epoch: int, coordinator: int, want: ErrorCode | None
) -> None:
    entry = ProducerEntry(3, (), 0, 5, 10 if is_open else NO_OFFSET)
    if want is None:
        check_marker(entry, 7, epoch, EndTxnMarker(True, coordinator), version)
        check_marker(None, 7, epoch, EndTxnMarker(True, coordinator), version)
        return
    with pytest.raises(ApiError) as caught:
        check_marker(entry, 7, epoch, EndTxnMarker(True, coordinator), version)
    assert caught.value.code is want


@rule("log 6.13")
def test_an_unknown_producer_with_an_epoch_for_each_transaction_begins_at_0() -> None:
    with pytest.raises(ApiError):
        check(None, Batch(3), begins_at_0=True)
    assert check(None, Batch(0), begins_at_0=True) is None and check(None, Batch(3)) is None


@rule("storage 4.5", "log 6.9", "bug 9144")
def test_a_producer_with_an_open_transaction_is_never_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_state, "MAX_PRODUCERS", 2)
    states = ProducerStates()
    states.note(TXN)
    for now_ms in (0, 10, 20):
        states.expire(now_ms, 10)
    for producer in range(20, 25):
        states.note(Batch(0, producer_id=producer, base_offset=producer))
    assert list(states.entries) == [7, 24]
    states.note(Batch(NO_SEQUENCE, attributes=TRANSACTIONAL | CONTROL, base_offset=30), ABORT)
    for now_ms in (30, 40):
        states.expire(now_ms, 10)
    assert states.entries == {}


def test_an_empty_control_batch_ends_nothing() -> None:
    """Compaction removed the marker together with its transaction."""
    states = ProducerStates()
    states.note(TXN)
    assert states.note(END, None) is None and states.entries[7].is_open
