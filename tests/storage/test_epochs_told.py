"""When a checkpoint of epochs tells a start all that it has to know."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quorumlog.ids import Offset
from quorumlog_storage.rules.epochs import EpochStart, LeaderEpochCache
from tests.rules import rule

ENTRIES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 8)), max_size=5).map(
    lambda pairs: LeaderEpochCache(EpochStart(*pair) for pair in sorted(pairs)).entries
)


def after_a_start(entries: tuple[EpochStart, ...], end_offset: Offset) -> tuple[EpochStart, ...]:
    cache = LeaderEpochCache(entries)
    cache.truncate_from_end(end_offset)
    return cache.entries


@rule("storage 6.3", "log 1.10")
@given(ENTRIES, ENTRIES, st.integers(0, 9))
def test_a_start_makes_the_same_of_both(
    saved: tuple[EpochStart, ...], now: tuple[EpochStart, ...], end_offset: Offset
) -> None:
    """What is told makes no difference to a start; what is not told does, or names an offset beyond the log's end."""
    now = tuple(entry for entry in now if entry.start_offset <= end_offset)
    told = LeaderEpochCache(now).is_told_by(saved, end_offset)
    is_equal = after_a_start(saved, end_offset) == after_a_start(now, end_offset)
    is_beyond = any(entry.start_offset > end_offset for entry in saved)
    assert told == (is_equal and not is_beyond)
