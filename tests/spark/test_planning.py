"""Plans: ranges cover what was requested, never overlap, and every loss is reported."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.client.errors import ConfigError
from quorumlog.client.offsets import EARLIEST, LATEST
from quorumlog.spark.places import Place
from quorumlog.spark.planning import DataLoss, LogSpan, plan

ID = b"i" * 16


def span(partition: int, start: int, end: int, topic: str = "t") -> LogSpan:
    return LogSpan(topic=topic, topic_id=ID, partition=partition, start=start, end=end)


CASES: list[tuple[str, Place, Place, list[tuple[int, int]]]] = [
    ("all of it", EARLIEST, LATEST, [(10, 20)]),
    ("from an offset", {("t", 0): 12}, LATEST, [(12, 20)]),
    ("to an offset", EARLIEST, {("t", 0): 15}, [(10, 15)]),
    ("numbers for names", {("t", 0): EARLIEST}, {("t", 0): LATEST}, [(10, 20)]),
    ("nothing between", {("t", 0): 12}, {("t", 0): 12}, []),
    ("from the end", {("t", 0): 20}, LATEST, []),
]


@pytest.mark.parametrize(("starting", "ending", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_ranges(starting: Place, ending: Place, want: list[tuple[int, int]]) -> None:
    made = plan([span(0, 10, 20)], starting, ending, fail_on_data_loss=True)
    assert [(part.start, part.end) for part in made.ranges] == want
    assert not made.losses


LOSSES: list[tuple[str, Place, Place, str, list[tuple[int, int]]]] = [
    ("retention", {("t", 0): 4}, LATEST, "6 offsets from 4 to 10", [(10, 20)]),
    ("all deleted", {("t", 0): 4}, {("t", 0): 8}, "4 offsets from 4 to 8", []),
    ("a shorter log", EARLIEST, {("t", 0): 25}, "5 offsets from 20 to 25", [(10, 20)]),
    ("a start after the end", {("t", 0): 23}, LATEST, "3 offsets from 20 to 23", []),
]


@pytest.mark.parametrize(("starting", "ending", "text", "left"), [c[1:] for c in LOSSES], ids=[c[0] for c in LOSSES])
def test_a_loss_fails_the_read_or_is_reported(
    starting: Place, ending: Place, text: str, left: list[tuple[int, int]]
) -> None:
    with pytest.raises(DataLoss, match=f"{text}.*failOnDataLoss"):
        plan([span(0, 10, 20)], starting, ending, fail_on_data_loss=True)
    made = plan([span(0, 10, 20)], starting, ending, fail_on_data_loss=False)
    assert [(part.start, part.end) for part in made.ranges] == left
    assert len(made.losses) == 1 and text in made.losses[0]


def test_offsets_must_name_exactly_the_partitions_that_are_read() -> None:
    spans = [span(0, 0, 9), span(1, 0, 9)]
    with pytest.raises(ConfigError, match="startingOffsets leaves out t-1"):
        plan(spans, {("t", 0): 1}, LATEST, fail_on_data_loss=True)
    with pytest.raises(ConfigError, match="endingOffsets names u-0"):
        plan(spans, EARLIEST, {("t", 0): 1, ("t", 1): 1, ("u", 0): 1}, fail_on_data_loss=True)
    with pytest.raises(ConfigError, match="after its end"):
        plan([span(0, 0, 9)], {("t", 0): 5}, {("t", 0): 3}, fail_on_data_loss=True)


@st.composite
def spans_and_places(draw: st.DrawFn) -> tuple[list[LogSpan], dict[tuple[str, int], int], dict[tuple[str, int], int]]:
    spans = []
    starting, ending = {}, {}
    for partition in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, 20))
        made = span(partition, start, start + draw(st.integers(0, 20)))
        spans.append(made)
        first = draw(st.integers(0, 45))
        starting["t", partition] = draw(st.sampled_from([EARLIEST, first]))
        ending["t", partition] = draw(st.one_of(st.just(LATEST), st.integers(first, 50)))
        if starting["t", partition] == EARLIEST and ending["t", partition] != LATEST:
            ending["t", partition] = max(ending["t", partition], start)
    return draw(st.permutations(spans)), starting, ending


@given(spans_and_places())
def test_a_plan_covers_every_requested_existing_offset_once(
    drawn: tuple[list[LogSpan], dict[tuple[str, int], int], dict[tuple[str, int], int]],
) -> None:
    spans, starting, ending = drawn
    made = plan(spans, starting, ending, fail_on_data_loss=False)
    planned = [(part.partition, offset) for part in made.ranges for offset in range(part.start, part.end)]
    wanted = []
    lost = False
    for s in sorted(spans, key=lambda s: s.partition):
        first, last = starting["t", s.partition], ending["t", s.partition]
        first = s.start if first == EARLIEST else first
        last = s.end if last == LATEST else last
        wanted += [(s.partition, offset) for offset in range(first, last) if s.start <= offset < s.end]
        lost = lost or first < s.start or max(first, last) > s.end
    assert planned == wanted
    assert bool(made.losses) == lost
    assert len({part.partition for part in made.ranges}) == len(made.ranges)
