"""A partition's log: whose directory it opens, what it syncs, and which lines of the offset files are its own."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest
from storage_samples import batch, disk_with_data

from jepsen.sim.machine.disk import SimDisk, SimFile
from jepsen.sim.machine.disk_faults import Fail, Fault, Operation
from quorumlog_storage.directory.log_checkpoints import checkpoint_high_watermarks, checkpoint_logs
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog, WrongTopicId
from quorumlog_storage.directory.partition_metadata import BadPartitionMetadata, read_topic_id
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.files.names import log_name
from quorumlog_storage.log.log_errors import LogUnreadable
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.writer.directory_life import DirectoryOffline, Generation
from quorumlog_storage.writer.writer import CallJob, DirectoryWriter
from tests.rules import rule

T, ID, OTHER_ID, UNIQUE = ("t", 0), bytes([1]) * 16, bytes([2]) * 16, bytes([9]) * 16
PATH = "/data/t-0"
CONFIG = LogConfig()


def created(disk: SimDisk, records: int = 0) -> tuple[PartitionDirectories, PartitionLog]:
    directories = PartitionDirectories(disk, "/data")
    held = PartitionLog.create(directories, T, ID, CONFIG)
    for _ in range(records):
        held.log.append([batch(held.log.end_offset, [b"v"])])
    held.log.sync()
    return directories, held


@rule("log 3.15")
def test_a_new_partition_costs_one_sync_of_each_directory() -> None:
    disk = disk_with_data()
    synced: list[tuple[str, str]] = []

    def note(operation: Operation) -> Fault | None:
        if operation.kind.startswith("sync"):
            synced.append((operation.kind, operation.path))
        return None

    disk.faults = note
    created(disk)
    assert synced == [("sync", f"{PATH}/partition.metadata.tmp"), ("sync_directory", PATH), ("sync_directory", "/data")]


@rule("storage 3.7", "log 3.15")
def test_a_log_opens_for_its_own_topic_id_only() -> None:
    disk = disk_with_data()
    created(disk, records=2)
    directories = PartitionDirectories(disk, "/data")
    for open_log in (PartitionLog.open, PartitionLog.open_or_create):
        with pytest.raises(WrongTopicId, match="move it out of the log directory"):
            open_log(directories, T, OTHER_ID, CONFIG)
    assert PartitionLog.open(directories, T, ID, CONFIG).log.end_offset == 2


def shortened(disk: SimDisk) -> None:
    """A log of four batches whose recovery point is 4 loses the last one."""
    directories, held = created(disk, records=4)
    checkpoint_logs(directories, [held])
    segment = disk.open(f"{PATH}/{log_name(0)}")
    segment.truncate(segment.size() - 10)
    segment.sync()


def test_a_loss_of_synced_records_is_remembered_until_it_is_told() -> None:
    disk = disk_with_data()
    shortened(disk)
    for _ in range(3):
        disk.kill()
        held = PartitionLog.open(PartitionDirectories(disk, "/data"), T, ID, CONFIG)
        assert (held.log.end_offset, held.lost_before) == (3, 4)
    held.forget_loss()
    disk.kill()
    assert PartitionLog.open(PartitionDirectories(disk, "/data"), T, ID, CONFIG).lost_before == 0


@pytest.mark.parametrize("at", range(1, 25))
def test_a_loss_is_remembered_wherever_the_process_ends(at: int) -> None:
    disk = disk_with_data()
    shortened(disk)
    disk.kill()
    end = disk.operations + at
    disk.faults = lambda operation: Fail() if operation.index >= end else None
    with suppress(DiskError, LogUnreadable):
        PartitionLog.open(PartitionDirectories(disk, "/data"), T, ID, CONFIG)
    disk.faults = lambda _: None
    disk.kill()
    assert PartitionLog.open(PartitionDirectories(disk, "/data"), T, ID, CONFIG).lost_before == 4


def test_the_loss_of_a_log_that_was_set_aside_is_not_its_successors() -> None:
    disk = disk_with_data()
    shortened(disk)
    directories = PartitionDirectories(disk, "/data")
    PartitionLog.open(directories, T, ID, CONFIG).set_aside(UNIQUE)
    PartitionLog.create(directories, T, ID, CONFIG)
    disk.kill()
    assert PartitionLog.open(PartitionDirectories(disk, "/data"), T, ID, CONFIG).lost_before == 0


def test_records_without_a_readable_topic_id_are_nobodys() -> None:
    disk = disk_with_data()
    created(disk, records=2)
    metadata = disk.open(f"{PATH}/partition.metadata")
    metadata.pwritev([b"?"], 0)
    with pytest.raises(BadPartitionMetadata):
        PartitionLog.open_or_create(PartitionDirectories(disk, "/data"), T, ID, CONFIG)
    disk.unlink(f"{PATH}/partition.metadata")
    with pytest.raises(WrongTopicId, match="belongs to no topic"):
        PartitionLog.open_or_create(PartitionDirectories(disk, "/data"), T, ID, CONFIG)


@pytest.mark.parametrize("at", range(1, 12))
def test_an_attempt_that_failed_is_finished_by_the_next_one(at: int) -> None:
    """Not by a failed disk, which ends the directory: by an error of this call alone, such as too many open files."""
    disk = disk_with_data()
    directories = PartitionDirectories(disk, "/data")
    end = disk.operations + at
    disk.faults = lambda operation: Fail() if operation.index == end else None
    with pytest.raises((DiskError, LogUnreadable)):
        PartitionLog.open_or_create(directories, T, ID, CONFIG)
    disk.faults = lambda _: None
    seen: list[str] = []
    disk.trace = lambda kind, path, _: seen.append(f"{kind} {path}")
    held = PartitionLog.open_or_create(directories, T, ID, CONFIG)
    assert held.log.end_offset == 0 and read_topic_id(disk, PATH) == ID
    assert "sync_directory /data" in seen, "its name was never made durable"


@rule("storage 10.2", "log 8.8")
def test_a_checkpoint_leaves_the_lines_of_logs_that_are_not_open() -> None:
    directories, held = created(disk_with_data(), records=3)
    for file in (directories.recovery_points, directories.log_starts, directories.high_watermarks):
        file.update({("later", 7): 5})
    checkpoint_high_watermarks(directories, {held: 2})
    checkpoint_logs(directories, [held])
    assert directories.high_watermarks.offsets == {T: 2, ("later", 7): 5}
    assert directories.recovery_points.offsets == {T: 3, ("later", 7): 5}
    assert directories.log_starts.offsets == {("later", 7): 5}


def test_a_checkpoint_leaves_out_a_log_whose_name_may_be_anothers() -> None:
    directories, old = created(disk_with_data(), records=3)
    assert old.delete(UNIQUE) == f"t-0.{UNIQUE.hex()}-delete"
    new = PartitionLog.create(directories, T, OTHER_ID, CONFIG)
    checkpoint_high_watermarks(directories, {old: 3})
    checkpoint_logs(directories, [old])
    assert not directories.high_watermarks.offsets and not directories.recovery_points.offsets
    checkpoint_logs(directories, [new, old])
    assert directories.recovery_points.offsets == {T: 0}


@rule("storage 10.2", "log 3.1")
def test_a_high_watermark_above_the_end_is_not_noted() -> None:
    directories, held = created(disk_with_data(), records=3)
    checkpoint_high_watermarks(directories, {held: 9})
    assert directories.high_watermarks.get(T) == 3


def test_a_log_opens_with_its_high_watermark_and_a_new_one_with_none() -> None:
    disk = disk_with_data()
    directories, held = created(disk, records=3)
    checkpoint_high_watermarks(directories, {held: 2})
    again = PartitionDirectories(disk, "/data")
    found = PartitionLog.open(again, T, ID, CONFIG)
    assert found.high_watermark == 2
    found.set_aside(UNIQUE)
    assert PartitionLog.create(again, T, ID, CONFIG).high_watermark == 0


@pytest.mark.parametrize("clean", [True, False])
def test_only_a_clean_directory_is_not_recovered(clean: bool) -> None:
    disk = disk_with_data()
    _, held = created(disk, records=3)
    held.close()
    again = PartitionLog.open(PartitionDirectories(disk, "/data", clean), T, ID, CONFIG)
    assert (again.log.recovery.scanned_bytes == 0) == clean


def test_a_start_past_the_end_is_our_own_mistake_and_noted_nowhere() -> None:
    directories, held = created(disk_with_data(), records=3)
    with pytest.raises(AssertionError, match="start 4 after the end 3"):
        held.raise_start(4)
    assert not directories.log_starts.offsets


def test_a_cut_that_breaks_off_fails_the_directory_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower whose cut only failed would go on to fetch at its old end, and so acknowledge what is gone."""
    generation = Generation("/data")
    _, held = created(disk_with_data(), records=5)
    held.log.guard.on_failure = generation.fail  # as a log directory does it
    writer = DirectoryWriter("/data", generation)

    def out_of_memory(file: SimFile, size: int) -> None:
        raise MemoryError

    monkeypatch.setattr(SimFile, "truncate", out_of_memory)
    (outcome,) = writer.write_phase([CallJob(lambda: held.truncate_to(2))])
    assert isinstance(outcome.error, DirectoryOffline) and isinstance(outcome.error.cause, MemoryError)
    assert held.log.end_offset < 5


def test_a_start_above_the_synced_end_makes_no_recovery_point_that_is_wrong() -> None:
    """Found by the state machine: after a power cut such a log was told to the controller as damaged."""
    disk = disk_with_data()
    directories = PartitionDirectories(disk, "/data")
    held = PartitionLog.create(directories, T, ID, LogConfig(durable=False))
    for _ in range(5):
        held.log.append([batch(held.log.end_offset, [b"v"])])
    assert held.log.synced_end == 0
    held.raise_start(3)
    assert held.log.synced_end == 5
    checkpoint_logs(directories, [held])
    disk.crash(Random(1))
    again = PartitionLog.open(PartitionDirectories(disk, "/data"), T, ID, LogConfig(durable=False))
    assert (again.log.start_offset, again.log.end_offset, again.lost_before) == (3, 5, 0)
