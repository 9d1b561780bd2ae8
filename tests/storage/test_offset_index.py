"""The offset index against a dumb search, and its bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog_storage.segment.offset_index import START, CorruptIndex, IndexEntry, OffsetIndex
from tests.rules import rule

ROWS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=30)


def index_of(steps: list[tuple[int, int]]) -> tuple[OffsetIndex, list[IndexEntry]]:
    """Entries whose columns grow by the given steps."""
    index, entries, offset, position = OffsetIndex(), [], 0, 0
    for offset_step, position_step in steps:
        offset, position = offset + offset_step, position + position_step
        index.append(offset, position)
        entries.append(IndexEntry(offset, position))
    return index, entries


@rule("storage 2.2", "storage 10.9")
def test_golden_entry() -> None:
    index = OffsetIndex()
    index.append(41, 4200)
    assert index.encode().hex() == "0000002900001068"


@rule("storage 2.2", "log 5.1")
@given(ROWS, st.integers(-1, 300))
def test_look_ups_agree_with_a_search(steps: list[tuple[int, int]], target: int) -> None:
    index, entries = index_of(steps)
    assert index.floor_offset(target) == max([START, *[e for e in entries if e.relative_offset <= target]])
    assert index.floor_position(target) == max([START, *[e for e in entries if e.position <= target]])


@rule("storage 2.4", "log 5.4")
@given(ROWS, st.integers(0, 300))
def test_truncation_forgets_what_begins_there_or_later(steps: list[tuple[int, int]], position: int) -> None:
    index, entries = index_of(steps)
    index.truncate_to(position)
    kept = [entry for entry in entries if entry.position < position]
    assert index.encode() == b"".join(o.to_bytes(4, "big") + p.to_bytes(4, "big") for o, p in kept)


@rule("log 5.4")
@given(ROWS)
def test_the_file_reads_back_equal(steps: list[tuple[int, int]]) -> None:
    index, entries = index_of(steps)
    log_size = entries[-1].position + 1 if entries else 0
    assert OffsetIndex.decode(index.encode(), log_size).encode() == index.encode()


BAD = [
    ("torn", "000000290000106800"),
    ("padded with zeroes", "00000029000010680000000000000000"),
    ("offsets go back", "00000029000010680000002800001069"),
    ("positions stand still", "00000029000010680000002a00001068"),
    ("negative", "ffffffff00000010"),
    ("outside the log", "0000002900002000"),
]


@pytest.mark.parametrize("content", [c[1] for c in BAD], ids=[c[0] for c in BAD])
def test_a_damaged_file_is_refused(content: str) -> None:
    with pytest.raises(CorruptIndex):
        OffsetIndex.decode(bytes.fromhex(content), 8000)


@given(st.binary(max_size=64))
def test_any_bytes_give_an_index_or_a_typed_error(content: bytes) -> None:
    try:
        index = OffsetIndex.decode(content, 1 << 31)
    except CorruptIndex:
        return
    assert index.encode() == content
