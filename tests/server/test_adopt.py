"""A broker of the earlier incarnation brings its records along, unless it knew more than the recovered log holds."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from recovery_world import DIRECTORIES, LEVEL, LOG, NEW_TOPIC, TOPIC, adopted, config_of, incarnations, survivor

from jepsen.crash.faults import Fault
from jepsen.crash.struck_disk import ProcessEnded, Strike, StruckDisk
from jepsen.sim.machine.disk import SimDisk
from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog.messages.metadata_records import NoOpRecord, PartitionChangeRecord, RemoveTopicRecord
from quorumlog_cli.server.directories import open_directories
from quorumlog_quorum.lost_majority import INTENT_NAME, RecoveryRefused
from quorumlog_quorum.metadata.frame import MetadataRecord
from quorumlog_storage.atomic import write_atomically
from quorumlog_storage.directory import LOCK_NAME, read_meta
from quorumlog_storage.disk import DirectoryLocked
from quorumlog_storage.names import parse_directory

ONE, OTHER = ClusterIncarnation(1, b"\1" * 16), ClusterIncarnation(1, b"\2" * 16)
CHANGE = PartitionChangeRecord(partition=0, topic_id=TOPIC, leader=1)


def broker(*later: tuple[int, Sequence[MetadataRecord]]) -> SimDisk:
    """The recovered log ends at offset 4 of epoch 4."""
    return survivor([(4, (LEVEL, *NEW_TOPIC)), *later])


def test_an_adopted_broker_keeps_its_directories_and_begins_its_metadata_anew() -> None:
    disk = broker()
    before, log = [read_meta(disk, path).directory_id for path in DIRECTORIES], disk.copy_of(LOG)
    done = adopted(disk, ONE, 4, 4)
    assert done.directories == DIRECTORIES and incarnations(disk) == {ONE}
    assert [read_meta(disk, path).directory_id for path in DIRECTORIES] == before
    assert not disk.exists(LOG) and disk.copy_of(done.set_aside) == log
    name = parse_directory(done.set_aside.rpartition("/")[2])
    assert (name.topic, name.partition, name.mark) == ("__cluster_metadata", 0, "stray")
    assert open_directories(disk, config_of()).incarnation == ONE


@pytest.mark.parametrize(
    "later", [(4, ()), (4, (NoOpRecord(),)), (5, (NoOpRecord(), LEVEL))], ids=["less", "no-ops", "a later epoch"]
)
def test_what_concerns_no_partition_may_be_lost(later: tuple[int, Sequence[MetadataRecord]]) -> None:
    disk = broker(later) if later[1] else broker()
    adopted(disk, ONE, 4, 4)
    assert incarnations(disk) == {ONE}


BEYOND = [
    ("a leader", (4, (CHANGE,)), 4, 4),
    ("a leader of a later epoch, below the end", (5, (CHANGE,)), 99, 4),
    ("a deleted topic", (4, (NoOpRecord(), RemoveTopicRecord(topic_id=TOPIC))), 4, 4),
    ("a created topic", (4, ()), 2, 4),
]


@pytest.mark.parametrize(("later", "end", "epoch"), [case[1:] for case in BEYOND], ids=[case[0] for case in BEYOND])
def test_a_broker_that_knew_more_is_refused(later: tuple[int, Sequence[MetadataRecord]], end: int, epoch: int) -> None:
    disk = broker(later)
    with pytest.raises(
        RecoveryRefused, match=r"node 1 knows \d changes of partitions that the recovered cluster has lost"
    ):
        adopted(disk, ONE, end, epoch)
    assert incarnations(disk) == {FIRST} and disk.exists(LOG)


def test_it_goes_forward_only() -> None:
    disk = broker()
    adopted(disk, ONE, 4, 4)
    assert adopted(disk, ONE, 4, 4).directories == (), "again: nothing is left to do"
    for incarnation in (FIRST, OTHER):
        with pytest.raises(RecoveryRefused, match=f"is of cluster incarnation {ONE}, not of one before {incarnation}"):
            adopted(disk, incarnation, 4, 4)


def test_a_running_node_and_an_interrupted_recovery_are_refused() -> None:
    disk = broker()
    write_atomically(disk, f"/meta/{INTENT_NAME}", b"{}")
    with pytest.raises(RecoveryRefused, match="a recovery of node 1 was interrupted"):
        adopted(disk, ONE, 4, 4)
    disk.lock(f"/data/b/{LOCK_NAME}")
    with pytest.raises(DirectoryLocked):
        adopted(disk, ONE, 4, 4)


@pytest.mark.parametrize("fault", [Fault.KILL, Fault.POWER_CUT])
def test_it_can_be_repeated_after_an_end_at_any_call(fault: Fault) -> None:
    counting = StruckDisk(broker())
    counting.watch()
    adopted(counting, ONE, 4, 4)
    for number in range(len(counting.calls)):
        rng, disk = random.Random(number), broker()
        struck = StruckDisk(disk)
        struck.watch(number, Strike(fault, rng.choice((0.0, 0.5, 1.0))))
        with pytest.raises(ProcessEnded):
            adopted(struck, ONE, 4, 4)
        if fault is Fault.KILL:
            disk.kill()
        else:
            disk.crash(rng)
        adopted(disk, ONE, 4, 4)
        assert incarnations(disk) == {ONE} and not disk.exists(LOG)
        strays = [name for name in disk.list("/meta") if name.endswith("-stray")]
        assert len(strays) == 1, "the earlier log is kept once"
        open_directories(disk, config_of()).close()
