"""What the auditor tells of logs that are whole in themselves: offsets, notes, gaps, transactions, other replicas."""

from __future__ import annotations

from struct import Struct

import pytest
from audit_world import (
    CONFIG,
    PRODUCER,
    ROOT,
    TIME_MS,
    TOPIC_ID,
    audited,
    checks,
    fill,
    small_directory,
    transaction,
    transactional_directory,
    write,
)
from cleaning_samples import add, add_marker, run_round

from jepsen.sim.machine.disk import SimDisk
from quorumlog.records import Record, encode_batch, headers
from quorumlog_storage.audit.directory_audit import Options
from quorumlog_storage.audit.finding import MAX_KEPT, Findings, Weight
from quorumlog_storage.directory.directory import CLEAN_SHUTDOWN, format_directory
from quorumlog_storage.directory.log_checkpoints import checkpoint_high_watermarks, checkpoint_logs
from quorumlog_storage.directory.meta_properties import MetaProperties
from quorumlog_storage.directory.offset_files import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, render_offsets
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.producers.index_note import read_note
from quorumlog_storage.producers.producer_snapshot import decode_snapshot, encode_snapshot
from quorumlog_storage.segment.batch import stamped_batches
from tests.rules import rule

LINE = ("t", 0)


def last_log(disk: SimDisk) -> str:
    return max(f"{ROOT}/t-0/{name}" for name in disk.list(f"{ROOT}/t-0") if name.endswith(".log"))


def unclean(disk: SimDisk) -> SimDisk:
    disk.unlink(f"{ROOT}/{CLEAN_SHUTDOWN}")
    return disk


# --- offsets that the log directory notes ---

OFFSETS = [
    ("a recovery point behind the end", RECOVERY_POINTS, 43, "recovery-point", "recovery-point"),
    ("a high watermark behind the end", HIGH_WATERMARKS, 43, "high-watermark", None),
    ("a log start behind the end", LOG_STARTS, 43, "log-start", None),
    ("a recovery point below the end", RECOVERY_POINTS, 1, None, None),
    ("a high watermark below the end", HIGH_WATERMARKS, 1, None, None),
    ("a negative offset", RECOVERY_POINTS, -1, "offset-file", "offset-file"),
]


@pytest.mark.parametrize(("name", "offset", "clean", "after_a_crash"), [c[1:] for c in OFFSETS],
                         ids=[c[0] for c in OFFSETS])  # fmt: skip
def test_the_noted_offsets(name: str, offset: int, clean: str | None, after_a_crash: str | None) -> None:
    disk = small_directory()
    write(disk, f"{ROOT}/{name}", render_offsets({LINE: offset, ("empty", 0): 0}))
    assert checks(disk) == ({clean} if clean else set())
    assert checks(unclean(disk)) == ({after_a_crash} if after_a_crash else set())


def test_a_torn_tail_is_excused_after_a_crash_but_not_below_the_recovery_point() -> None:
    disk = small_directory()
    path = last_log(disk)
    write(disk, path, disk.read_bytes(path)[:-5])
    assert "torn-tail" in checks(disk)
    assert {"torn-tail", "recovery-point"} <= checks(unclean(disk))  # the point is the log's end: synced once
    write(disk, f"{ROOT}/{RECOVERY_POINTS}", render_offsets({LINE: 36, ("empty", 0): 0}))
    report = audited(disk)
    told = {note.check for note in report.notes}
    assert [fault for fault in report.faults if fault.check != "index-position"] == [] and "torn-tail" in told


def test_a_segment_that_is_gone_is_a_hole() -> None:
    disk = small_directory()
    bases = sorted(name for name in disk.list(f"{ROOT}/t-0") if name.endswith(".log"))
    disk.unlink(f"{ROOT}/t-0/{bases[1]}")
    report = audited(disk)
    (fault,) = [one for one in report.faults if one.check == "segment-base"]
    assert fault.path.endswith(bases[2]) and fault.offset == int(bases[2][:20])


NAMES = [
    ("t-0/stranger.txt", "unknown-file"), ("stranger", "unknown-file"),
    ("t-0/00000000000000000000.log.deleted", None), ("t-0/leader-epoch-checkpoint.tmp", None),
    ("t-0/00000000000000000000.log.40.cut", None), ("recovery-point-offset-checkpoint.1f.corrupt", None),
    ("t-0/00000000000000099999.index", None), ("lost+found", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "check"), NAMES)
def test_names(name: str, check: str | None) -> None:
    disk = small_directory()
    write(disk, f"{ROOT}/{name}", b"x")
    report = audited(disk)
    assert [fault.check for fault in report.faults] == ([check] if check else [])
    assert len(report.notes) == (0 if check or name == "lost+found" else 1)


def test_a_partition_without_its_topic_id_or_records_is_no_fault_of_its_log() -> None:
    disk = small_directory()
    disk.unlink(f"{ROOT}/empty-0/partition.metadata")
    assert checks(disk) == set()


# --- gaps ---


def with_a_gap() -> SimDisk:
    """The second segment's middle batch is gone, as compaction takes it; its indexes are left out."""
    disk = small_directory()
    bases = sorted(name for name in disk.list(f"{ROOT}/t-0") if name.endswith(".log"))
    path = f"{ROOT}/t-0/{bases[1]}"
    content = disk.read_bytes(path)
    first = 12 + int.from_bytes(content[8:12])
    second = 12 + int.from_bytes(content[first + 8 : first + 12])
    write(disk, path, content[:first] + content[first + second :])
    for suffix in (".index", ".timeindex"):
        disk.unlink(path.replace(".log", suffix))
    return disk


def test_a_gap_is_a_fault_unless_the_topic_is_compacted() -> None:
    disk = with_a_gap()
    assert checks(disk) == {"batch-gap"}
    for compacted in (frozenset({"t"}), None):
        report = audited(disk, options=Options(compacted=compacted))
        assert report.faults == []
        assert [log.has_gaps for (topic, _), log in report.logs if topic == "t"] == [True]
    assert [fault.check for fault in audited(disk, options=Options(compacted=frozenset({"u"}))).faults] == ["batch-gap"]


def test_a_topic_that_the_cleaner_knows_is_compacted() -> None:
    disk = with_a_gap()
    write(disk, f"{ROOT}/cleaner-offset-checkpoint", render_offsets({LINE: 20}))
    assert checks(disk) == set()


# --- producers and transactions ---


def rewritten_snapshot(disk: SimDisk, change: str) -> None:
    """The last producer snapshot, with a right checksum and a wrong content."""
    path = max(f"{ROOT}/t-0/{name}" for name in disk.list(f"{ROOT}/t-0") if name.endswith(".snapshot"))
    entries = decode_snapshot(path, disk.read_bytes(path))
    known = entries[PRODUCER]
    last = known.batches[-1]
    entries = {
        "another epoch": {PRODUCER: known._replace(epoch=4)},
        "another sequence": {PRODUCER: known._replace(batches=(last._replace(last_sequence=1),))},
        "a batch too few": {PRODUCER: known._replace(batches=known.batches[:-1])},
        "another time": {PRODUCER: known._replace(timestamp=5)},
        "a stranger": {PRODUCER: known, 99: known},
        "nobody": {},
    }[change]
    write(disk, path, encode_snapshot(entries))


@pytest.mark.parametrize(
    "change", ["another epoch", "another sequence", "a batch too few", "another time", "a stranger"]
)
def test_a_snapshot_that_says_what_the_batches_do_not(change: str) -> None:
    disk = small_directory()
    rewritten_snapshot(disk, change)
    assert checks(disk) == {"snapshot-producer"}


def test_a_producer_that_is_missing_may_have_expired() -> None:
    disk = small_directory()
    rewritten_snapshot(disk, "nobody")
    assert checks(disk) == set()
    assert {f.check for f in audited(disk, options=Options(nothing_expired=True)).faults} == {"snapshot-lacks"}


def test_a_snapshot_may_tell_a_markers_time_of_the_batch_before_it() -> None:
    """The first close notes the marker's time for its batch. The second one repeats that, behind a newer batch."""
    disk = SimDisk()
    disk.make_directory(ROOT)
    directories = PartitionDirectories(disk, ROOT, clean=True)
    held = PartitionLog.create(directories, LINE, TOPIC_ID, CONFIG)
    fill(held, 1)
    transaction(held, 11, committed=True)
    held.close()
    held = PartitionLog.open(directories, LINE, TOPIC_ID, CONFIG)
    at = held.log.end_offset
    data = encode_batch([Record(0, TIME_MS + at, None, b"n")], producer_id=11, producer_epoch=0, base_sequence=at)
    held.log.append(stamped_batches(data, headers(data), at, 9))
    held.close()
    assert audited(disk, f"{ROOT}/t-0").faults == []


def transactional() -> SimDisk:
    """t-0 holds an aborted transaction beside an open one, and a committed one. Its `.txnindex` is missing."""
    disk = SimDisk()
    disk.make_directory(ROOT)
    directories = PartitionDirectories(disk, ROOT)
    held = PartitionLog.create(directories, LINE, TOPIC_ID, CONFIG)
    fill(held, 1)
    transaction(held, 11, committed=False)  # [3, 5], marker at 5
    transaction(held, 12, committed=True)
    held.log.sync()
    for name in disk.list(f"{ROOT}/t-0"):
        if name.endswith(".snapshot"):
            disk.unlink(f"{ROOT}/t-0/{name}")
    return disk


ENTRY = Struct(">hqqqq")
ENTRIES = [
    ("right", [(0, 11, 3, 5, 6)], set()),
    ("another first offset", [(0, 11, 4, 5, 6)], {"txnindex-entry"}),
    ("another producer", [(0, 12, 3, 5, 6)], {"txnindex-entry"}),
    ("another last stable offset", [(0, 11, 3, 5, 5)], {"txnindex-entry"}),
    ("a committed one, too", [(0, 11, 3, 5, 6), (0, 12, 6, 8, 9)], {"txnindex-entry"}),
    ("twice", [(0, 11, 3, 5, 6), (0, 11, 3, 5, 6)], {"txnindex-entry"}),
    ("none", [], {"txnindex-lacks"}),
]


@pytest.mark.parametrize(("entries", "wanted"), [c[1:] for c in ENTRIES], ids=[c[0] for c in ENTRIES])
def test_the_index_of_aborted_transactions(entries: list[tuple[int, ...]], wanted: set[str]) -> None:
    disk = transactional()
    write(disk, f"{ROOT}/t-0/{0:020d}.txnindex", b"".join(ENTRY.pack(*entry) for entry in entries))
    assert {fault.check for fault in audited(disk, f"{ROOT}/t-0").faults} == wanted


def test_a_missing_index_of_aborted_transactions_is_a_note() -> None:
    report = audited(transactional(), f"{ROOT}/t-0")
    assert report.faults == [] and [note.check for note in report.notes] == ["txnindex-missing"]


L = 99  # stands for the last offset of the segment
TIMES = [
    ("of another batch", [(5, 2), (L, L)], {"timeindex-timestamp"}),
    ("right", [(2, 2), (5, 5), (L, L)], set()),
    ("repeated at the end", [(2, 2), (L, L), (L, L)], set()),
    ("repeated inside", [(2, 2), (2, 2), (L, L)], {"timeindex-order"}),
    ("backwards", [(5, 5), (2, 2), (L, L)], {"timeindex-order"}),
    ("behind the end", [(5, 5), (L, L), (L + 60, 5_000)], {"timeindex-offset"}),
    ("ends early", [(2, 2), (5, 5)], {"timeindex-lacks"}),
    ("empty", [], {"timeindex-lacks"}),
    ("padded", [(2, 2), (L, L), (-TIME_MS, 0)], {"timeindex-padding"}),
]


@pytest.mark.parametrize(("entries", "wanted"), [c[1:] for c in TIMES], ids=[c[0] for c in TIMES])
def test_the_time_index(entries: list[tuple[int, int]], wanted: set[str]) -> None:
    """Entries: milliseconds after the first record, and offset; a record is as many ms late as its offset says."""
    disk = small_directory()
    bases = sorted(int(name[:20]) for name in disk.list(f"{ROOT}/t-0") if name.endswith(".log"))
    last = {L: bases[1] - 1}
    packed = [Struct(">qi").pack(TIME_MS + last.get(ms, ms), last.get(offset, offset)) for ms, offset in entries]
    write(disk, f"{ROOT}/t-0/{0:020d}.timeindex", b"".join(packed))
    assert checks(disk) == wanted


# --- several replicas ---


def two_nodes() -> tuple[SimDisk, str, str]:
    """Two nodes' directories on one disk, with the same logs."""
    disk, other = small_directory(1), small_directory(2)
    _copy(other, ROOT, disk, "/other")
    return disk, ROOT, "/other"


def _copy(source: SimDisk, path: str, disk: SimDisk, to: str) -> None:
    disk.make_directory(to)
    for name in source.list(path):
        if source.is_directory(f"{path}/{name}"):
            _copy(source, f"{path}/{name}", disk, f"{to}/{name}")
        else:
            write(disk, f"{to}/{name}", source.read_bytes(f"{path}/{name}"))


def other_batch(disk: SimDisk, path: str) -> None:
    """The first batch holds other records of the same size, with a right checksum."""
    content = disk.read_bytes(path)
    size = 12 + int.from_bytes(content[8:12])
    records = [Record(n, TIME_MS + n, b"k%d" % n, b"other %d" % n, (("h", None),) * (n % 2)) for n in range(3)]
    batch = encode_batch(records, leader_epoch=1, producer_id=PRODUCER, producer_epoch=0, base_sequence=0)
    assert len(batch) == size
    write(disk, path, batch + content[size:])


def test_equal_replicas_have_no_fault() -> None:
    disk, *paths = two_nodes()
    report = audited(disk, *paths, to_end=True)
    assert report.faults == [] and report.compared == 2


@rule("storage 12.2")
def test_replicas_that_differ_below_the_high_watermark() -> None:
    disk, *paths = two_nodes()
    path = f"/other/t-0/{0:020d}.log"
    other_batch(disk, path)
    told = [(fault.check, fault.path, fault.position, fault.offset) for fault in audited(disk, *paths).faults]
    assert told == [("replicas-differ", path, 0, 0)]


def test_what_differs_behind_the_high_watermark_counts_only_where_the_nodes_were_at_rest() -> None:
    disk, *paths = two_nodes()
    write(disk, f"/other/{HIGH_WATERMARKS}", render_offsets({LINE: 0, ("empty", 0): 0}))
    other_batch(disk, f"/other/t-0/{0:020d}.log")
    assert audited(disk, *paths).faults == []
    assert [fault.check for fault in audited(disk, *paths, to_end=True).faults] == ["replicas-differ"]


def test_an_end_that_differs_counts_only_where_the_nodes_were_at_rest() -> None:
    disk = small_directory(1)
    directories = PartitionDirectories(small := small_directory(2), ROOT, clean=True)
    held = PartitionLog.open(directories, LINE, TOPIC_ID, CONFIG)
    fill(held, 1, epoch=4)
    held.close()
    _copy(small, ROOT, disk, "/other")
    assert audited(disk, ROOT, "/other").faults == []
    assert {fault.check for fault in audited(disk, ROOT, "/other", to_end=True).faults} == {"replica-end"}


def test_compacted_replicas_are_compared_record_by_record() -> None:
    disk = with_a_gap()
    _copy(small_directory(2), ROOT, disk, "/other")
    every = Options(compacted=None)
    assert audited(disk, ROOT, "/other", options=every).faults == []
    other_batch(disk, f"/other/t-0/{0:020d}.log")
    faults = audited(disk, ROOT, "/other", options=every).faults
    assert [(fault.check, fault.offset) for fault in faults] == [("replicas-differ", offset) for offset in (0, 1, 2)]


def test_another_topic_id_is_another_partition() -> None:
    disk, *paths = two_nodes()
    path = "/other/t-0/partition.metadata"
    write(disk, path, disk.read_bytes(path).replace(b"BQUF", b"BQUG"))
    assert [fault.check for fault in audited(disk, *paths).faults] == ["replica-topic-id"]


def test_a_copied_directory_and_a_partition_in_two_places() -> None:
    disk = small_directory(1)
    _copy(small_directory(1), ROOT, disk, "/copy")
    assert [fault.check for fault in audited(disk, ROOT, "/copy").faults] == ["directory-id"]
    path = "/copy/meta.properties"
    write(disk, path, disk.read_bytes(path).replace(b"directory.id=AQEB", b"directory.id=AgEB"))
    assert {fault.check for fault in audited(disk, ROOT, "/copy").faults} == {"partition-twice"}


# --- bounds ---


def test_findings_are_bounded_and_counted() -> None:
    findings = Findings()
    for number in range(MAX_KEPT + 5):
        findings.add("x", "/p", expected="a", found=str(number))
    assert len(findings.faults) == MAX_KEPT and findings.counts[Weight.FAULT] == MAX_KEPT + 5


# --- what compaction and expiry take, and the notes of it ---


def compacted_transactions(rounds: int) -> SimDisk:
    """A log of aborted and committed transactions, compacted so many times and closed cleanly."""
    disk = SimDisk()
    format_directory(disk, ROOT, MetaProperties("audit", 1, bytes([1]) * 16))
    directories = PartitionDirectories(disk, ROOT, clean=True)
    held = PartitionLog.create(directories, ("t", 0), TOPIC_ID, CONFIG)
    for number in range(12):
        add(held.log, [(b"k%d" % (number % 3), b"v")], producer_id=number % 2, producer_epoch=0, base_sequence=number,
            transactional=True)  # fmt: skip
        add_marker(held.log, number % 2, committed=number % 4 == 0)
    for _ in range(rounds):
        run_round(held.log)
    held.close()
    checkpoint_logs(directories, [held])
    write(disk, f"{ROOT}/{CLEAN_SHUTDOWN}", b'{"version":0,"brokerEpoch":5}')
    return disk


@pytest.mark.parametrize("rounds", [1, 2])
def test_an_entry_of_a_transaction_whose_records_were_compacted_away(rounds: int) -> None:
    disk = compacted_transactions(rounds)
    report = audited(disk, options=Options(compacted=frozenset({"t"})))
    assert not report.faults and report.logs[0][1].has_gaps


def test_the_note_of_indexes_names_no_segment_that_has_left() -> None:
    disk = transactional_directory()
    disk.unlink(f"{ROOT}/{CLEAN_SHUTDOWN}")
    directories = PartitionDirectories(disk, ROOT, clean=True)
    held = PartitionLog.open(directories, ("t", 0), TOPIC_ID, CONFIG)
    held.raise_start(held.log.segment_bases[-1])
    held.close()
    checkpoint_logs(directories, [held])
    checkpoint_high_watermarks(directories, {held: held.log.end_offset})
    write(disk, f"{ROOT}/{CLEAN_SHUTDOWN}", b'{"version":0,"brokerEpoch":5}')
    assert not audited(disk).faults
    noted = read_note(disk, f"{ROOT}/t-0")
    assert noted is not None and set(noted) <= set(held.log.segment_bases)


def test_a_producer_that_was_forgotten_in_between_has_no_coordinator_any_more() -> None:
    disk = SimDisk()
    format_directory(disk, ROOT, MetaProperties("audit", 1, bytes([1]) * 16))
    directories = PartitionDirectories(disk, ROOT, clean=True)
    held = PartitionLog.create(directories, ("t", 0), TOPIC_ID, CONFIG)
    transaction(held, 11, committed=True)
    held.log.expire_producers(0, 10)
    held.log.expire_producers(20, 10)
    at = held.log.end_offset
    data = encode_batch([Record(0, TIME_MS + at, None, b"o")], producer_id=11, producer_epoch=0, base_sequence=9,
                        transactional=True)  # fmt: skip
    held.log.append(stamped_batches(data, headers(data), at, 9))
    held.close()
    checkpoint_logs(directories, [held])
    write(disk, f"{ROOT}/{CLEAN_SHUTDOWN}", b'{"version":0,"brokerEpoch":5}')
    assert not audited(disk).faults
    assert {one.check for one in audited(disk, options=Options(nothing_expired=True)).faults} >= {"snapshot-producer"}


def test_meta_properties_of_zookeepers_time_are_no_fault_of_kafkas() -> None:
    disk = small_directory()
    write(disk, f"{ROOT}/meta.properties", b"#\nbroker.id=1\nversion=0\ncluster.id=c\n")
    assert checks(disk) == {"meta-properties"}
    assert [*audited(disk, options=Options(by_kafka=True)).faults] == []
