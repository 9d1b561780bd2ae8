"""Loss 2: a recovery point above the log's end is believed.

A log can end below its recovery point: recovery has cut it, or the point was written for another log. What is appended
then lies below the point before it is synced; after a power cut its segments count as trusted and are not looked at.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from jepsen.sim.machine.disk_faults import PowerCut, PowerLost, faults_at
from quorumlog.records import CorruptRecords
from quorumlog_storage.directory.offset_files import RECOVERY_POINTS
from quorumlog_storage.segment.log_file import CorruptBatch
from tests.losses.partition_on_disk import DIRECTORY, INDEX, PATH, TOPIC, Partition, batch, new_disk
from tests.losses.promises import promised

CUTS = 100  # power cuts, each by a seed of its own
BEFORE = 20  # records that were synced, and one batch each
BATCHES = 40  # of the turn in which the power goes; about five fit a segment
LAST_OPERATION = 60  # of that turn, at most


def above_its_point() -> Partition:
    """As it should be."""
    partition = Partition(new_disk())
    for offset in range(BEFORE):
        partition.append(batch(offset, [b"synced %d" % offset]))
    partition.checkpoint()
    return partition


def cut_below_its_point() -> Partition:
    """Recovery has found damage in a log whose records were synced once."""
    partition = above_its_point()
    partition.kill()
    newest = max(name for name in partition.disk.list(PATH) if name.endswith(".log"))
    partition.disk.flip_bit(f"{PATH}/{newest}", 8 * 80)
    partition.open()
    return partition


def beside_a_foreign_point() -> Partition:
    """The file holds a point of a log that had this name before."""
    disk = new_disk()
    file = disk.open(f"{DIRECTORY}/{RECOVERY_POINTS}", create=True)
    file.pwritev([f"0\n1\n{TOPIC} {INDEX} 1000\n".encode()], 0)
    file.sync()
    disk.sync_directory(DIRECTORY)
    return Partition(disk)


LOGS = [above_its_point, cut_below_its_point, beside_a_foreign_point]


@pytest.mark.parametrize("prepare", LOGS)
def test_after_a_power_cut_every_record_is_whole_and_none_is_missing(prepare: Callable[[], Partition]) -> None:
    faults = [fault for seed in range(CUTS) if (fault := fault_after_a_cut(prepare(), seed))]
    with promised():
        assert not faults, f"{len(faults)} of {CUTS}: {faults[:3]}"


def fault_after_a_cut(partition: Partition, seed: int) -> str:
    """What is wrong with the log after the power went in a turn that rolls; empty if nothing is."""
    rng = random.Random(seed)
    kept, end = partition.read(), partition.end
    completed = False
    new = {end + n: b"new %d" % n for n in range(BATCHES)}
    batches = [batch(offset, [value]) for offset, value in new.items()]
    disk = partition.disk
    disk.faults = faults_at({disk.operations + rng.randrange(LAST_OPERATION): PowerCut(rng.choice((-1, 0, 7)))})
    try:
        completed = not any(outcome.error for outcome in partition.append(*batches))
    except PowerLost:
        pass
    disk.faults = faults_at({})
    partition.power_cut(rng)
    partition.open()
    try:
        found = partition.read()
    except (CorruptRecords, CorruptBatch, ValueError) as error:
        return f"seed {seed}: {error}"
    acknowledged = {**kept, **new} if completed else kept
    lost = [offset for offset in acknowledged if found.get(offset) != acknowledged[offset]]
    foreign = [offset for offset, value in found.items() if value != {**kept, **new}[offset]]
    return f"seed {seed}: lost {lost}, never written {foreign}" if lost or foreign else ""
