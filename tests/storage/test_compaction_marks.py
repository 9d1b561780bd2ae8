"""What pass 1 of a compaction leaves for pass 2, and what may be left out because of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cleaning_samples import CONFIG, add, add_marker, batches, entries, run_round, slots
from storage_samples import PATH, disk_with_data

from quorumlog_storage.cleaning.marks import GONE, NEEDS_HORIZON, STAYS, Marks, Page
from quorumlog_storage.log.log import Log
from tests.rules import rule

WHOLE = replace(CONFIG, segment_bytes=1 << 20)


def log_of() -> Log:
    return Log.open(disk_with_data(), PATH, WHOLE, clean=True)


@rule("storage 9.19")
@pytest.mark.parametrize(
    ("states", "is_last", "needed", "ranges", "stays"),
    [
        ([STAYS, STAYS, STAYS, STAYS], False, [], [(0, 200)], True),
        ([STAYS, STAYS, NEEDS_HORIZON, STAYS], False, [], [(0, 200)], False),
        ([GONE, GONE, STAYS, STAYS], False, [], [(100, 200)], False),
        ([STAYS, STAYS, GONE, GONE], False, [], [(0, 100)], False),
        ([GONE, STAYS, GONE, GONE], True, [], [(0, 200)], False),
        ([GONE, GONE, GONE, GONE], True, [], [(100, 200)], False),
        ([GONE, GONE, GONE, GONE], False, [], [], False),
        ([GONE, GONE, GONE, GONE], False, [1], [(0, 100)], False),
        ([GONE, GONE, GONE, GONE], False, [2, 9], [(100, 200)], False),
    ],
)
def test_pieces_of_which_nothing_stays_are_left_out(
    states: list[int], is_last: bool, needed: list[int], ranges: list[tuple[int, int]], stays: bool
) -> None:
    """A source of 200 bytes, with a piece of two records at 0 and one at 100."""
    marks = Marks(0, 4, 4)
    for position in (0, 100):
        marks.note_page(0, Page(position, 100, position // 50, position // 50 + 2, 2))
    marks.states[:] = bytes(states)
    assert marks.to_read(0, 200, is_last=is_last, needed=needed) == ranges
    assert marks.stays_as_it_is(0, 200) == stays


def test_a_piece_that_is_not_known_whole_is_read() -> None:
    marks = Marks(10, 100, 10)
    for first in (8, 12, 18, 30):
        marks.note_page(0, Page(first * 10, 20, first, first + 4, 1))
    assert marks.to_read(0, 1_000, is_last=False, needed=()) == [(0, 120), (140, 1_000)]
    assert not marks.stays_as_it_is(0, 1_000)


def test_a_piece_with_the_last_batch_of_a_producer_is_read() -> None:
    log = log_of()
    last = add(log, [(b"k", b"v")], producer_id=7, producer_epoch=0, base_sequence=0)
    for _ in range(5):
        add(log, [(b"k", b"v")])
    log.roll()
    run_round(log, io_buffer_bytes=80)
    first = next(header for _, header in batches(log))
    assert (first.base_offset, first.producer_id, first.count) == (last, 7, 0)
    assert [entry.offset for entry in entries(log)] == [5]


def test_an_aborted_transaction_behind_a_full_map_stays_in_the_index() -> None:
    log = log_of()
    for key in (b"a", b"a", b"b", b"c"):
        add(log, [(key, b"v")])
    data = add(log, [(b"d", b"v")], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    marker = add_marker(log, 7, committed=False)
    log.roll()
    done = run_round(log, map_bytes=slots(2))
    assert (done.is_partial, done.first_dirty, done.bytes_written > 0) == (True, 3, True)
    aborted = log.view.segments[0].transactions.entries()
    assert [(one.first_offset, one.last_offset) for one in aborted] == [(data, marker)]


def test_the_first_dirty_record_goes_like_any_other() -> None:
    log = log_of()
    for _ in range(3):
        add(log, [(b"k", b"v")])
    log.roll()
    run_round(log)
    assert [entry.offset for entry in entries(log)] == [2]


def test_what_lies_before_the_first_change_is_copied() -> None:
    log = log_of()
    for number in range(10):
        add(log, [(b"%d" % number, b"v")])
    add(log, [(b"9", b"w")])
    log.roll()
    run_round(log)
    assert [entry.offset for entry in entries(log)] == [*range(9), 10]


def test_the_record_for_which_the_map_had_no_room_is_not_clean() -> None:
    log = log_of()
    for key in (b"a", b"b", b"a", b"c", b"a"):
        add(log, [(key, b"v")])
    log.roll()
    done = run_round(log, map_bytes=slots(2), load_factor=1.0)
    assert (done.is_partial, done.first_dirty) == (True, 3)
    assert [entry.offset for entry in entries(log)] == [1, 2, 3, 4]
