"""The partitions' directories: found by their topic ids, moved out of the way, freed in steps."""

from __future__ import annotations

import errno
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from storage_samples import disk_with_data

from jepsen.sim.machine.disk import SimDisk
from quorumlog.topic_name import METADATA_TOPIC
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.files.names import DELETE, STRAY, log_name
from quorumlog_storage.segment.log_config import LogConfig
from tests.rules import rule

TOPIC_ID, UNIQUE = bytes(range(16)), bytes(range(16, 32))
NAME = f"t-0.{UNIQUE.hex()}-delete"
PATH = f"/data/{NAME}"


@rule("storage 3.21")
def test_partitions_are_found_by_their_topic_ids() -> None:
    disk = disk_with_data()
    directories = PartitionDirectories(disk, "/data")
    PartitionLog.create(directories, ("orders", 7), TOPIC_ID, LogConfig())
    for other in (
        "half-0",
        "lost+found",
        "remote-log-index-cache",
        f"{METADATA_TOPIC}-0",
        NAME,
        f"a-1.{UNIQUE.hex()}-stray",
    ):
        disk.make_directory(f"/data/{other}")
    disk.make_directory("/data/bad-1")
    disk.open("/data/bad-1/partition.metadata", create=True).pwritev([b"version: 0\ntopic_id: ?"], 0)
    disk.make_directory("/data/full-2")
    disk.open(f"/data/full-2/{log_name(0)}", create=True).pwritev([b"records"], 0)
    disk.open("/data/file-0", create=True)
    found = directories.find()
    assert found.partitions == {(TOPIC_ID, 7): "orders"}
    assert found.nameless == (("bad", 1), ("half", 0))
    assert found.unreadable == (("full", 2),)
    assert found.leftovers == (NAME,)


@rule("log 3.16", "log 7.19")
def test_a_move_is_durable_and_takes_the_offsets_with_it() -> None:
    disk = disk_with_data()
    directories = PartitionDirectories(disk, "/data")
    log = PartitionLog.create(directories, ("t", 0), TOPIC_ID, LogConfig())
    for file in (directories.recovery_points, directories.log_starts, directories.high_watermarks):
        file.update({("t", 0): 4, ("u", 0): 5})
    log.close()
    assert directories.move_away(("t", 0), UNIQUE, STRAY) == f"t-0.{UNIQUE.hex()}-stray"
    disk.crash(random.Random(1))
    again = PartitionDirectories(disk, "/data")
    assert disk.exists(f"/data/t-0.{UNIQUE.hex()}-stray/partition.metadata") and not disk.exists("/data/t-0")
    for file in (again.recovery_points, again.log_starts, again.high_watermarks):
        assert file.offsets == {("u", 0): 5}


def test_a_move_of_what_is_not_there_still_forgets_its_offsets() -> None:
    directories = PartitionDirectories(disk_with_data(), "/data")
    directories.log_starts.update({("t", 0): 4})
    directories.move_away(("t", 0), UNIQUE, DELETE)
    assert not directories.log_starts.offsets


def test_the_quorums_log_is_never_moved_away() -> None:
    disk = disk_with_data()
    path = f"/data/{METADATA_TOPIC}-0"
    disk.make_directory(path)
    directories = PartitionDirectories(disk, "/data")
    directories.recovery_points.update({(METADATA_TOPIC, 0): 4})
    for mark in (DELETE, STRAY):
        directories.move_away((METADATA_TOPIC, 0), UNIQUE, mark)
    assert disk.exists(path) and directories.recovery_points.offsets == {(METADATA_TOPIC, 0): 4}


def held_bytes(disk: SimDisk) -> int:
    return sum(disk.open(f"{PATH}/{name}").size() for name in disk.list(PATH) if name.endswith(".log"))


@rule("storage 7.12")
@given(sizes=st.lists(st.integers(0, 5_000), max_size=6), step_bytes=st.integers(1, 2_000))
def test_every_step_frees_a_bounded_amount_until_nothing_is_left(sizes: list[int], step_bytes: int) -> None:
    disk = disk_with_data()
    disk.make_directory(PATH)
    disk.open(f"{PATH}/partition.metadata", create=True).pwritev([b"version: 0"], 0)
    for number, size in enumerate(sizes):
        disk.open(f"{PATH}/{log_name(number)}", create=True).pwritev([bytes(size)], 0)
    directories = PartitionDirectories(disk, "/data")
    held = sum(sizes)
    steps = 1
    while not directories.free(NAME, step_bytes):
        left = held_bytes(disk)
        assert held - step_bytes <= left < held
        held = left
        steps += 1
    assert held <= step_bytes and steps <= sum(sizes) // step_bytes + 1
    assert disk.list("/data") == []


@rule("storage 2.8", "log 4.5")
def test_what_is_gone_already_is_gone() -> None:
    assert PartitionDirectories(disk_with_data(), "/data").free(NAME, 1)


def test_no_log_is_made_at_a_mount_point_whose_file_system_is_gone() -> None:
    """It would be acknowledged until the next probe, and hidden once the file system is mounted again."""
    disk = SimDisk()
    disk.make_directory("/d0")
    directories = PartitionDirectories(disk, "/d0")
    directories.find()
    disk.mounts.unmount("/d0", leaves_a_directory=True)
    with pytest.raises(DiskError, match="unmounted while the node used it") as raised:
        directories.make_name(("t", 0))
    assert raised.value.errno == errno.ESTALE and disk.list("/d0") == []


@pytest.mark.parametrize("leaves_a_directory", [True, False])
def test_no_log_leaves_a_mount_point_whose_file_system_is_gone(leaves_a_directory: bool) -> None:
    """It is still on the disk. Whoever heard that it has left would go on without it, and meet it again later."""
    disk = disk_with_data()
    directories = PartitionDirectories(disk, "/data")
    log = PartitionLog.create(directories, ("t", 0), TOPIC_ID, LogConfig())
    log.close()
    directories.find()
    disk.mounts.unmount("/data", leaves_a_directory=leaves_a_directory)
    with pytest.raises(DiskError):
        directories.move_away(("t", 0), UNIQUE, DELETE)
    disk.mounts.mount("/data")
    assert PartitionDirectories(disk, "/data").find().partitions == {(TOPIC_ID, 0): "t"}
