"""A look-up whose caller shares its threads leaves the rebuild of a wrong index to slices."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from storage_samples import PATH
from test_damaged_indexes import CONFIG, FALLING, START_MS, closed_log, files_of, look_everything_up, stored

from jepsen.sim.machine.disk import SimDisk
from quorumlog_storage.files.names import index_name, time_index_name
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.index_pair import RebuildNeeded, leaving_rebuilds
from quorumlog_storage.segment.log_file import CorruptBatch
from quorumlog_storage.segment.segment import Segment

LOOK_UPS: list[tuple[str, Callable[[Segment], object]]] = [
    ("an offset", lambda segment: segment.find(segment.base_offset + 9, segment.size)),
    ("a time", lambda segment: segment.indexes.seek_time(START_MS + 900, segment.size)),
    ("the largest time", lambda segment: segment.indexes.largest_below(segment.size)),
]


def opened_then_damaged(content: bytes) -> tuple[SimDisk, Log, Segment]:
    """Both index files of the second segment have this content, and nothing of them is in memory."""
    disk = closed_log(FALLING)
    log = Log.open(disk, PATH, CONFIG, clean=True)
    segment = log.view.segments[1]
    for name in (index_name, time_index_name):
        file = disk.open(f"{PATH}/{name(segment.base_offset)}")
        file.truncate(0)
        file.pwritev([content], 0)
    assert not segment.indexes.offsets.slot
    return disk, log, segment


def batches_of(segment: Segment) -> int:
    return len(list(segment.log.walk(0, segment.size)))


@pytest.mark.parametrize("look_up", [one for _, one in LOOK_UPS], ids=[name for name, _ in LOOK_UPS])
def test_a_look_up_is_repeated_after_the_slices(look_up: Callable[[Segment], object]) -> None:
    _, log, segment = opened_then_damaged(b"torn")
    with pytest.raises(RebuildNeeded) as needed:
        leaving_rebuilds(lambda: look_up(segment))
    steps = 1
    while not needed.value.indexes.rebuild_step(2):
        steps += 1
    assert steps == batches_of(segment) // 2 + 1 > 3
    leaving_rebuilds(lambda: look_up(segment))
    look_everything_up(log, FALLING)


def test_without_the_wrapper_it_is_built_at_once() -> None:
    _, log, _ = opened_then_damaged(b"torn")
    look_everything_up(log, FALLING)


def test_the_wrapper_ends_with_its_look_up() -> None:
    _, log, segment = opened_then_damaged(b"torn")
    with pytest.raises(RebuildNeeded):
        leaving_rebuilds(lambda: segment.find(segment.base_offset, segment.size) or segment.largest_timestamp)
    look_everything_up(log, FALLING)


@given(slice_batches=st.integers(1, 30), content=st.binary(max_size=40))
def test_slices_make_what_a_whole_rebuild_makes(slice_batches: int, content: bytes) -> None:
    whole = files_of(closed_log(FALLING))
    disk, log, segment = opened_then_damaged(content)
    while not segment.indexes.rebuild_step(slice_batches):
        pass
    assert segment.indexes.is_rebuilt
    segment.save_rebuilt()
    assert files_of(disk) == whole
    look_everything_up(log, FALLING)


def test_a_truncation_in_between_begins_anew() -> None:
    disk = closed_log(FALLING)
    log = Log.open(disk, PATH, CONFIG, clean=True)
    segment = log.active
    assert not segment.indexes.rebuild_step(1)
    log.truncate_to(segment.base_offset + 4)
    log.append([stored(log.end_offset, 10_000)])
    while not segment.indexes.rebuild_step(1):
        pass
    look_everything_up(log, FALLING)
    assert segment.largest_timestamp == START_MS + 10_000


def test_a_segment_that_cannot_be_walked_is_not_walked_for_each_look_up() -> None:
    disk, _, segment = opened_then_damaged(b"torn")
    magic = 16
    last = list(segment.log.walk(0, segment.size))[-1][0]
    disk.flip_bit(segment.log.path, 8 * (last + magic) + 6)
    with pytest.raises(RebuildNeeded) as needed:
        leaving_rebuilds(lambda: segment.find(segment.base_offset, segment.size))
    while not needed.value.indexes.rebuild_step(3):
        pass
    assert leaving_rebuilds(lambda: segment.find(segment.base_offset, segment.size)) == 0
    before = disk.operations
    with pytest.raises(CorruptBatch):
        leaving_rebuilds(segment.indexes.rebuild)
    assert disk.operations == before
