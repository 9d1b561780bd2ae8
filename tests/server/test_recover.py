"""One survivor becomes the quorum: what is kept, what is refused, and a power cut at every call of the disk."""

from __future__ import annotations

import random

import pytest
from recovery_world import (
    DIRECTORIES,
    LEVEL,
    LOG,
    NEW_TOPIC,
    config_of,
    incarnations,
    log_of,
    recovered,
    survivor,
    write_log,
)
from test_format import format_

from jepsen.crash.faults import Fault
from jepsen.crash.struck_disk import ProcessEnded, Strike, StruckDisk
from jepsen.sim.machine.disk import SimDisk
from quorumlog.cluster_incarnation import FIRST
from quorumlog.messages.metadata_records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    ProducerIdsRecord,
    TopicRecord,
)
from quorumlog.records.control import VoterEndpoint
from quorumlog_quorum.disk.metadata_log import METADATA_PARTITION
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import EMPTY
from quorumlog_quorum.metadata.loader import MetadataLoader
from quorumlog_quorum.metadata.snapshot_records import records_of, slices_of
from quorumlog_quorum.offline.lost_majority import INTENT_NAME, SKIPPED_PRODUCER_IDS, RecoveryRefused
from quorumlog_quorum.offline.metadata_survey import MetadataGap, survey
from quorumlog_quorum.raft.quorum_state import QuorumState, encode_quorum_state, read_quorum_state
from quorumlog_quorum.snapshots import SnapshotHeading, SnapshotId, write_snapshot
from quorumlog_server.directories.directories import DirectoryProblem, open_directories
from quorumlog_storage.directory.directory import LOCK_NAME, read_meta
from quorumlog_storage.directory.offset_files import LOST_OFFSETS, OffsetFile
from quorumlog_storage.files.atomic import write_atomically
from quorumlog_storage.files.disk import DirectoryLocked
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.log_config import LogConfig
from tests.rules import rule


@rule("kraft 13.4", "kraft 13.7")
def test_the_survivor_is_the_whole_quorum_of_a_new_incarnation() -> None:
    disk = survivor()
    before = log_of(disk)
    write_atomically(disk, f"{LOG}/quorum-state", encode_quorum_state(QuorumState(epoch=9, leader_id=2)))
    OffsetFile(disk, f"{LOG}/{LOST_OFFSETS}").update({METADATA_PARTITION: 40})
    done = recovered(disk)
    assert (done.intent.end_offset, done.intent.last_epoch, done.intent.epoch) == (4, 4, 10)
    assert (done.cluster_id, done.was_resumed, done.intent.incarnation.number) == ("c1", False, 1)
    assert incarnations(disk) == {done.intent.incarnation}
    after = log_of(disk)
    assert after.image.incarnation == done.intent.incarnation and after.last_epoch == 10
    assert after.image.topics == before.image.topics and after.image.next_producer_id == SKIPPED_PRODUCER_IDS
    assert after.voters is not None
    (voter,) = after.voters.voters
    assert (voter.id, voter.directory_id) == (1, read_meta(disk, "/meta").directory_id)
    assert voter.endpoints == (VoterEndpoint("INTERNAL", "127.0.0.1", 9_001),)
    assert read_quorum_state(disk, f"{LOG}/quorum-state") == QuorumState(epoch=10)
    assert OffsetFile(disk, f"{LOG}/{LOST_OFFSETS}").get(METADATA_PARTITION) == 0
    assert open_directories(disk, config_of()).incarnation == done.intent.incarnation


def test_a_quorum_state_that_cannot_be_read_does_not_matter_any_more() -> None:
    disk = survivor()
    write_atomically(disk, f"{LOG}/quorum-state", b"rubbish")
    assert recovered(disk).intent.epoch == 5
    assert read_quorum_state(disk, f"{LOG}/quorum-state") == QuorumState(epoch=5)


@rule("kraft 13.6")
def test_at_an_older_level_the_directories_alone_say_it() -> None:
    disk = SimDisk()
    disk = survivor([(4, (FeatureLevelRecord(name="metadata.version", level=2), *NEW_TOPIC))])
    done = recovered(disk)
    assert incarnations(disk) == {done.intent.incarnation} and log_of(disk).image.incarnation == FIRST


@rule("kraft 13.13")
@pytest.mark.parametrize("cut", [1, 2, 3], ids=["begun", "in it", "ended"])
def test_what_the_recovery_writes_is_in_no_transaction_of_the_lost_controllers(cut: int) -> None:
    """The next active controller aborts an open one, and with it all that stands in it."""
    topic = TopicRecord(name="big", topic_id=b"b" * 16)
    ids = ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=5_000)
    change = (BeginTransactionRecord(name="CreateTopics"), topic, EndTransactionRecord())[:cut]
    level = FeatureLevelRecord(name="metadata.version", level=7)
    disk = SimDisk()
    format_(disk, config_of())
    write_log(disk, LOG, [(4, (level, *NEW_TOPIC, ids)), (5, change)], level=7)
    found = log_of(disk)
    assert found.in_transaction == (cut < 3)
    done = recovered(disk)
    after = log_of(disk)
    assert not after.in_transaction and after.image.next_producer_id == 5_000 + SKIPPED_PRODUCER_IDS
    assert after.image.incarnation == done.intent.incarnation and after.image.topics == found.image.topics
    started = loaded(disk)
    assert not started.in_transaction, "so the first activation aborts nothing"
    assert started.committed_image.next_producer_id == 5_000 + SKIPPED_PRODUCER_IDS
    assert started.committed_image.incarnation == done.intent.incarnation


def loaded(disk: SimDisk) -> MetadataLoader:
    """As a node reads its log at its start."""
    loader, log = MetadataLoader(), Log.open(disk, LOG, LogConfig(), clean=True)
    data = b"".join(disk.read_bytes(f"{LOG}/{name}") for name in disk.list(LOG) if name.endswith(".log"))
    for _ in loader.on_committed(data, log.end_offset):
        pass
    return loader


@rule("kraft 13.4")
def test_a_second_loss_is_recovered_into_a_second_incarnation() -> None:
    """Voters were added after the first recovery, and their majority was lost again."""
    disk = survivor()
    first = recovered(disk).intent.incarnation
    with pytest.raises(RecoveryRefused, match="only voter already"):
        recovered(disk)
    other = config_of(1)
    disk.unlink(f"{LOG}/00000000000000000000.log")  # a log without the set of one
    for name in disk.list(LOG):
        disk.unlink(f"{LOG}/{name}")
    write_log(disk, LOG, [(20, (LEVEL,))])
    second = recovered(disk, other).intent.incarnation
    assert (first.number, second.number) == (1, 2) and incarnations(disk) == {second}


def with_snapshot(disk: SimDisk, offset: int, epoch: int) -> None:
    records = [LEVEL, *NEW_TOPIC, ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=77)]
    heading = SnapshotHeading(id=SnapshotId(offset, epoch), last_contained_timestamp_ms=7)
    delta = Delta(EMPTY)
    for record in records:
        delta.replay(record)
    write_snapshot(disk, LOG, heading, slices_of(delta.apply(offset, epoch)))


@rule("kraft 13.7", "kraft 13.10")
@pytest.mark.parametrize(
    ("log", "snapshot"),
    [
        ("shorter", SnapshotId(50, 6)),
        ("of an older epoch, and longer", SnapshotId(3, 6)),
    ],
)
def test_a_snapshot_past_the_log_is_the_truth(log: str, snapshot: SnapshotId) -> None:
    disk = survivor([(4, (LEVEL, NoOpRecord(), NoOpRecord()))])
    with_snapshot(disk, snapshot.offset, snapshot.epoch)
    done = recovered(disk)
    assert (done.intent.end_offset, done.intent.last_epoch) == (snapshot.offset, snapshot.epoch), log
    image = log_of(disk).image
    assert "t" in image.topic_ids and image.next_producer_id == 77 + SKIPPED_PRODUCER_IDS


def test_the_log_goes_on_behind_a_snapshot() -> None:
    disk = survivor([(4, (LEVEL, *NEW_TOPIC)), (6, (NoOpRecord(),))])
    with_snapshot(disk, 4, 4)
    assert recovered(disk).intent.end_offset == 6
    assert log_of(disk).image.next_producer_id == 77 + SKIPPED_PRODUCER_IDS


@rule("kraft 13.10")
def test_a_log_that_begins_behind_every_snapshot_is_refused() -> None:
    disk = SimDisk()
    disk.make_directory("/m")
    write_log(disk, "/m", [(1, (LEVEL,))])
    disk.rename("/m/00000000000000000000.log", "/m/00000000000000000009.log")
    content = bytearray(disk.read_bytes("/m/00000000000000000009.log"))
    content[7] = 9
    write_atomically(disk, "/m/00000000000000000009.log", bytes(content))
    with pytest.raises(MetadataGap, match="lacks the records of offsets 0 to 8"):
        survey(disk, "/m")


@rule("kraft 13.9")
def test_without_unsafe_nothing_is_changed() -> None:
    disk = survivor()
    before = {path: disk.copy_of(path) for path in ("/data", "/meta")}
    with pytest.raises(RecoveryRefused, match=r"all metadata from offset 4 on .* epoch 4\).*say --unsafe"):
        recovered(disk, unsafe=False)
    after = {path: disk.copy_of(path) for path in ("/data", "/meta")}
    assert {path: {n: c for n, c in files.items() if LOCK_NAME not in n} for path, files in after.items()} == before


@rule("kraft 13.9")
def test_a_running_node_is_refused() -> None:
    for path in DIRECTORIES:
        disk = survivor()
        disk.lock(f"{path}/{LOCK_NAME}")
        with pytest.raises(DirectoryLocked):
            recovered(disk)
        assert incarnations(disk) == {FIRST}


@rule("kraft 13.9")
def test_a_broker_alone_and_an_empty_log_are_refused() -> None:
    with pytest.raises(RecoveryRefused, match="node 9 is not a controller"):
        recovered(survivor(), config_of(9, "broker"))
    with pytest.raises(RecoveryRefused, match="the metadata log in /meta is empty"):
        recovered(survivor(()))


@rule("kraft 13.9")
def test_another_directory_that_holds_more_is_refused() -> None:
    disk = survivor()
    disk.make_directory("/lost")
    write_log(disk, "/lost/__cluster_metadata-0", [(4, (LEVEL, *NEW_TOPIC)), (5, ())])
    write_log(disk, "/equal", [(4, (LEVEL, *NEW_TOPIC))])
    with pytest.raises(RecoveryRefused, match="/lost holds more: it ends at offset 5 of epoch 5, this node at 4"):
        recovered(disk, others=["/equal", "/lost"])
    assert incarnations(disk) == {FIRST}
    assert [place for place, _ in recovered(disk, others=["/equal"]).others] == ["/equal"]


@rule("kraft 13.8")
def test_a_start_waits_for_an_interrupted_recovery() -> None:
    disk = survivor()
    write_atomically(disk, f"/meta/{INTENT_NAME}", b"{}")
    with pytest.raises(DirectoryProblem, match="quorumlog storage recover --unsafe"):
        open_directories(disk, config_of())
    with pytest.raises(RecoveryRefused, match="is not what a recovery writes"):
        recovered(disk)


def calls() -> int:
    disk = StruckDisk(survivor())
    disk.watch()
    recovered(disk)
    return len(disk.calls)


@rule("kraft 13.8")
@pytest.mark.parametrize("fault", [Fault.KILL, Fault.POWER_CUT])
def test_a_power_cut_at_any_call_leaves_the_old_cluster_or_one_that_the_same_command_finishes(fault: Fault) -> None:
    count = calls()
    assert count > 60
    outcomes = {False: 0, True: 0}
    for number in range(count):
        rng = random.Random(number)
        disk, before = survivor(), log_of(survivor())
        struck = StruckDisk(disk)
        struck.watch(number, Strike(fault, rng.choice((0.0, 0.5, 1.0))))
        with pytest.raises(ProcessEnded):
            recovered(struck)
        if fault is Fault.KILL:
            disk.kill()
        else:
            disk.crash(rng)
        decided = disk.exists(f"/meta/{INTENT_NAME}")
        outcomes[decided] += 1
        if decided:
            with pytest.raises(DirectoryProblem, match="was interrupted"):
                open_directories(disk, config_of())
            done = recovered(disk)
            assert done.was_resumed
        elif incarnations(disk) == {FIRST}:
            assert list(records_of(log_of(disk).image)) == list(records_of(before.image))
            open_directories(disk, config_of()).close()
            done = recovered(disk)
        else:
            assert number >= count - 4, "only the removal of the note and the locks come after all else"
        after = log_of(disk)
        assert incarnations(disk) == {after.image.incarnation} and after.image.incarnation.number == 1
        assert after.image.topics == before.image.topics
        assert after.image.next_producer_id == SKIPPED_PRODUCER_IDS
        assert after.voters is not None and [voter.id for voter in after.voters.voters] == [1]
        open_directories(disk, config_of()).close()
    assert min(outcomes.values()) > 10
