"""A log and its recovery point: what the line on disk says before, during and after each change."""

from __future__ import annotations

import pytest
from storage_samples import batch, disk_with_data

from jepsen.sim.machine.disk import SimDisk
from quorumlog_storage.directory.checkpointed_log import CheckpointedLog
from quorumlog_storage.directory.offset_files import RECOVERY_POINTS, OffsetFile
from quorumlog_storage.segment.log_config import LogConfig
from tests.rules import rule

PARTITION = ("t", 0)
PATH = "/data/t-0"
CONFIG = LogConfig(segment_bytes=300)


def noted(disk: SimDisk) -> int:
    return points_of(disk).get(PARTITION)


def points_of(disk: SimDisk) -> OffsetFile:
    return OffsetFile(disk, f"/data/{RECOVERY_POINTS}")


def opened(disk: SimDisk, *, clean: bool = False) -> CheckpointedLog:
    return CheckpointedLog.open(disk, PATH, CONFIG, points_of(disk), PARTITION, clean=clean, on_loss=lambda _: None)


def filled(disk: SimDisk) -> CheckpointedLog:
    """24 records in several segments, synced and noted."""
    held = opened(disk)
    for base in range(0, 24, 3):
        held.log.append([batch(base, [b"value"] * 3)])
    held.log.sync()
    held.note()
    assert noted(disk) == 24 and len(held.log.segment_bases) > 2
    return held


@pytest.mark.parametrize("offset", [1, 10, 23])
def test_a_cut_lowers_the_point_to_the_base_of_the_segment_that_is_cut(offset: int) -> None:
    disk = disk_with_data()
    held = filled(disk)
    base = max(base for base in held.log.segment_bases if base <= offset)
    end = held.truncate_to(offset)
    assert noted(disk) == base <= end <= offset


def test_a_cut_at_the_end_leaves_the_point() -> None:
    disk = disk_with_data()
    assert filled(disk).truncate_to(24) == 24 and noted(disk) == 24


def test_a_log_that_begins_anew_has_no_point() -> None:
    disk = disk_with_data()
    filled(disk).truncate_fully(31)
    assert noted(disk) == 0


@rule("storage 1.2", "storage 3.8")
def test_open_lowers_a_point_above_the_end() -> None:
    disk = disk_with_data()
    filled(disk).close()
    points_of(disk).update({PARTITION: 90})
    again = opened(disk)
    assert again.log.recovery.lost_below_recovery_point and noted(disk) == again.log.end_offset == 24


def test_close_notes_what_it_synced() -> None:
    disk = disk_with_data()
    held = filled(disk)
    held.log.append([batch(24, [b"value"])])
    assert noted(disk) == 24
    held.close()
    assert noted(disk) == 25
    assert opened(disk, clean=True).log.recovery.scanned_bytes == 0


def test_a_loss_is_noted_before_the_point_is_lowered() -> None:
    disk = disk_with_data()
    points_of(disk).update({PARTITION: 40})
    losses: list[tuple[int, int]] = []
    CheckpointedLog.open(
        disk,
        PATH,
        CONFIG,
        points_of(disk),
        PARTITION,
        clean=False,
        on_loss=lambda lost: losses.append((lost, noted(disk))),
    )
    assert losses == [(40, 40)] and noted(disk) == 0
