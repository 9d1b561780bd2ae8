"""A power cut in a turn that rolls: no segment that recovery trusts is damaged, and no hole is left.

The recovery point may be anything here, also above the log's end: that of a deleted log of the same name was, once.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from storage_samples import PATH, SMALL, append, batch, disk_with_data, read_all

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.disk_faults import PowerCut, PowerLost, faults_at
from quorumlog.ids import Offset
from quorumlog.records import headers, verify_crc
from quorumlog_storage.files.names import log_name
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.writer.writer import AppendJob, DirectoryWriter
from tests.rules import rule

CUTS = 400
RECORDS_IN_BATCH = 3


def cut_in_a_turn_that_rolls(seed: int, config: LogConfig) -> tuple[SimDisk, Offset]:
    """The disk after the power came back, and the end that was synced before the turn."""
    rng = random.Random(seed)
    disk = disk_with_data()
    log = Log.open(disk, PATH, config)
    for number in range(rng.randrange(1, 12)):
        append(log, [b"before %d" % number] * RECORDS_IN_BATCH)
    log.sync()
    synced = log.synced_end
    writer, end = DirectoryWriter("/data"), log.end_offset
    jobs = []
    for number in range(rng.randrange(4, 12)):
        stored = batch(end, [b"turn %d" % number] * RECORDS_IN_BATCH, epoch=1 + number // 4)
        end = stored.next_offset
        jobs.append(AppendJob(log, [stored]))
    at = disk.operations + rng.randrange(1, 30)
    disk.faults = faults_at({at: PowerCut(written=rng.choice((-1, 0, 70, 200)))})
    try:
        writer.write_phase(jobs)
        writer.sync_phase()
        synced = log.synced_end
    except PowerLost:
        pass
    disk.faults = faults_at({})
    disk.crash(rng)
    return disk, synced


def check_whole(disk: SimDisk, log: Log, synced: Offset) -> None:
    """Every batch of every segment, as it lies on disk, trusted or not."""
    next_offset = log.start_offset
    for base in log.segment_bases:
        assert base == next_offset, "a hole"
        content = disk.read_bytes(f"{PATH}/{log_name(base)}")
        for header in headers(content):
            verify_crc(content, header)
            assert header.base_offset == next_offset
            next_offset = header.next_offset
    assert log.end_offset == next_offset >= synced
    assert [offset for offset, _, _ in read_all(log)] == list(range(next_offset))


@rule("log 2.12")
@pytest.mark.parametrize("seed", range(CUTS // 20))
@pytest.mark.parametrize("point", ["zero", "synced", "above the end", "any"])
def test_a_durable_log_is_whole_whatever_the_recovery_point_says(seed: int, point: str) -> None:
    for number in range(20 * seed, 20 * seed + 20):
        disk, synced = cut_in_a_turn_that_rolls(number, SMALL)
        at = {"zero": 0, "synced": synced, "above the end": 10_000, "any": random.Random(number).randrange(80)}[point]
        log = Log.open(disk, PATH, SMALL, recovery_point=at)
        check_whole(disk, log, synced)
        assert log.recovery.lost_below_recovery_point == (at > log.end_offset)


@pytest.mark.parametrize("seed", range(CUTS // 20))
@pytest.mark.parametrize("point", ["zero", "synced", "above the end"])
def test_a_log_in_the_page_cache_is_whole_with_a_point_that_was_synced_or_is_none(seed: int, point: str) -> None:
    """Its point comes from real syncs; here the log was synced once, before the turn."""
    config = replace(SMALL, durable=False)
    for number in range(20 * seed, 20 * seed + 20):
        disk, synced = cut_in_a_turn_that_rolls(number, config)
        at = {"zero": 0, "synced": synced, "above the end": 10_000}[point]
        log = Log.open(disk, PATH, config, recovery_point=at)
        check_whole(disk, log, synced)


def test_a_point_above_the_end_makes_recovery_read_the_whole_log() -> None:
    disk = disk_with_data()
    log = Log.open(disk, PATH, SMALL)
    for number in range(20):
        append(log, [b"%d" % number] * 3)
    log.close()
    sizes = [disk.open(f"{PATH}/{log_name(base)}").size() for base in log.segment_bases]
    for clean in (True, False):
        for at, scanned in ((61, sum(sizes)), (60, 0 if clean else sizes[-1])):
            disk.kill()
            again = Log.open(disk, PATH, SMALL, recovery_point=at, clean=clean)
            assert again.recovery.scanned_bytes == scanned
            assert again.recovery.lost_below_recovery_point == (at == 61)
            again.close()


@rule("storage 1.20")
@pytest.mark.parametrize("durable", [True, False])
def test_the_old_segment_is_synced_before_the_name_of_the_new_one_exists(durable: bool) -> None:
    config = replace(SMALL, durable=durable)
    disk = disk_with_data()
    log = Log.open(disk, PATH, config)
    append(log, [b"x" * 300])
    seen: list[str] = []
    disk.trace = lambda kind, path, digest: seen.append(f"{kind} {path.rpartition('/')[2]}")
    append(log, [b"y" * 300])
    assert len(log.segment_bases) == 2
    created = seen.index(f"open {log_name(1)}")
    assert (f"sync {log_name(0)}" in seen[:created]) == durable
    seen.clear()
    log.sync()
    assert (f"sync {log_name(0)}" in seen) == (not durable), "synced once"
