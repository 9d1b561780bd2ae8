"""Scenarios of docs/log-scenarios.md that belong to no part of the engine alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cleaning_samples import CONFIG, add, add_marker, entries, reopened, run_rounds
from hypothesis import given, settings
from hypothesis import strategies as st
from storage_samples import PATH, disk_with_data, raw, read_all
from storage_samples import batch as one_batch

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.disk_faults import Fail, Operation
from quorumlog.records import CorruptRecords
from quorumlog.records.control import EndTxnMarker, encode_control
from quorumlog_broker.replication.follower import verified_batches
from quorumlog_storage.directory.log_checkpoints import checkpoint_logs
from quorumlog_storage.directory.offset_files import RECOVERY_POINTS, parse_offsets
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.files.names import snapshot_name
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import UnexpectedAppend
from quorumlog_storage.producers.transactions import NEVER
from tests.parts import few
from tests.rules import rule

PARTITION = ("t", 0)


def snapshots(disk: SimDisk) -> list[str]:
    return [name for name in disk.list(PATH) if name.endswith(".snapshot")]


@rule("log 2.13")
@pytest.mark.parametrize("keeps_snapshots", [True, False])
def test_markers_whose_coordinator_epochs_fall_are_recovered(keeps_snapshots: bool) -> None:
    """No leader of ours appends such a marker; a log that an older broker wrote may hold it."""
    disk = disk_with_data()
    log = reopened(disk)
    for number, coordinator_epoch in enumerate((9, 4, 6)):
        add(log, [(b"k", b"v")], producer_id=7, producer_epoch=0, base_sequence=number, transactional=True)
        key, value = encode_control(EndTxnMarker(number != 1, coordinator_epoch))
        add(log, [(key, value)], producer_id=7, producer_epoch=0, transactional=True, control=True)
        log.roll()
    before, end_offset = entries(log), log.end_offset
    disk.kill()
    for name in snapshots(disk) if not keeps_snapshots else ():
        disk.unlink(f"{PATH}/{name}")
    log = reopened(disk)
    assert (entries(log), log.end_offset) == (before, end_offset) and not log.recovery.is_damage
    assert log.view.unstable.first(end_offset) == NEVER, "every transaction has ended"
    add_marker(log, 7, committed=True)
    assert [one.first_offset for index in log.view.aborted for one in index.entries()] == [2]


@rule("log 2.15")
def test_a_damaged_tail_costs_no_snapshot_of_a_sound_segment() -> None:
    disk = disk_with_data()
    log = reopened(disk)
    for number in range(12):
        add(log, [(b"k", b"v" * 40)], producer_id=7, producer_epoch=0, base_sequence=number)
    bases = log.segment_bases
    assert len(bases) > 3
    log.sync()
    path, size = log.active.log.path, log.active.log.size
    disk.open(path).pwritev([b"\xff"], size - 5)
    disk.kill()
    for _ in range(2):  # the second start finds what the first one has made of it
        log = reopened(disk)
        assert log.segment_bases == bases and log.end_offset < 12
        assert snapshots(disk) == [snapshot_name(base) for base in bases[1:]]
        entry = log.producers.entry(7) if log.producers is not None else None
        assert entry is not None and entry.last_offset == log.end_offset - 1
        disk.kill()


@pytest.mark.parametrize(
    ("offset", "left"), [(6, [1, 2, 3]), (5, [1, 2, 3]), (4, [1, 2]), (3, [1, 2]), (2, [1]), (0, [])]
)
def test_a_cut_takes_the_epochs_of_what_it_takes(offset: int, left: list[int]) -> None:
    """A follower names its last epoch in the next fetch."""
    log = reopened(disk_with_data())
    for epoch in (1, 2, 3):
        log.append([one_batch(2 * epoch - 2, [b"a"], epoch), one_batch(2 * epoch - 1, [b"b"], epoch)])
    log.sync()
    log.truncate_to(offset)
    assert [one.epoch for one in log.epochs.entries] == left


@rule("log 3.19")
@settings(max_examples=few(200), deadline=None)
@given(data=st.data())
def test_a_follower_that_gets_any_bytes_keeps_its_log(data: st.DataObject) -> None:
    """Damage anywhere in two batches that would follow, or none; as the broker's follower takes them."""
    log = reopened(disk_with_data())
    log.append([one_batch(0, [b"a", b"b"]), one_batch(2, [b"c"])])
    before, end_offset = read_all(log), log.end_offset
    sent = bytearray(raw(one_batch(3, [b"d", b"e"])) + raw(one_batch(5, [b"f"])))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(sent) - 1))
        sent[at] ^= data.draw(st.integers(1, 255))
    del sent[data.draw(st.integers(0, len(sent))) :]
    try:
        log.append(verified_batches(bytes(sent), leader_epoch=1), gaps=True)
    except (CorruptRecords, UnexpectedAppend):
        assert read_all(log) == before and log.end_offset == end_offset
    assert read_all(log)[: len(before)] == before and log.change_failure is None
    add(log, [(b"k", b"goes on")], epoch=log.epochs.last_epoch)


@rule("log 3.21")
def test_the_recovery_point_stays_where_a_snapshot_cannot_be_synced() -> None:
    """A point behind a snapshot that is torn after a power cut would make the next start believe it."""
    disk = disk_with_data()
    directories = PartitionDirectories(disk, "/data")
    held = PartitionLog.create(directories, PARTITION, bytes([1]) * 16, replace(CONFIG, durable=False))
    add(held.log, [(b"k", b"v")], producer_id=7, producer_epoch=0, base_sequence=0)
    held.log.sync()
    checkpoint_logs(directories, [held])
    add(held.log, [(b"k", b"v")], producer_id=7, producer_epoch=0, base_sequence=1)
    held.log.roll()

    def fails(operation: Operation) -> Fail | None:
        return Fail() if operation.kind == "sync" and operation.path.endswith(".snapshot") else None

    disk.faults = fails
    with pytest.raises(DiskError):
        held.log.sync()
    disk.faults = lambda _: None
    checkpoint_logs(directories, [held])
    assert held.log.synced_end == 1
    assert parse_offsets("points", disk.read_bytes(f"/data/{RECOVERY_POINTS}")) == {PARTITION: 1}


@rule("log 7.16")
def test_compacted_files_of_a_topic_that_preallocates_are_as_long_as_their_records(tmp_path: Path) -> None:
    segment_bytes = 64 << 10
    config = replace(CONFIG, segment_bytes=segment_bytes, preallocate=True)
    (tmp_path / "t-0").mkdir()
    log = Log.open(RealDisk(), str(tmp_path / "t-0"), config)
    for number in range(60):
        add(log, [(b"k%d" % (number % 5), b"v" * 4_000)])
    run_rounds(log)
    assert len(log.segment_bases) > 1
    for segment in log.view.segments[:-1]:
        found = Path(segment.log.path).stat()
        assert found.st_size == segment.size and found.st_blocks * 512 < segment.size + 16 * 1024
