"""A broker of the earlier incarnation brings its records along, unless it knew more than the recovered log holds."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from recovery_world import (
    DIRECTORIES,
    LEVEL,
    LOG,
    NEW_TOPIC,
    TOPIC,
    adopted,
    config_of,
    format_,
    incarnations,
    survivor,
    write_log,
)

from jepsen.crash.faults import Fault
from jepsen.crash.struck_disk import ProcessEnded, Strike, StruckDisk
from jepsen.sim.machine.disk import SimDisk
from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
)
from quorumlog.records.rowwise.values import encode_values
from quorumlog_quorum.disk.metadata_log import METADATA_PARTITION
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.frame import MetadataRecord, encode_record
from quorumlog_quorum.metadata.image import EMPTY
from quorumlog_quorum.metadata.snapshot_records import slices_of
from quorumlog_quorum.offline.lost_majority import INTENT_NAME, RecoveryRefused
from quorumlog_quorum.snapshots import SnapshotHeading, SnapshotId, damaged_name, snapshot_name, write_snapshot
from quorumlog_server.directories.directories import open_directories
from quorumlog_storage.directory.checkpointed_log import CheckpointedLog
from quorumlog_storage.directory.directory import LOCK_NAME, read_meta
from quorumlog_storage.directory.offset_files import LOST_OFFSETS, RECOVERY_POINTS, OffsetFile
from quorumlog_storage.files.atomic import write_atomically
from quorumlog_storage.files.disk import DirectoryLocked
from quorumlog_storage.files.names import log_name, parse_directory
from quorumlog_storage.segment.batch import received_batches
from quorumlog_storage.segment.log_config import LogConfig
from tests.rules import rule

ONE, OTHER = ClusterIncarnation(1, b"\1" * 16), ClusterIncarnation(1, b"\2" * 16)
CHANGE = PartitionChangeRecord(partition=0, topic_id=TOPIC, leader=1)


def broker(*later: tuple[int, Sequence[MetadataRecord]]) -> SimDisk:
    """The recovered log ends at offset 4 of epoch 4."""
    return survivor([(4, (LEVEL, *NEW_TOPIC)), *later])


@rule("kraft 13.12")
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


@rule("kraft 13.11")
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


@rule("kraft 13.11")
@pytest.mark.parametrize(("later", "end", "epoch"), [case[1:] for case in BEYOND], ids=[case[0] for case in BEYOND])
def test_a_broker_that_knew_more_is_refused(later: tuple[int, Sequence[MetadataRecord]], end: int, epoch: int) -> None:
    disk = broker(later)
    with pytest.raises(
        RecoveryRefused, match=r"node 1 knows \d changes of partitions that the recovered cluster has lost"
    ):
        adopted(disk, ONE, end, epoch)
    assert incarnations(disk) == {FIRST} and disk.exists(LOG)


BEGUN = (BeginTransactionRecord(name="CreatePartitions"), PartitionRecord(partition=1, topic_id=TOPIC, replicas=(1,)))
LEVEL_7 = FeatureLevelRecord(name="metadata.version", level=7)
SPANNING: list[tuple[str, Sequence[MetadataRecord], Sequence[MetadataRecord], bool]] = [
    ("committed beyond", BEGUN, (NoOpRecord(), EndTransactionRecord()), False),
    ("aborted beyond", BEGUN, (AbortTransactionRecord(reason="another controller"),), True),
    ("not ended", BEGUN, (NoOpRecord(),), True),
    ("all of it beyond", (), (BeginTransactionRecord(name="DeleteTopics"), EndTransactionRecord()), True),
]


@rule("kraft 13.15")
@pytest.mark.parametrize(
    ("before", "later", "is_adopted"), [case[1:] for case in SPANNING], ids=[case[0] for case in SPANNING]
)
def test_a_broker_for_which_a_transaction_held_that_the_recovery_aborts_is_refused(
    before: Sequence[MetadataRecord], later: Sequence[MetadataRecord], is_adopted: bool
) -> None:
    """Its records lie before the end of what was recovered, and took effect with one that lies beyond."""
    disk = SimDisk()
    format_(disk, config_of())
    kept = (LEVEL_7, *NEW_TOPIC, *before)
    write_log(disk, LOG, [(4, kept), (5, later)], level=7)
    if is_adopted:
        adopted(disk, ONE, 1 + len(kept), 4)
        return
    with pytest.raises(RecoveryRefused, match=r"node 1 knows the end of a transaction .* has aborted"):
        adopted(disk, ONE, 1 + len(kept), 4)
    assert incarnations(disk) == {FIRST} and disk.exists(LOG)


@rule("kraft 13.16")
@pytest.mark.parametrize(("name", "is_adopted"), [("durability", False), ("retention.ms", True)])
def test_a_broker_that_knew_another_durability_is_refused(name: str, is_adopted: bool) -> None:
    """What it acknowledged under `replicated` may not be on its disk, and the controller would take it for synced."""
    value = "replicated" if name == "durability" else "1000"
    disk = broker((4, (ConfigRecord(resource_type=2, resource_name="t", name=name, value=value),)))
    if is_adopted:
        adopted(disk, ONE, 4, 4)
        return
    with pytest.raises(RecoveryRefused, match="node 1 knows a change of durability"):
        adopted(disk, ONE, 4, 4)
    assert incarnations(disk) == {FIRST} and disk.exists(LOG)


def with_snapshot(
    disk: SimDisk, snapshot: SnapshotId, changes: Sequence[MetadataRecord] = (), *, log: Sequence[MetadataRecord] = ()
) -> SimDisk:
    """A snapshot that was fetched: the log begins anew behind it, with `log`."""
    delta = Delta(EMPTY)
    for record in (LEVEL, *NEW_TOPIC, *changes):
        delta.replay(record)
    image = delta.apply(snapshot.offset, snapshot.epoch)
    write_snapshot(disk, LOG, SnapshotHeading(id=snapshot, last_contained_timestamp_ms=7), slices_of(image))
    points = OffsetFile(disk, f"{LOG}/{RECOVERY_POINTS}")
    held = CheckpointedLog.open(disk, LOG, LogConfig(), points, METADATA_PARTITION, clean=False, on_loss=lambda _: None)
    held.truncate_fully(snapshot.offset)
    if log:
        values = encode_values([encode_record(one, 3) for one in log], snapshot.offset, snapshot.epoch, 7)
        held.log.append(received_batches(values))
    held.close()
    return disk


@rule("kraft 13.14")
@pytest.mark.parametrize("log", [(), (NoOpRecord(),) * 3], ids=["nothing behind it", "no-ops behind it"])
@pytest.mark.parametrize(("offset", "epoch"), [(11, 4), (4, 5), (3, 5), (11, 6)])
def test_a_broker_with_a_fetched_snapshot_of_beyond_is_refused(
    offset: int, epoch: int, log: Sequence[MetadataRecord]
) -> None:
    disk = with_snapshot(broker(), SnapshotId(offset, epoch), (CHANGE,) * 6, log=log)
    with pytest.raises(RecoveryRefused, match=f"it has the snapshot at offset {offset} of epoch {epoch}"):
        adopted(disk, ONE, 4, 4)
    assert incarnations(disk) == {FIRST} and disk.exists(LOG)


def test_a_snapshot_that_was_damaged_is_one_all_the_same() -> None:
    disk = with_snapshot(broker(), SnapshotId(11, 4), (CHANGE,))
    name = snapshot_name(SnapshotId(11, 4))
    disk.rename(f"{LOG}/{name}", f"{LOG}/{damaged_name(SnapshotId(11, 4))}")
    with pytest.raises(RecoveryRefused, match="it has the snapshot at offset 11 of epoch 4"):
        adopted(disk, ONE, 4, 4)


@rule("kraft 13.14")
def test_a_log_that_holds_other_records_of_these_offsets_does_not_show_what_the_snapshot_stands_for() -> None:
    """The snapshot was fetched, and the power failed before the log began anew behind it."""
    disk = broker((4, (NoOpRecord(),) * 9))
    delta = Delta(EMPTY)
    for record in (LEVEL, *NEW_TOPIC, CHANGE):
        delta.replay(record)
    heading = SnapshotHeading(id=SnapshotId(11, 5), last_contained_timestamp_ms=7)
    write_snapshot(disk, LOG, heading, slices_of(delta.apply(11, 5)))
    with pytest.raises(RecoveryRefused, match="it has the snapshot at offset 11 of epoch 5"):
        adopted(disk, ONE, 4, 4)


def test_a_snapshot_of_what_was_recovered_or_of_records_that_the_log_has_is_none_of_beyond() -> None:
    disk = with_snapshot(broker(), SnapshotId(4, 4), log=[NoOpRecord()])
    adopted(disk, ONE, 4, 4)
    disk = broker((4, (NoOpRecord(), NoOpRecord())))
    delta = Delta(EMPTY)
    for record in (LEVEL, *NEW_TOPIC):
        delta.replay(record)
    heading = SnapshotHeading(id=SnapshotId(6, 4), last_contained_timestamp_ms=7)
    write_snapshot(disk, LOG, heading, slices_of(delta.apply(6, 4)))
    adopted(disk, ONE, 4, 4)
    assert incarnations(disk) == {ONE}


@rule("kraft 13.14")
@pytest.mark.parametrize("note", [RECOVERY_POINTS, LOST_OFFSETS])
def test_records_of_beyond_that_cannot_be_read_are_not_taken_for_none(note: str) -> None:
    disk = broker((4, (CHANGE,)))
    segment = f"{LOG}/{log_name(0)}"
    size = disk.size_of(segment)
    disk.flip_bit(segment, 8 * (size - 5))
    points = OffsetFile(disk, f"{LOG}/{RECOVERY_POINTS}")
    points.update({METADATA_PARTITION: 0})
    OffsetFile(disk, f"{LOG}/{note}").update({METADATA_PARTITION: 6})
    with pytest.raises(RecoveryRefused, match="it has records up to offset 6, of which those from 5 on cannot be read"):
        adopted(disk, ONE, 4, 4)


@rule("kraft 13.12")
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


@rule("kraft 13.12")
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
