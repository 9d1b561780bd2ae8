"""What the simulated disk adds to the contract: power cuts, faults, time and a trace."""

from __future__ import annotations

import errno
import random

import pytest

from jepsen.sim.machine.disk import SimDisk, SimFile
from jepsen.sim.machine.disk_faults import Fail, Operation, PowerCut, PowerLost, ShortWrite, faults_at, faults_by_rate
from quorumlog_storage.files.atomic import write_atomically
from quorumlog_storage.files.disk import DirectoryLocked, DiskError, FileMissing, write_fully


def _file(disk: SimDisk, path: str = "/f", content: bytes = b"") -> SimFile:
    file = disk.open(path, create=True)
    if content:
        file.pwritev([content], 0)
        file.sync()
    disk.sync_directory("/")
    return file


def _survivors(content: bytes, change: bytes, *, seeds: int = 60) -> list[bytes]:
    found = []
    for seed in range(seeds):
        disk = SimDisk()
        file = _file(disk, content=content)
        file.pwritev([change], len(content))
        disk.crash(random.Random(seed))
        found.append(disk.read_bytes("/f"))
    return found


def test_synced_bytes_survive_and_unsynced_ones_may() -> None:
    found = _survivors(b"A" * 700, b"B" * 1500)
    assert all(content[:700] == b"A" * 700 for content in found)
    assert b"A" * 700 in found
    assert b"A" * 700 + b"B" * 1500 in found
    assert any(0 < content.count(b"B") < 1500 and b"\0" not in content for content in found), "a torn write"
    assert any(b"\0" in content for content in found), "a later sector without an earlier one"


def test_a_name_needs_its_directory_synced() -> None:
    found = []
    for seed in range(30):
        disk = SimDisk()
        file = disk.open("/f", create=True)
        file.pwritev([b"x"], 0)
        file.sync()
        disk.crash(random.Random(seed))
        found.append(disk.exists("/f"))
    assert True in found and False in found


def test_an_atomic_replace_shows_the_old_or_the_new() -> None:
    for cut in range(12):
        for seed in range(20):
            disk = SimDisk()
            write_atomically(disk, "/m", b"old")
            disk.faults = faults_at({disk.operations + cut: PowerCut()})
            try:
                write_atomically(disk, "/m", b"newer")
                want = [b"newer"]
            except PowerLost:
                want = [b"old", b"newer"]
            disk.crash(random.Random(seed))
            disk.faults = faults_at({})
            assert disk.read_bytes("/m") in want


def test_a_kill_keeps_the_page_cache_and_frees_the_lock() -> None:
    disk = SimDisk()
    file = _file(disk)
    file.pwritev([b"unsynced"], 0)
    disk.lock("/.lock")
    with pytest.raises(DirectoryLocked):
        disk.lock("/.lock")
    disk.kill()
    disk.lock("/.lock")
    assert disk.read_bytes("/f") == b"unsynced"
    with pytest.raises(AssertionError, match="its process is dead"):
        file.size()


def test_a_failed_sync_is_shown_by_the_cache_and_missing_after_the_power_cut() -> None:
    disk = SimDisk()
    file = _file(disk)
    file.pwritev([b"lost"], 0)
    disk.faults = lambda operation: Fail() if operation.kind == "sync" else None
    with pytest.raises(DiskError):
        file.sync()
    disk.faults = lambda operation: None
    file.sync()  # a second sync succeeds and means nothing
    assert file.pread(0, 4) == b"lost"
    disk.crash(random.Random(1))
    assert disk.read_bytes("/f") == b""


def test_faults_strike_where_they_are_planned() -> None:
    disk = SimDisk()
    file = _file(disk)
    disk.faults = faults_at({disk.operations: ShortWrite(2), disk.operations + 1: Fail(errno.EIO)})
    with pytest.raises(DiskError, match="short write: 2 of 4"):
        write_fully(file, "/f", [b"abcd"], 0)
    with pytest.raises(DiskError) as caught:
        file.pwritev([b"efgh"], 0)
    assert caught.value.errno == errno.EIO
    assert file.pread(0, 9) == b"ab"


def test_a_torn_write_at_the_power_cut() -> None:
    disk = SimDisk()
    file = _file(disk)
    disk.faults = faults_at({disk.operations: PowerCut(written=3)})
    with pytest.raises(PowerLost):
        file.pwritev([b"abcdef"], 0)
    disk.kill()
    assert disk.read_bytes("/f") == b"abc"


def test_a_full_disk() -> None:
    disk = SimDisk(capacity_bytes=10)
    file = _file(disk)
    assert file.pwritev([b"x" * 12], 0) == 10
    assert disk.free_bytes("/") == 0
    with pytest.raises(DiskError) as caught:
        file.pwritev([b"y"], 10)
    assert caught.value.errno == errno.ENOSPC


def test_rates_and_rot() -> None:
    disk = SimDisk(faults=faults_by_rate(random.Random(3), {"pread": 0.5}))
    file = _file(disk, content=b"\x00\x00")
    results = []
    for _ in range(40):
        try:
            file.pread(0, 1)
            results.append(True)
        except DiskError:
            results.append(False)
    assert 5 < results.count(False) < 35
    disk.flip_bit("/f", 9)
    assert disk.read_bytes("/f") == b"\x00\x02"


def test_time_and_trace_are_reported_to_subscribers() -> None:
    seen: list[tuple[str, str]] = []

    def latency(operation: Operation) -> int:
        return 1_000 if operation.kind == "sync" else 1

    disk = SimDisk(latency=latency, trace=lambda kind, path, digest: seen.append((kind, path)))
    _file(disk, content=b"x")
    assert seen == [("open", "/f"), ("pwritev", "/f"), ("sync", "/f"), ("sync_directory", "/")]
    assert disk.take_latency_ns() == 1_003
    assert disk.take_latency_ns() == 0


def test_case_folding_can_be_simulated() -> None:
    disk = SimDisk(case_insensitive=True)
    _file(disk, "/Name")
    assert disk.exists("/nAME")


def test_the_same_seed_gives_the_same_survivors() -> None:
    assert _survivors(b"a" * 600, b"b" * 3000, seeds=15) == _survivors(b"a" * 600, b"b" * 3000, seeds=15)


def test_missing_parents_are_missing() -> None:
    with pytest.raises(FileMissing):
        SimDisk().open("/no/such/file", create=True)
