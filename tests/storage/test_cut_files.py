"""What recovery cuts is kept, whenever the process ends meanwhile, and is never taken for a part of the log."""

from __future__ import annotations

import pytest
from storage_samples import PATH, append, disk_with_data, open_log, read_all

from jepsen.sim.machine.disk import SimDisk
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.files.names import CUT_SUFFIX, log_name, parse_segment_name

SEGMENTS, PER_SEGMENT = 3, 4


class Stopped(Exception):
    """The process ended here."""


def damaged_disk() -> tuple[SimDisk, list[bytes]]:
    """Three segments; a bit of the second batch of the second one has flipped. Returns what the log loses, in order."""
    disk = disk_with_data()
    log = open_log(disk)
    while len(log.segment_bases) < SEGMENTS:
        append(log, [b"x" * 40], epoch=1)
    append(log, [b"y" * 40], epoch=1)
    log.sync()
    _, second, third = log.segment_bases
    end_of_first_batch = log.view.segments[1].batch_end(0, log.view.segments[1].size)
    disk.kill()
    disk.flip_bit(f"{PATH}/{log_name(second)}", 8 * (end_of_first_batch + 70))
    tail = disk.read_bytes(f"{PATH}/{log_name(second)}")[end_of_first_batch:]
    return disk, [tail, disk.read_bytes(f"{PATH}/{log_name(third)}")]


def cut_files(disk: SimDisk) -> dict[str, bytes]:
    return {name: disk.read_bytes(f"{PATH}/{name}") for name in disk.list(PATH) if name.endswith(CUT_SUFFIX)}


def test_the_tail_and_the_segments_behind_it_are_kept() -> None:
    disk, lost = damaged_disk()
    log = open_log(disk)
    report = log.recovery
    assert list(cut_files(disk).values()) == lost
    assert [path.rpartition("/")[2] for path in report.kept] == list(cut_files(disk))
    assert report.cut_bytes == sum(len(part) for part in lost)
    assert report.is_damage and report.end_offset == log.end_offset
    assert all(parse_segment_name(name) is None for name in cut_files(disk))


def test_the_log_goes_on_as_if_the_files_were_not_there() -> None:
    disk, lost = damaged_disk()
    log = open_log(disk)
    end = log.end_offset
    append(log, [b"z"] * 3, epoch=2)
    log.close()
    records = read_all(log)
    disk.kill()
    again = open_log(disk, clean=True)
    assert (again.end_offset, again.recovery.is_damage) == (end + 3, False)
    assert read_all(again) == records
    assert list(cut_files(disk).values()) == lost


def test_nothing_is_lost_wherever_the_process_ends() -> None:
    stopped, after = 0, 1
    while stopped < after:
        disk, lost = damaged_disk()
        left = stopped = after

        def count(kind: str, path: str, digest: bytes) -> None:
            nonlocal left
            if kind in ("open", "unlink", "rename", "truncate", "sync", "sync_directory", "pwritev"):
                left -= 1
                if left == 0:
                    raise Stopped

        disk.trace = count
        try:
            open_log(disk)
        except Stopped:
            after += 1
        disk.trace = lambda kind, path, digest: None
        disk.kill()
        open_log(disk)
        held = list(cut_files(disk).values())
        assert held == lost, f"after {stopped} changes"
    assert stopped > 10


def test_a_second_cut_at_the_same_place_replaces_nothing() -> None:
    disk, lost = damaged_disk()
    log = open_log(disk)
    position = log.active.size
    log.close()
    disk.kill()
    disk.open(f"{PATH}/{log_name(log.active.base_offset)}").pwritev([b"other bytes"], position)
    open_log(disk)
    assert sorted(cut_files(disk).values()) == sorted([*lost, b"other bytes"])


def test_they_are_freed_with_the_partition() -> None:
    disk, _ = damaged_disk()
    open_log(disk)
    directories = PartitionDirectories(disk, PATH.rpartition("/")[0])
    name = directories.move_away(("t", 0), bytes(16), "delete")
    steps = 1
    while not directories.free(name, 100):
        steps += 1
    assert steps > 5 and not disk.exists(f"{directories.path}/{name}")


def test_a_disk_that_refuses_the_copy_stops_the_recovery_before_anything_is_cut() -> None:
    disk, _ = damaged_disk()
    second = sorted(name for name in disk.list(PATH) if name.endswith(".log"))[1]
    before = disk.read_bytes(f"{PATH}/{second}")

    def refuse(kind: str, path: str, digest: bytes) -> None:
        if kind == "pwritev" and ".cut" in path:
            raise DiskError(path, "write", 28)

    disk.trace = refuse
    with pytest.raises(DiskError):
        open_log(disk)
    assert disk.read_bytes(f"{PATH}/{second}") == before
