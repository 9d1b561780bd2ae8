"""Labels are held to a number of values: the rest is one series, and a scrape shows the same ones as the last."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quorumlog_server.metrics.bounded import MOST_VALUES, BoundedLabels, Row
from quorumlog_server.metrics.reading import Reading
from quorumlog_server.metrics.series import Kind, Rest, Series

BYTES = Series("bytes_in_total", Kind.COUNTER, "bytes", ("topic",), "?")
LAG = Series("group_lag", Kind.GAUGE, "", ("group", "topic"), "?")
AGE = Series("age_seconds", Kind.GAUGE, "seconds", ("topic",), "?", rest=Rest.LARGEST)
TIMES = Series("times_seconds", Kind.HISTOGRAM, "seconds", ("topic",), "?", buckets="call")


def shown(labels: BoundedLabels, series: Series, values: dict[tuple[str, ...], object]) -> list[Row]:
    reading = Reading()
    for names, value in values.items():
        reading._add(series, value, names)  # type: ignore[arg-type]
    return sorted(labels.bound(reading).get(series, []), key=lambda row: (row.overflow, row.labels))


def counts(names: list[str], value: int = 1) -> dict[tuple[str, ...], object]:
    return {(name,): value for name in names}


def test_the_rest_is_one_series_with_an_empty_name() -> None:
    names = [f"t{number:05}" for number in range(MOST_VALUES + 50)]
    rows = shown(BoundedLabels(), BYTES, counts(names))
    assert len(rows) == MOST_VALUES + 1
    assert rows[-1] == Row(("",), True, 50)
    assert all(not row.overflow for row in rows[:-1])


def test_a_topic_may_be_named_as_others_name_the_rest() -> None:
    rows = shown(BoundedLabels(2), BYTES, {("_other",): 1, ("",): 2, ("t",): 4})
    assert rows == [Row(("",), False, 2), Row(("_other",), False, 1), Row(("",), True, 4)]


def test_the_same_ones_are_kept_by_the_next_scrape() -> None:
    labels = BoundedLabels(2)
    shown(labels, BYTES, counts(["m", "n"]))
    rows = shown(labels, BYTES, counts(["a", "m", "n", "z"], 3))
    assert rows == [Row(("m",), False, 3), Row(("n",), False, 3), Row(("",), True, 6)]


def test_who_was_outside_stays_outside_and_a_new_one_takes_the_place() -> None:
    labels = BoundedLabels(1)
    shown(labels, BYTES, counts(["a", "b"]))
    rows = shown(labels, BYTES, counts(["b", "c"], 5))
    assert rows == [Row(("c",), False, 5), Row(("",), True, 5)]


def test_the_counter_of_the_rest_does_not_fall_when_a_part_goes_or_begins_anew() -> None:
    labels = BoundedLabels(1)
    assert shown(labels, BYTES, {("a",): 0, ("b",): 10, ("c",): 5})[-1].value == 15
    assert shown(labels, BYTES, {("a",): 0, ("b",): 12})[-1].value == 17
    assert shown(labels, BYTES, {("a",): 0, ("b",): 1})[-1].value == 18
    assert shown(labels, BYTES, {("a",): 0})[-1].value == 18


def test_one_label_of_two_may_be_beyond_the_bound() -> None:
    labels = BoundedLabels(1)
    rows = shown(labels, LAG, {("g", "a"): 1, ("g", "b"): 2, ("h", "b"): 4})
    assert sorted(rows) == [Row(("", ""), True, 4), Row(("g", ""), True, 2), Row(("g", "a"), False, 1)]


def test_the_rest_of_an_age_is_the_largest() -> None:
    assert shown(BoundedLabels(1), AGE, {("a",): 1, ("b",): 7, ("c",): 5})[-1] == Row(("",), True, 7)


def test_histograms_of_the_rest_are_added_bucket_by_bucket() -> None:
    labels = BoundedLabels(1)
    assert shown(labels, TIMES, {("a",): (1.0, 1), ("b",): (2.0, 3), ("c",): (4.0, 5)})[-1].value == (6.0, 8)
    assert shown(labels, TIMES, {("a",): (1.0, 1), ("b",): (3.0, 4)})[-1].value == (7.0, 9)


@given(st.lists(st.sets(st.sampled_from("abcdefgh"), max_size=8), max_size=8))
def test_any_history_keeps_the_bound_and_loses_nothing(history: list[set[str]]) -> None:
    """At each scrape: no more than three, and the sum over all series is that of the parts."""
    labels = BoundedLabels(3)
    kept: set[str] = set()
    for there in history:
        rows = shown(labels, AGE, counts(sorted(there)))
        plain = {row.labels[0] for row in rows if not row.overflow}
        assert len(plain) <= 3 and kept & there <= plain
        assert (len(there) > len(plain)) == any(row.overflow for row in rows)
        assert not any(row.overflow for row in rows) or len(rows) == len(plain) + 1
        kept = plain
