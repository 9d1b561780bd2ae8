"""Numbers, sizes, times and courses as people read them, on every page, in every table and on every screen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.watch.sample import UNKNOWN
from quorumlog.watch.words import (
    NONE,
    clock,
    duration,
    moment,
    rate,
    short_count,
    short_duration,
    short_growth,
    short_rate,
    short_size,
    size,
    spark,
)

WORDS = [
    (short_count, 0, "0"), (short_count, 999, "999"), (short_count, 999.6, "1.0k"), (short_count, 1_000, "1.0k"),
    (short_count, 48_210, "48k"), (short_count, 999_499, "999k"), (short_count, 999_500, "1.0M"),
    (short_count, -1, NONE), (short_count, None, NONE), (short_count, 2**63 - 1, "9.2E"),
    (size, 0, "0 B"), (size, 999, "999 B"), (size, 1_000, "1.0 KiB"), (size, 4_404_019, "4.2 MiB"), (size, -1, NONE),
    (size, 2**60, "1.0 EiB"), (short_size, 512, "512B"), (short_size, 4_404_019, "4.2MiB"), (short_size, None, NONE),
    (rate, 0, "0"), (rate, 0.01, "<0.1"), (rate, 0.26, "0.3"), (rate, 12, "12.0"), (rate, 1_234.4, "1,234"),
    (rate, None, NONE), (short_rate, 0.2, "<1"), (short_rate, 0, "0"), (short_growth, 12.0, "+12"),
    (short_growth, -0.2, "-<1"), (short_growth, 0.0, "0"), (short_growth, None, NONE),
    (duration, 0, "0 ms"), (duration, 999, "999 ms"), (duration, 2_100, "2.1 s"), (duration, 59_949, "59.9 s"),
    (duration, 59_950, "1 min"), (duration, 130_000, "2 min 10 s"), (duration, 180_000, "3 min"),
    (duration, 11_100_000, "3 h 5 min"), (duration, 352_800_000, "4 d 2 h"), (duration, UNKNOWN, NONE),
    (short_duration, 0, "0s"), (short_duration, 59_999, "59s"), (short_duration, 130_000, "2m10s"),
    (short_duration, 11_100_000, "3h05m"), (short_duration, 352_800_000, "4d02h"), (short_duration, UNKNOWN, NONE),
    (clock, 1_700_000_000_000, "22:13:20"), (moment, 1_700_000_000_000, "2023-11-14 22:13:20 UTC"), (clock, -1, NONE),
]  # fmt: skip


@pytest.mark.parametrize(("text", "number", "want"), WORDS)
def test_words(text: object, number: float | None, want: str) -> None:
    assert callable(text) and text(number) == want


@given(st.integers(0, 2**63))
def test_a_short_number_fits_its_column(number: int) -> None:
    assert len(short_count(number)) <= 5 and len(short_size(number)) <= 6
    assert len(short_duration(min(number, 99 * 86_400_000))) <= 6


@given(st.lists(st.floats(0, 1e12), max_size=50), st.integers(0, 20))
def test_a_course_keeps_its_peak_and_its_width(values: list[float], width: int) -> None:
    drawn = spark(values, width)
    assert len(drawn) == min(len(values), width)
    if drawn and max(values) > 0:
        assert "█" in drawn
    assert spark([], 8) == "" and spark([0, 0], 8) == "▁▁"
