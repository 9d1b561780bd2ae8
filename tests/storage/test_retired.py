"""Segments that leave a log: renamed by the writer, read on by those who hold them, freed in steps."""

from __future__ import annotations

import contextlib
import itertools
import random

import pytest

from jepsen.sim.machine.disk import SimDisk
from quorumlog_storage.files.disk import FileMissing
from quorumlog_storage.files.eviction import LogResources
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogUnreadable
from quorumlog_storage.log.log_view import OffsetOutOfRange
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.segment.log_file import CorruptBatch
from quorumlog_storage.segment.retired import STEP_FILES, Freeing, Retired
from tests.rules import rule
from tests.storage.storage_samples import batch

PATH = "/d/t-0"
CONFIG = LogConfig(segment_bytes=300, delete_delay_ms=1_234)


def filled(disk: SimDisk, retired: Retired | None, batches: int = 12) -> Log:
    disk.make_directory("/d")
    disk.sync_directory("/")
    log = Log.open(disk, PATH, CONFIG, retired=retired)
    for _ in range(batches):
        log.append([batch(log.end_offset, [b"a", b"b", b"c"])])
    log.sync()
    assert len(log.segment_bases) > 3
    return log


def names(disk: SimDisk, suffix: str) -> list[str]:
    return [name for name in disk.list(PATH) if name.endswith(suffix)]


def test_retired_segments_keep_their_files_under_another_name() -> None:
    disk, retired = SimDisk(), Retired()
    log = filled(disk, retired)
    bases = log.segment_bases
    log.advance_start(bases[2])
    taken = retired.take()
    assert [one.path for one in taken] == [f"{PATH}/{base:020d}.log.deleted" for base in bases[:2]]
    assert {one.delay_ms for one in taken} == {1_234} and not retired
    assert names(disk, ".log.deleted") == [f"{base:020d}.log.deleted" for base in bases[:2]]
    assert not [name for name in names(disk, ".index") if int(name[:20]) < bases[2]], "an index stayed behind"


@rule("storage 1.29")
@pytest.mark.parametrize("is_open", [True, False], ids=["open", "closed when idle"])
def test_a_reader_that_holds_a_retired_segment_reads_on(is_open: bool) -> None:
    disk, retired = SimDisk(), Retired()
    log = filled(disk, retired)
    view = log.view
    before = view.read(0, 1, log.end_offset).data
    log.advance_start(log.segment_bases[2])
    if not is_open:
        disk.resources.open_files.empty()
    assert view.read(0, 1, log.end_offset).data == before
    with pytest.raises(OffsetOutOfRange):
        log.read(0, 1, upper_bound=log.end_offset)


def test_a_read_that_meets_a_shrinking_segment_does_not_fail_the_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader took its view before the start moved, holds the open file, and reads after it was cut."""
    disk, retired = SimDisk(), Retired()
    disk.resources = LogResources(100, 1 << 20)
    log = filled(disk, retired)
    old, last, end = log.view, log.segment_bases[1] - 1, log.end_offset
    log.advance_start(log.segment_bases[2])
    first = old.segments[0].log.file.size()
    Freeing(disk, retired.take()).free(step_bytes=first - 10)
    with pytest.raises(CorruptBatch):
        old.read(last, 1, end)
    views = [old, log.view]
    monkeypatch.setattr(Log, "view", property(lambda _: views.pop(0) if len(views) > 1 else views[0]), raising=False)
    with contextlib.suppress(OffsetOutOfRange, LogUnreadable):
        pytest.fail(f"read {log.read_part(last, 1, upper_bound=end)}")
    assert log.read_failure is None


@rule("storage 8.5")
def test_freeing_takes_steps_of_bounded_size() -> None:
    disk, retired = SimDisk(), Retired()
    log = filled(disk, retired)
    log.advance_start(log.segment_bases[2])
    freeing = Freeing(disk, retired.take())

    def left() -> int:
        return sum(disk.open(f"{PATH}/{name}").size() for name in names(disk, ".log.deleted"))

    sizes = [left()]
    while not freeing.free(step_bytes=100):
        sizes.append(left())
    assert len(sizes) > 3 and all(0 <= before - after <= 100 for before, after in itertools.pairwise(sizes))
    assert not names(disk, ".deleted")


def test_a_step_frees_a_bounded_number_of_files() -> None:
    disk, retired = SimDisk(), Retired()
    log = filled(disk, retired, batches=4 * STEP_FILES)
    log.advance_start(log.end_offset)
    freeing, many = Freeing(disk, retired.take()), len(names(disk, ".log.deleted"))
    assert many > STEP_FILES
    assert not freeing.free(1 << 30) and len(names(disk, ".log.deleted")) == many - STEP_FILES
    assert freeing.free(1 << 30) and not names(disk, ".deleted")


def test_the_new_names_are_durable_before_a_byte_is_freed() -> None:
    for seed in range(20):
        disk, retired = SimDisk(), Retired()
        log = filled(disk, retired)
        log.advance_start(log.segment_bases[2])
        Freeing(disk, retired.take()).free(step_bytes=10)
        disk.crash(random.Random(seed))
        assert f"{0:020d}.log" not in disk.list(PATH), "a segment came back with a part of its bytes"


@rule("log 8.13")
def test_what_a_process_left_is_handed_over_by_the_next_opening() -> None:
    disk, retired = SimDisk(), Retired()
    log = filled(disk, retired)
    start = log.segment_bases[2]
    log.advance_start(start)
    log.close()
    left = names(disk, ".log.deleted")
    again = Retired()
    Log.open(disk, PATH, CONFIG, clean=True, log_start=start, retired=again)
    taken = again.take()
    assert [one.path for one in taken] == [f"{PATH}/{name}" for name in left]
    assert names(disk, ".deleted") == left, "a cache was kept"
    assert Freeing(disk, taken).free(1 << 30) and not names(disk, ".deleted")


def test_segments_that_came_back_make_no_hole() -> None:
    """A power cut may undo the renaming of some of the segments, and not of those after them."""
    disk, retired = SimDisk(), Retired()
    log = filled(disk, retired)
    start, end, kept = log.segment_bases[3], log.end_offset, log.read(log.segment_bases[3], 1, upper_bound=99)
    log.advance_start(start)
    log.close()
    disk.rename(f"{PATH}/{0:020d}.log.deleted", f"{PATH}/{0:020d}.log")
    opened = Log.open(disk, PATH, CONFIG, recovery_point=end, log_start=start, retired=retired)
    assert (opened.segment_bases[0], opened.end_offset) == (start, end)
    assert opened.read(start, 1, upper_bound=end) == kept and not opened.recovery.is_damage


def test_a_truncation_retires_what_follows() -> None:
    disk, retired = SimDisk(), Retired()
    log = filled(disk, retired)
    bases = log.segment_bases
    log.truncate_to(bases[1])
    assert [one.path for one in retired.take()] == [f"{PATH}/{b:020d}.log.deleted" for b in reversed(bases[2:])]
    disk.crash(random.Random(1))
    assert f"{bases[2]:020d}.log" not in disk.list(PATH), "the old records could come back behind new ones"


def test_a_restart_cuts_no_large_file() -> None:
    disk, retired = SimDisk(), Retired()
    log = filled(disk, retired)
    bases = log.segment_bases
    sizes = {segment.log.path: segment.size for segment in log.view.segments}
    log.truncate_fully(500)
    taken = retired.take()
    assert len(taken) == len(bases) and (log.start_offset, log.end_offset) == (500, 500)
    first = f"{PATH}/{0:020d}.log"
    assert disk.open(f"{first}.deleted").size() == sizes[first]
    assert log.epochs.entries == ()


def test_without_a_queue_the_files_are_removed_at_once() -> None:
    disk = SimDisk()
    log = filled(disk, None)
    log.advance_start(log.segment_bases[2])
    assert not names(disk, ".deleted") and f"{0:020d}.log" not in disk.list(PATH)


def test_a_partition_that_has_left_needs_no_freeing() -> None:
    disk, retired = SimDisk(), Retired()
    log = filled(disk, retired)
    log.advance_start(log.segment_bases[2])
    log.close()
    log.abandon()
    disk.rename(PATH, "/d/gone")
    assert Freeing(disk, retired.take()).free(1)
    with pytest.raises(FileMissing):
        disk.list(PATH)
