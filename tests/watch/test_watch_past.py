"""The past of a watched cluster: rates, courses, how long a group is behind, and that it stays bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watch_samples import BEGAN_MS, group, sample, topic

from quorumlog.watch.past import NO_RATE, Past, Rate
from quorumlog.watch.sample import UNKNOWN, GroupOffset


def test_a_rate_is_growth_over_time() -> None:
    past = Past()
    past.add(sample(0, topic("t", 100, 50, size=1_000)))
    assert past.topic_rate("t") == NO_RATE
    past.add(sample(10_000, topic("t", 300, 50, size=3_000)))
    assert past.topic_rate("t") == Rate(20.0, 200.0)
    assert past.topic_rates() == {"t": Rate(20.0, 200.0)}


def test_a_rate_looks_back_fifteen_seconds_and_no_further() -> None:
    past = Past()
    for at_ms, end in ((0, 0), (5_000, 1_000), (10_000, 1_000), (20_000, 1_000), (25_000, 1_030)):
        past.add(sample(at_ms, topic("t", end)))
    assert past.topic_rate("t").records == 2.0


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        (topic("t", 9), topic("t", 3, topic_id=b"new"), NO_RATE),
        (topic("t", 9), topic("t", 3), Rate(0.0, 0.0)),
        (topic("t", 5, size=90), topic("t", 15, size=10), Rate(1.0, None)),
        (topic("t", UNKNOWN), topic("t", UNKNOWN), Rate(None, 0.0)),
        (topic("t", 10), topic("t", 20, 70), Rate(1.0, 0.0)),
        (topic("u", 1), topic("t", 1), NO_RATE),
    ],
    ids=["made again", "an end went back", "retention", "nobody told", "a partition more", "new"],
)
def test_what_has_no_rate(before: object, after: object, want: Rate) -> None:
    past = Past()
    past.add(sample(0, before))  # type: ignore[arg-type]
    past.add(sample(10_000, after))  # type: ignore[arg-type]
    assert past.topic_rate("t") == want


def at(
    committed: int, end: int, *, former: bool = False, member: str = "", index: int = 0, read: bool = True
) -> GroupOffset:
    return GroupOffset(
        topic="t",
        partition=index,
        committed=committed,
        end=end,
        member_id=member,
        is_of_former_topic=former,
        is_read=read,
    )


def test_behind_is_the_age_of_the_oldest_uncommitted_record() -> None:
    past = Past()
    for at_ms, end in ((0, 10), (5_000, 20), (10_000, 30), (15_000, 40)):
        past.add(sample(at_ms, topic("t", end)))
    assert past.behind_ms(group("g", at(40, 40))) == 0
    assert past.behind_ms(group("g", at(25, 40))) == 5_000, "offset 25 was at the end between 5 s and 10 s"
    assert past.behind_ms(group("g", at(20, 40))) == 5_000, "offset 20 is the first after the end of 5 s"
    assert not past.is_older_than_past(group("g", at(20, 40)))
    assert past.behind_ms(group("g", at(5, 40))) == 15_000
    assert past.is_older_than_past(group("g", at(5, 40)))
    assert past.behind_ms(group("g", at(5, UNKNOWN))) is None


def test_offsets_of_a_former_topic_and_offsets_that_nobody_reads_count_for_nothing() -> None:
    left_over = group("g", at(3, 40, former=True), at(40, 40, member="m", index=1), at(5, 40, index=2, read=False))
    assert left_over.distance == 0
    assert group("g", at(40, 40, member="m"), at(5, 40, index=1)).distance == 35, "assigned to nobody yet"
    assert group("g", at(3, 40, former=True)).distance == 0
    assert at(3, 40, former=True).distance == UNKNOWN
    assert group("g", at(5, 40, index=2)).distance == 35, "without any member, all that was committed counts"


def test_the_trend_of_a_lag() -> None:
    past = Past()
    for number, distance in enumerate((10, 40, 70)):
        offset = at(100 - distance, 100)
        past.add(sample(number * 30_000, topic("t", 100), groups=(group("g", offset),)))
    assert past.lag_trend("g") == 1.0
    assert past.lag_trend("unknown") is None
    assert past.group_course("g") == [(BEGAN_MS, 10), (BEGAN_MS + 30_000, 40), (BEGAN_MS + 60_000, 70)]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(2, 8), st.integers(1, 200))
def test_the_past_is_bounded_and_its_newest_part_is_kept(sizes: list[int], points: int, cells: int) -> None:
    past = Past(points=points, cells=cells)
    for number, partitions in enumerate(sizes):
        past.add(sample(number * 1_000, topic("t", *range(partitions))))
        assert len(past) <= points
        assert past.cells <= cells or len(past) == min(2, number + 1)
    kept = len(past)
    assert past.since_wall_ms == BEGAN_MS + (len(sizes) - kept) * 1_000
    assert past.newest is not None and past.newest.at_ms == (len(sizes) - 1) * 1_000


def test_a_sample_from_the_past_is_our_own_mistake() -> None:
    past = Past()
    past.add(sample(10))
    with pytest.raises(AssertionError, match="from the past"):
        past.add(sample(9))
