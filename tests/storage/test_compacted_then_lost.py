"""A process or the power ends after a compaction: what let records go is on the disk by then.

A record gives way to a later one of its key, and the first batches of an epoch give way to later epochs. Neither the
successor nor the start of the epoch may be lost with the page cache.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from cleaning_samples import CONFIG, add, entries, last_values, reopened, run_rounds
from storage_samples import disk_with_data

from jepsen.sim.machine.disk import SimDisk
from quorumlog_storage.log.log import Log
from quorumlog_storage.rules.epochs import EpochEnd

UNSYNCED = replace(CONFIG, durable=False)


def a_log() -> tuple[SimDisk, Log]:
    """The records of epochs 2 and 3 have all been replaced by those of epoch 5, whose first ones have, too.

    What came first is synced. The rest is in the page cache, as with `durability=replicated`.
    """
    disk = disk_with_data()
    log = reopened(disk, UNSYNCED)
    add(log, [(b"stays", b"1"), (b"k0", b"1")], epoch=1)
    log.sync()
    disk.sync_directory("/data")
    for number in range(12):
        add(log, [(b"k%d" % (number % 3), b"%d" % number), (b"last", b"%d" % number)], epoch=(2, 3, 5, 5)[number // 3])
    log.roll()
    run_rounds(log, segment_bytes=5_000)
    return disk, log


@pytest.mark.parametrize("seed", range(8))
def test_no_power_cut_takes_a_record_and_the_one_that_replaced_it(seed: int) -> None:
    disk = disk_with_data()
    log = reopened(disk, UNSYNCED)
    add(log, [(b"k%d" % number, b"old") for number in range(4)])
    log.sync()
    disk.sync_directory("/data")
    log.roll()
    for number in range(4):
        add(log, [(b"k%d" % number, b"new" * 100)])
    log.roll()
    run_rounds(log)
    before = last_values(entries(log))
    assert set(before.values()) == {b"new" * 100}
    disk.crash(random.Random(seed))
    log = reopened(disk, UNSYNCED)
    assert last_values(entries(log)) == before


@pytest.mark.parametrize("power", [False, True], ids=["process", "power"])
def test_an_epoch_ends_where_it_ended_though_its_records_are_gone(power: bool) -> None:
    """A follower that asks where epoch 1 or 2 ended must not keep records of it that lie behind."""
    disk, log = a_log()
    assert {entry.offset for entry in entries(log)} == {0, 20, 22, 24, 25}
    if power:
        disk.crash(random.Random(1))
    else:
        disk.kill()
    log = reopened(disk, UNSYNCED)
    ends = [log.epochs.end_offset_for(epoch, log.end_offset) for epoch in (1, 2, 3, 5)]
    assert ends == [EpochEnd(1, 2), EpochEnd(2, 8), EpochEnd(3, 14), EpochEnd(5, 26)]


def test_lines_of_the_checkpoint_that_contradict_the_batches_are_dropped() -> None:
    disk, log = a_log()
    log.close()
    path = f"{log.path}/leader-epoch-checkpoint"
    disk.unlink(path)
    disk.open(path, create=True).pwritev([b"0\n3\n1 0\n4 2\n9 16\n"], 0)
    disk.kill()
    log = reopened(disk, UNSYNCED)
    assert [one.epoch for one in log.epochs.entries] == [1, 4, 5], "epoch 4 may have been there; epoch 9 was not"
