"""Files that have left a log are open no longer than their readers read: until then a disk keeps their bytes."""

from __future__ import annotations

from itertools import islice

import pytest
from cleaning_samples import CONFIG, add, add_marker, reopened, spec_of
from storage_samples import PATH, SMALL, append, read_all

from jepsen.soak.counting_disk import CountingDisk
from quorumlog_storage.cleaning.round import clean
from quorumlog_storage.cleaning.spec import GroupCleaned, RoundDone, RoundSpec
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.files.disk import FileMissing
from quorumlog_storage.files.eviction import LogResources
from quorumlog_storage.files.names import CLEANED_SUFFIX, SWAP_SUFFIX
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.swap import Superseded
from tests.rules import rule


def counting() -> CountingDisk:
    disk = CountingDisk(sector_bytes=48)
    disk.resources = LogResources()  # so many files may be open that none has to leave
    disk.make_directory("/data")
    disk.sync_directory("/")
    return disk


def filled(disk: CountingDisk) -> Log:
    log = reopened(disk)
    for number in range(30):
        add(log, [(b"k%d" % (number % 4), b"v%d" % number), (b"t", b"w%d" % number)])
        if number % 7 == 3:
            add(
                log, [(b"k", b"%d" % number)], producer_id=5, producer_epoch=0, base_sequence=number, transactional=True
            )
            add_marker(log, 5, committed=number % 2 == 0)
    return log


def spec_alone(disk: CountingDisk) -> RoundSpec:
    """Of a log that its broker has closed, so that only the round has files open."""
    log = filled(disk)
    bases = log.segment_bases
    spec = spec_of(log, bases[len(bases) // 2])
    log.close()
    log.abandon()
    assert disk.open_files == 0
    return spec


@rule("storage 1.31")
@pytest.mark.parametrize("mark", ["delete", "stray"])
def test_a_partition_that_left_has_nothing_open_although_its_log_is_still_known(mark: str) -> None:
    disk = counting()
    directories = PartitionDirectories(disk, "/data")
    partition = PartitionLog.create(directories, ("t", 0), b"1" * 16, SMALL)
    for _ in range(6):
        append(partition.log, [b"x" * 150])
    partition.log.sync()
    assert len(read_all(partition.log)) == 6 and disk.open_files > 1
    reading = partition.log.view.segments[0].log.file
    name = partition.delete(b"2" * 16) if mark == "delete" else partition.set_aside(b"2" * 16)
    assert name.endswith(mark)
    assert reading.pread(0, 10), "a read that is under way goes on"
    del reading
    assert disk.open_files == 0
    with pytest.raises(FileMissing):
        partition.log.read(0, 100, upper_bound=6)
    assert disk.open_files == 0
    if mark == "delete":
        while not directories.free(name, 100):
            pass
        assert disk.open_gone() == []


@rule("storage 1.31")
def test_a_round_leaves_nothing_open_wherever_it_ends() -> None:
    disk = counting()
    spec = spec_alone(disk)
    steps = len(list(clean(disk, spec)))
    assert steps > 10 and disk.open_files == 0
    for count in range(1, steps):
        going = clean(disk, spec)
        for _ in islice(going, count):
            pass
        going.close()  # type: ignore[attr-defined]
        assert disk.open_files == 0, f"after step {count} of {steps}"


def test_what_a_round_has_written_and_nobody_takes_is_not_kept_open() -> None:
    disk = counting()
    log = filled(disk)
    spec, cuts = spec_of(log), log.cuts
    sources = {segment.base_offset: segment for segment in log.view.segments}
    tried = 0
    for step in clean(disk, spec):
        if isinstance(step, GroupCleaned) and step.outputs:
            tried += 1
            wrong = [(base, size + 1) for base, size in step.outputs]
            with pytest.raises(Superseded):
                log.replace_segments([sources[base] for base in step.sources], wrong, cuts)
        elif isinstance(step, RoundDone):
            break
    log.close()
    log.abandon()
    assert tried and disk.open_files == 0


def test_a_start_that_ends_a_swap_keeps_each_file_open_once() -> None:
    disk = counting()
    spec = spec_alone(disk)
    group = next(step for step in clean(disk, spec) if isinstance(step, GroupCleaned) and step.outputs)
    assert group.bytes_after < group.bytes_before
    for name in disk.list(PATH):
        if name.endswith(CLEANED_SUFFIX):
            disk.rename(f"{PATH}/{name}", f"{PATH}/{name.removesuffix(CLEANED_SUFFIX)}{SWAP_SUFFIX}")
    disk.sync_directory(PATH)
    log = Log.open(disk, PATH, CONFIG, clean=True)
    log.close()
    log.abandon()
    assert disk.open_files == 0
