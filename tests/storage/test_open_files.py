"""How many descriptors and index bytes logs hold on a real disk, and what may not be closed."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jepsen.sim.machine.disk import SimDisk, SimFile
from quorumlog_storage.directory.log_checkpoints import checkpoint_logs
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.files.disk import DiskError, FileMissing
from quorumlog_storage.files.eviction import LogResources
from quorumlog_storage.files.file_handle import FileHandle
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_view import OffsetOutOfRange
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.segment.segment import Segment
from quorumlog_storage.writer.writer import AppendJob, DirectoryWriter
from tests.rules import rule
from tests.storage.storage_samples import SMALL, append, batch, disk_with_data, open_log, read_all

MANY_SEGMENTS = LogConfig(segment_bytes=256, index_interval_bytes=60)
SLACK = 4  # descriptors that the test's own process opens and closes meanwhile


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def log_of(disk: RealDisk, path: str, segments: int) -> Log:
    log = Log.open(disk, path, MANY_SEGMENTS)
    while len(log.segment_bases) < segments:
        append(log, [b"x" * 60, b"y" * 60])
        log.sync()
    return log


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = f"{tmp_path_factory.mktemp('log')}/t-0"
    log_of(RealDisk(), path, 600).close()
    return path


@pytest.fixture
def fast_path(tmp_path: Path) -> Iterator[str]:
    """A directory whose syncs cost nothing, where the machine has one."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else tmp_path) as path:
        yield path


@pytest.fixture
def before() -> Iterator[int]:
    yield descriptors()


@rule("storage 1.32")
@pytest.mark.parametrize("clean", [True, False])
def test_the_size_of_a_log_opens_none_of_its_600_segments(long_log: str, clean: bool, before: int) -> None:
    log = Log.open(RealDisk(LogResources(open_files_max=20)), long_log, MANY_SEGMENTS, clean=clean)
    opened = descriptors()
    assert opened - before <= 20 + SLACK
    sizes = {name: os.path.getsize(f"{long_log}/{name}") for name in os.listdir(long_log) if name.endswith(".log")}
    assert len(sizes) >= 600 and log.size_bytes == sum(sizes.values())
    assert descriptors() == opened


@rule("storage 1.31")
def test_reading_a_whole_log_keeps_few_descriptors_and_index_bytes(long_log: str, before: int) -> None:
    resources = LogResources(open_files_max=20, index_bytes_max=4_000)
    log = Log.open(RealDisk(resources), long_log, MANY_SEGMENTS, clean=True)
    assert len(read_all(log, max_bytes=150)) == log.end_offset
    assert descriptors() - before <= 20 + SLACK
    assert resources.indexes.weight <= 4_000
    files = [cache for segment in log.view.segments for cache in (segment.indexes.offsets, segment.indexes.times)]
    loaded = sum(file.entry_bytes * len(index) for file in files for index in file.slot.values())
    assert loaded <= 4_000


def test_writing_600_segments_keeps_few_descriptors(tmp_path: Path, before: int) -> None:
    resources = LogResources(open_files_max=10, index_bytes_max=4_000)
    log = log_of(RealDisk(resources), f"{tmp_path}/t-0", 600)
    assert descriptors() - before <= 10 + SLACK
    assert resources.indexes.weight <= 4_000 and len(read_all(log)) == log.end_offset


@rule("storage 1.31")
@pytest.mark.parametrize("durable", [True, False])
def test_3000_partitions_in_one_directory_hold_few_descriptors(fast_path: str, durable: bool, before: int) -> None:
    disk, writer = RealDisk(LogResources(open_files_max=100)), DirectoryWriter(fast_path)
    config = LogConfig(durable=durable)
    logs = [Log.open(disk, f"{fast_path}/t-{number}", config) for number in range(3_000)]
    for _ in range(2):
        for start in range(0, len(logs), 500):
            turn = [AppendJob(log, [batch(log.end_offset, [b"v"])]) for log in logs[start : start + 500]]
            outcomes = writer.write_phase(turn)
            assert descriptors() - before <= 100 + SLACK  # also where one turn writes to more files than may be open
            assert not any(outcome.error for outcome in outcomes)
            assert not any(outcome.error for outcome in writer.sync_phase())
    assert all(log.end_offset == 2 for log in logs)
    assert not durable or all(log.synced_end == 2 for log in logs)
    assert descriptors() - before <= 100 + SLACK


def test_more_files_than_may_be_open_leave_with_their_sync(tmp_path: Path) -> None:
    disk = RealDisk(LogResources(open_files_max=4))
    handles = [FileHandle(disk, f"{tmp_path}/{number}") for number in range(10)]
    for handle in handles:
        handle.create()
        handle.file_to_change.pwritev([b"unsynced"], 0)
    assert len(disk.resources.open_files) == 10
    for handle in handles:
        handle.sync()
    assert len(disk.resources.open_files) == 4
    assert {handle.file.pread(0, 8) for handle in handles} == {b"unsynced"}


@rule("storage 2.9")
def test_indexes_of_segments_that_are_written_to_leave_at_a_checkpoint() -> None:
    disk = disk_with_data()
    disk.resources = LogResources(index_bytes_max=3_000)
    directories = PartitionDirectories(disk, "/data")
    held = [PartitionLog.create(directories, ("t", number), b"1" * 16, SMALL) for number in range(20)]
    for one in held:
        append(one.log, [b"x" * 150])
        append(one.log, [b"y" * 30])
        one.log.sync()
    assert disk.resources.indexes.is_over
    checkpoint_logs(directories, held)
    assert disk.resources.indexes.weight <= 3_000
    for one in held:
        append(one.log, [b"z" * 40])
        assert len(read_all(one.log)) == 3


# --- what may be closed ---


def test_the_descriptor_that_wrote_is_the_one_that_is_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many other files are opened and synced between a write and its sync."""
    wrote: dict[str, set[int]] = {}
    write, sync = SimFile.pwritev, SimFile.sync

    def pwritev(file: SimFile, *args: object, **options: object) -> int:
        wrote.setdefault(file.path, set()).add(id(file))
        held.append(file)
        return write(file, *args, **options)  # type: ignore[arg-type]

    def synced(file: SimFile) -> None:
        if file.path.endswith(".log"):
            assert wrote.pop(file.path, {id(file)}) == {id(file)}
        sync(file)

    held: list[SimFile] = []  # so that no id is used twice
    monkeypatch.setattr(SimFile, "pwritev", pwritev)
    monkeypatch.setattr(SimFile, "sync", synced)
    disk = disk_with_data()
    logs = [Log.open(disk, f"/data/t-{number}", SMALL) for number in range(8)]
    for turn in range(60):
        log = logs[turn * 5 % 8]
        append(log, [b"%d" % turn])
        read_all(logs[turn * 3 % 8])
        if turn % 7 == 0:
            for one in logs:
                one.sync()
    assert len(disk.resources.open_files) <= disk.resources.open_files.limit + len(logs)


def test_what_is_written_where_all_others_are_held_is_read_by_the_same_descriptor() -> None:
    """The handle makes room for itself by leaving, before it is known that it will be held."""
    disk = SimDisk()
    disk.resources = LogResources(open_files_max=1)
    held, late = FileHandle(disk, "/held.log"), FileHandle(disk, "/late.log")
    for handle in (held, late):
        handle.create()
    for handle in (held, late):
        handle.file_to_change.pwritev([b"unsynced"], 0)
    assert late.file is late.file_to_change and held.file is held.file_to_change
    assert len(disk.resources.open_files) == 2


def test_a_descriptor_stays_after_a_failed_sync() -> None:
    disk = SimDisk()
    handle = FileHandle(disk, "/a")
    handle.create()
    written = handle.file_to_change
    written.pwritev([b"x"], 0)

    def failing() -> None:
        raise DiskError("/a", "sync", errno.EIO)

    written.sync = failing  # type: ignore[method-assign]
    with pytest.raises(DiskError):
        handle.sync()
    disk.resources.open_files.empty()
    assert handle.file_to_change is written


# --- what is gone ---


@rule("log 8.7")
def test_a_reader_of_a_deleted_partition_never_meets_the_new_one_of_its_name() -> None:
    disk = disk_with_data()
    directories = PartitionDirectories(disk, "/data")
    old = PartitionLog.create(directories, ("t", 0), b"1" * 16, SMALL)
    append(old.log, [b"old"])
    old.log.sync()
    log = old.log
    reading = log.view.segments[-1].log.file
    was_there = reading.pread(0, 1_000)
    old.delete(b"u" * 16)
    new = PartitionLog.create(directories, ("t", 0), b"2" * 16, SMALL)
    append(new.log, [b"new"])
    new.log.sync()
    assert b"old" in was_there and reading.pread(0, 1_000) == was_there, "a read that is under way goes on"
    with pytest.raises(FileMissing):
        read_all(log)
    assert [value for _, _, value in read_all(new.log)] == [b"new"]


@pytest.mark.parametrize("how", ["start", "restart"])
def test_a_reader_with_an_old_view_learns_the_range(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The segment goes while the reader is in it: by DeleteRecords or retention, or because the log begins anew."""
    log = open_log(disk_with_data())
    for number in range(30):
        append(log, [b"%d" % number] * 3)
    log.sync()
    find = Segment.find

    def found(segment: Segment, offset: int, limit: int) -> int:
        position = find(segment, offset, limit)
        monkeypatch.setattr(Segment, "find", find)
        if how == "start":
            log.advance_start(60)
        else:
            log.truncate_fully(90)
            append(log, [b"later"])
        for one in log.view.segments:
            one.log._handle.leave()
        segment.log._handle.leave()
        return position

    monkeypatch.setattr(Segment, "find", found)
    with pytest.raises(OffsetOutOfRange):
        log.read(3, 1_000, upper_bound=90)
