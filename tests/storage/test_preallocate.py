"""`preallocate`: a new segment has its room on the disk from its beginning, and gives back what it did not use."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from storage_samples import batch

from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.edge.room import reserve_room
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.log_config import LogConfig
from tests.rules import rule

SEGMENT_BYTES = 1 << 20
CONFIG = LogConfig(segment_bytes=SEGMENT_BYTES, preallocate=True)


def room(path: Path) -> int:
    """Bytes that the file takes on the disk."""
    return path.stat().st_blocks * 512


@pytest.fixture
def place(tmp_path: Path) -> Path:
    probe = tmp_path / "probe"
    with probe.open("wb") as file:
        reserve_room(file.fileno(), SEGMENT_BYTES)
        if os.fstat(file.fileno()).st_blocks == 0:
            pytest.skip("this system or file system reserves no room for a file")
    path = tmp_path / "log-0"
    path.mkdir()
    return path


@rule("storage 1.26", "log 4.7")
def test_a_segment_has_its_room_until_it_is_closed(place: Path) -> None:
    log = Log.open(RealDisk(), str(place), CONFIG)
    first = place / f"{0:020}.log"
    assert first.stat().st_size == 0 and room(first) >= SEGMENT_BYTES
    log.append([batch(0, [b"a" * 1_000])])
    assert first.stat().st_size < 2_000, "the room shows in the size"
    log.roll()
    second = place / f"{1:020}.log"
    assert room(first) < SEGMENT_BYTES // 2 and room(second) >= SEGMENT_BYTES
    log.append([batch(1, [b"b"])])
    log.close()
    assert room(second) < SEGMENT_BYTES // 2


@rule("storage 1.26", "log 4.7")
def test_after_a_kill_nothing_but_what_was_written_is_there(place: Path) -> None:
    log = Log.open(RealDisk(), str(place), CONFIG)
    log.append([batch(0, [b"a"]), batch(1, [b"b"])])
    log.sync()
    again = Log.open(RealDisk(), str(place), CONFIG)  # the first one is not closed, as after a kill
    assert again.end_offset == 2 and again.recovery.cut_bytes == 0
    again.append([batch(2, [b"c"])])
    assert again.read(0, 1 << 20, upper_bound=3) == log.active.log.read(0, again.active.log.size)


def test_a_change_of_the_setting_counts_for_the_next_segment(place: Path) -> None:
    log = Log.open(RealDisk(), str(place), replace(CONFIG, preallocate=False))
    assert room(place / f"{0:020}.log") == 0
    log.config = CONFIG
    log.append([batch(0, [b"a"])])
    log.roll()
    assert room(place / f"{1:020}.log") >= SEGMENT_BYTES
    log.config = replace(CONFIG, preallocate=False)
    log.append([batch(1, [b"b"])])
    log.roll()
    assert room(place / f"{1:020}.log") < SEGMENT_BYTES // 2 and room(place / f"{2:020}.log") == 0
