"""Plans: ranges cover what was requested, never overlap, and every loss is reported."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.client.errors import ConfigError
from quorumlog.client.offsets import EARLIEST, LATEST
from quorumlog.messages.fetch import OffsetRange
from quorumlog.spark.read.options import parse_read_options
from quorumlog.spark.read.places import Place, TimePlace
from quorumlog.spark.read.planning import (
    DataLoss,
    LogSpan,
    PartitionRange,
    found_by_time,
    plan,
    split,
    tasks_of,
    times_of,
)

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


def by_time(times_ms: int | dict[tuple[str, int], int], *, latest_if_none: bool = False) -> TimePlace:
    return TimePlace(option="startingTimestamp", times_ms=times_ms, latest_if_none=latest_if_none)


def test_times_are_looked_up_for_the_partitions_that_are_read() -> None:
    spans = [span(0, 0, 9), span(1, 0, 9)]
    assert times_of(by_time(7), spans) == {("t", 0): 7, ("t", 1): 7}
    assert times_of(by_time({("t", 0): 7, ("t", 1): 8}), spans) == {("t", 0): 7, ("t", 1): 8}
    with pytest.raises(ConfigError, match="leaves out t-1"):
        times_of(by_time({("t", 0): 7}), spans)


def test_a_partition_without_a_record_at_or_after_the_time() -> None:
    """SPARK-35611: each such partition is named, or is at its end."""
    spans = [span(0, 0, 9), span(1, 0, 6), span(2, 4, 4)]
    found = {("t", 0): 3, ("t", 1): -1, ("t", 2): -1}
    with pytest.raises(ConfigError, match=r"no record at or after the time in t-1, t-2; .*Strategy=latest"):
        found_by_time(by_time(7), spans, found)
    offsets = found_by_time(by_time(7, latest_if_none=True), spans, found)
    assert offsets == {("t", 0): 3, ("t", 1): 6, ("t", 2): 4}


def test_a_start_after_the_end_is_a_mistake_wherever_both_come_from() -> None:
    """Also where they were found by time, as in Kafka's source: the offsets of times are in the order of the times."""
    with pytest.raises(ConfigError, match="t-0 would start at 5, after its end at 3"):
        plan([span(0, 0, 9)], {("t", 0): 5}, {("t", 0): 3}, fail_on_data_loss=True)
    assert not plan([span(0, 0, 9)], {("t", 0): 5}, {("t", 0): 5}, fail_on_data_loss=True).ranges


def ranges(*sizes: int) -> list[PartitionRange]:
    return [
        PartitionRange(topic="t", topic_id=ID, partition=partition, start=100, end=100 + size)
        for partition, size in enumerate(sizes)
    ]


# (sizes, minPartitions, maxRecordsPerPartition) and the sizes of each partition's tasks, as Kafka's source cuts them
CUTS: list[tuple[str, tuple[int, ...], int, int, list[list[int]]]] = [
    ("as they are", (10, 20), 0, 0, [[10], [20]]),
    ("enough of them", (10, 20), 2, 0, [[10], [20]]),
    ("one in three", (100,), 3, 0, [[33, 33, 34]]),
    ("in proportion", (100, 200), 6, 0, [[50, 50], [50, 50, 50, 50]]),
    ("the small one stays whole", (1, 1000), 4, 0, [[1], [333, 333, 334]]),
    ("fewer offsets than tasks", (2, 1), 64, 0, [[1, 1], [1]]),
    ("an empty one has no task", (0, 10), 2, 0, [[], [5, 5]]),
    ("at most so many offsets", (10, 25), 0, 10, [[10], [8, 8, 9]]),
    ("both", (10, 25), 8, 10, [[5, 5], [4, 4, 4, 4, 4, 5]]),
]


@pytest.mark.parametrize(("sizes", "least", "most", "want"), [c[1:] for c in CUTS], ids=[c[0] for c in CUTS])
def test_ranges_are_cut_into_tasks(sizes: tuple[int, ...], least: int, most: int, want: list[list[int]]) -> None:
    found: list[list[int]] = [[] for _ in sizes]
    for part in split(ranges(*sizes), min_partitions=least, max_records=most):
        found[part.partition].append(part.end - part.start)
    assert found == want


@given(st.lists(st.integers(0, 5000), max_size=8), st.integers(0, 100), st.integers(0, 500))
def test_tasks_cover_the_ranges_without_overlap(sizes: list[int], least: int, most: int) -> None:
    whole = ranges(*sizes)
    tasks = split(whole, min_partitions=least, max_records=most)
    at = {part.partition: part.start for part in whole}
    for task in tasks:
        assert task.start == at[task.partition] and task.end > task.start
        assert not most or task.end - task.start <= most
        at[task.partition] = task.end
    assert at == {part.partition: part.end for part in whole}


@given(data=st.data(), most=st.sampled_from([0, 1, 7, 10_000]), least=st.sampled_from([0, 1, 9]))
def test_tasks_cover_are_disjoint_and_cut_by_bytes_between_batches(data: st.DataObject, most: int, least: int) -> None:
    """Logs of any batches; of what is described some batches may not be cut apart, as an index does not know all."""
    max_bytes = data.draw(st.integers(1, 300))
    logs = data.draw(st.lists(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 200)), min_size=1), min_size=1))
    whole, bounds, described = [], dict[int, set[int]](), dict[tuple[str, int], list[OffsetRange]]()
    for partition, batches in enumerate(logs):
        pieces, offset = [], 0
        for records, size in batches:
            pieces.append(OffsetRange(start_offset=offset, end_offset=offset + records, size_bytes=size))
            offset += records
            if len(pieces) > 1 and data.draw(st.booleans()):
                one, other = pieces[-2:]
                size = one.size_bytes + other.size_bytes
                pieces[-2:] = [OffsetRange(start_offset=one.start_offset, end_offset=offset, size_bytes=size)]
        start = data.draw(st.integers(0, offset - 1))
        end = data.draw(st.integers(start + 1, offset))
        whole.append(PartitionRange(topic="t", topic_id=ID, partition=partition, start=start, end=end, start_epoch=4))
        kept = [one for one in pieces if one.end_offset > start and one.start_offset < end]
        described["t", partition] = kept
        bounds[partition] = {start, end, *(one.start_offset for one in kept)}
    options = parse_read_options(
        {"bootstrap.servers": "h:1", "subscribe": "t", "maxBytesPerPartition": str(max_bytes)}
        | ({"maxRecordsPerPartition": str(most)} if most else {})
        | ({"minPartitions": str(least)} if least else {})
    )
    tasks = tasks_of(whole, options, lambda option, wanted: described)
    for part in whole:
        own = [task for task in tasks if task.partition == part.partition]
        assert (own[0].start, own[-1].end) == (part.start, part.end)
        assert all(one.end == other.start for one, other in pairwise(own)), "covered, and disjoint"
        assert [task.start_epoch for task in own] == [4] + [-1] * (len(own) - 1)
        if not most and not least:
            assert all({task.start, task.end} <= bounds[part.partition] for task in own), "aligned"
            for task in own:
                inside = [o for o in described["t", part.partition] if o.end_offset > task.start]
                inside = [o for o in inside if o.start_offset < task.end]
                assert sum(o.size_bytes for o in inside) <= max_bytes or len(inside) == 1
