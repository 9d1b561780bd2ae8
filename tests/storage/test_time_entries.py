"""The entries of a time index against a dumb search, and their bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog_storage.segment.index_file import CorruptIndex
from quorumlog_storage.segment.time_index import NO_TIME, TimeEntries, TimeEntry
from tests.rules import rule

STEPS = st.lists(st.tuples(st.integers(1, 1 << 33), st.integers(1, 9)), max_size=30)


def entries_of(steps: list[tuple[int, int]]) -> tuple[TimeEntries, list[TimeEntry]]:
    """Entries whose columns grow by the given steps."""
    entries, listed, timestamp, offset = TimeEntries(), [], -1, 0
    for time_step, offset_step in steps:
        timestamp, offset = timestamp + time_step, offset + offset_step
        entries.append_if_later(TimeEntry(timestamp, offset))
        listed.append(TimeEntry(timestamp, offset))
    return entries, listed


@rule("storage 10.9")
def test_golden_entry() -> None:
    """As Kafka writes it."""
    entries = TimeEntries()
    entries.append_if_later(TimeEntry(1_700_000_000_000, 41))
    assert entries.encode().hex() == "0000018bcfe5680000000029"


@rule("storage 2.3", "log 5.2", "log 5.5")
def test_an_entry_that_is_not_later_says_nothing_new() -> None:
    entries = TimeEntries()
    for entry in (NO_TIME, TimeEntry(5, 1), TimeEntry(5, 2), TimeEntry(4, 3), TimeEntry(6, 4)):
        entries.append_if_later(entry)
    assert [entries[number] for number in range(len(entries))] == [TimeEntry(5, 1), TimeEntry(6, 4)]
    with pytest.raises(AssertionError):
        entries.append_if_later(TimeEntry(7, 4))


@rule("storage 2.3", "log 5.1")
@given(STEPS, st.integers(0, 29), st.integers(-1, 1))
def test_look_ups_by_time_agree_with_a_search(steps: list[tuple[int, int]], near: int, off: int) -> None:
    entries, listed = entries_of(steps)
    target = (listed[near].timestamp if near < len(listed) else 1 << 40) + off
    lower, upper = entries.around(target)
    assert lower == max([NO_TIME, *[one for one in listed if one.timestamp < target]])
    assert upper == min([one for one in listed if one.timestamp >= target], default=None)


@given(STEPS, st.integers(-1, 300))
def test_look_ups_by_offset_agree_with_a_search(steps: list[tuple[int, int]], offset: int) -> None:
    entries, listed = entries_of(steps)
    before = [one for one in listed if one.relative_offset <= offset]
    after = [one for one in listed if one.relative_offset > offset]
    assert entries.around_offset(offset) == ((before or [NO_TIME])[-1], (after or [None])[0])
    kept = entries.up_to(offset)
    assert [kept[number] for number in range(len(kept))] == before and len(entries) == len(listed)


@given(STEPS)
def test_the_file_reads_back_equal(steps: list[tuple[int, int]]) -> None:
    entries, listed = entries_of(steps)
    content = entries.encode()
    assert content == b"".join(t.to_bytes(8, "big") + o.to_bytes(4, "big") for t, o in listed)
    assert TimeEntries.decode(content).encode() == content


FIRST = "0000018bcfe5680000000029"
BAD = [
    ("torn", FIRST + "00"),
    ("padded with zeroes", FIRST + "00" * 12),
    ("times stand still", FIRST + "0000018bcfe568000000002a"),
    ("offsets stand still", FIRST + "0000018bcfe5680100000029"),
    ("a time before 1970", "ffffffffffffffff00000029"),
    ("a negative offset", "0000018bcfe56800ffffffff"),
]


@rule("log 5.5")
@pytest.mark.parametrize("content", [c[1] for c in BAD], ids=[c[0] for c in BAD])
def test_a_damaged_file_is_refused(content: str) -> None:
    with pytest.raises(CorruptIndex):
        TimeEntries.decode(bytes.fromhex(content))


@given(st.binary(max_size=96))
def test_any_bytes_give_entries_or_a_typed_error(content: bytes) -> None:
    try:
        entries = TimeEntries.decode(content)
    except CorruptIndex:
        return
    assert entries.encode() == content
