"""The auditor finds every damage of every file, byte by byte, or the damage does no harm; what is which stands here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from audit_world import (
    CONFIG,
    ROOT,
    Damage,
    audited,
    changed_bytes,
    checks,
    cut_files,
    files_of,
    small_directory,
    transactional_directory,
    write,
)

from jepsen.sim.machine.disk import SimDisk
from quorumlog.ids import Offset
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_view import OffsetOutOfRange
from tests.rules import rule

# Files of which a changed byte does no harm to what the log serves, or of which one replica alone cannot know it.
HINTS = {
    "recovery-point-offset-checkpoint": "a lower point is scanned longer; a higher one than the end is found",
    "replication-offset-checkpoint": "a high watermark is a hint; one behind the end is found",
    "log-start-offset-checkpoint": "a lower start brings deleted records back; one behind the end is found",
    "meta.properties": "another valid id is found by its node, which refuses it",
    "partition.metadata": "another valid topic id is found by its node, and by a comparison with other replicas",
    ".kafka_cleanshutdown": "only its existence counts",
    ".lock": "empty",
}
HINT_CHECKS = ("recovery-point", "high-watermark", "log-start", "unknown-file", "epochs-entry")  # told of the log
SHORTER_IS_TRUE = (".index",)  # what is left of an index that ends between two entries is true


def names_of(disk: SimDisk) -> list[str]:
    return [path for path in files_of(disk) if path.rpartition("/")[2] not in HINTS]


def test_an_undamaged_directory_has_no_fault_and_no_note() -> None:
    report = audited(small_directory())
    assert report.faults == [] and report.notes == []
    (log,) = [log for (topic, _), log in report.logs if topic == "t"]
    assert (log.segments > 2, log.batches, log.records, log.end, log.has_gaps) == (True, 14, 42, 42, False)


def test_the_directory_holds_a_file_of_every_kind_that_is_written() -> None:
    names = [path.rpartition("/")[2] for path in names_of(small_directory())]
    kinds = {name.rpartition(".")[2] for name in names}
    assert kinds == {"log", "index", "timeindex", "snapshot", "leader-epoch-checkpoint"}


def damages(kind: str) -> Iterator[Damage]:
    disk = small_directory()
    for path in names_of(disk):
        content = disk.read_bytes(path)
        yield from changed_bytes(path, content) if kind == "changed" else cut_files(path, content)


def is_harmless(damage: Damage) -> bool:
    """An index cut between two entries, which is empty at worst; a checkpoint without its last newline."""
    if damage.path.endswith(SHORTER_IS_TRUE):
        return damage.position % 8 == 0
    disk = small_directory()
    return damage.path.endswith("-checkpoint") and damage.content + b"\n" == disk.read_bytes(damage.path)


@rule("storage 12.1")
@pytest.mark.parametrize("kind", ["changed", "cut"])
def test_every_damage_is_found_at_its_file(kind: str) -> None:
    disk, missed, harmless, count = small_directory(), [], 0, 0
    for damage in damages(kind):
        before = disk.read_bytes(damage.path)
        write(disk, damage.path, damage.content)
        faults = audited(disk).faults
        write(disk, damage.path, before)
        count += 1
        if not faults:
            harmless += is_harmless(damage)
            missed += [] if is_harmless(damage) else [str(damage)]
    assert missed == []
    assert count > 2_000 and harmless < 100


def test_the_place_of_a_damaged_batch_is_told() -> None:
    disk = small_directory()
    path = next(path for path in files_of(disk) if path.endswith("t-0/00000000000000000000.log"))
    content = disk.read_bytes(path)
    second = 12 + int.from_bytes(content[8:12])
    write(disk, path, content[: second + 70] + b"\xff" + content[second + 71 :])
    faults = audited(disk).faults
    assert [(one.check, one.path, one.position, one.offset) for one in faults] == [("batch-checksum", path, second, 3)]
    (fault,) = faults
    assert fault.expected.startswith("checksum 0x") and fault.found.startswith("0x")


def test_what_lies_behind_a_damaged_header_is_looked_at() -> None:
    """Two faults in one segment are both told: a length that is too large does not hide the rest."""
    disk = small_directory()
    path = f"{ROOT}/t-0/{0:020d}.log"
    content = bytearray(disk.read_bytes(path))
    content[8] = 0x7F  # the length of the first batch
    content[-1] ^= 1  # the last byte of the last batch
    write(disk, path, bytes(content))
    places = [(fault.check, fault.position) for fault in audited(disk).faults if fault.path == path]
    last = max(place for place in batches_at(bytes(content), 112))
    assert places == [("batch-header", 0), ("batch-checksum", last)]


def batches_at(content: bytes, position: int) -> list[int]:
    """Where the batches begin, from one of them on."""
    found = []
    while position < len(content):
        found.append(position)
        position += 12 + int.from_bytes(content[position + 8 : position + 12])
    return found


@pytest.mark.parametrize("name", sorted(HINTS))
def test_a_changed_hint_is_told_or_is_another_valid_hint(name: str) -> None:
    """`HINTS` says why the second does no harm, or who finds it. No byte of them makes the audit fail."""
    disk = small_directory()
    for path in [path for path in files_of(disk) if path.endswith(f"/{name}")]:
        content = disk.read_bytes(path)
        for damage in changed_bytes(path, content):
            write(disk, path, damage.content)
            told = {(fault.check, fault.path) for fault in audited(disk).faults}
            assert all(path in place or check in HINT_CHECKS for check, place in told), (str(damage), told)
        write(disk, path, content)
    assert checks(disk) == set()


def records(disk: SimDisk) -> list[Offset]:
    log = Log.open(disk, f"{ROOT}/t-0", CONFIG, clean=True)
    found: list[Offset] = []
    offset = log.start_offset
    try:
        while data := log.read(offset, 1 << 20, upper_bound=log.end_offset):
            found.append(len(data))
            offset += 1
    except OffsetOutOfRange:
        pass
    return found


def test_a_shorter_index_serves_the_same_records() -> None:
    """The proof for what the auditor lets pass: an index that ends between two entries, at every length."""
    whole = records(small_directory())
    names = [path for path in files_of(small_directory()) if path.endswith(".index")]
    for path in names:
        size = len(small_directory().read_bytes(path))
        for length in range(0, size, 8):
            disk = small_directory()
            write(disk, path, disk.read_bytes(path)[:length])
            assert checks(disk) == set()
            assert records(disk) == whole


NOTE = "transaction-index-checkpoint"
NOTE_SAYS_NOTHING = (b"", b"0", b"0\n")  # then each index is taken as it is; it was checked against the batches


def test_a_log_with_transactions_has_no_fault() -> None:
    disk = transactional_directory()
    report = audited(disk)
    assert report.faults == [] and report.notes == []
    assert sum(path.endswith(".txnindex") for path in files_of(disk)) > 2


def test_every_damage_of_what_transactions_leave_is_found() -> None:
    disk, missed = transactional_directory(), []
    last = max(path for path in files_of(disk) if path.endswith(".snapshot"))
    for path in [path for path in files_of(disk) if path.endswith((".txnindex", NOTE)) or path == last]:
        whole = disk.read_bytes(path)
        for damage in [*changed_bytes(path, whole), *cut_files(path, whole)]:
            write(disk, path, damage.content)
            is_same_note = path.endswith(NOTE) and damage.content in (*NOTE_SAYS_NOTHING, whole[:-1])
            if not audited(disk).faults and not is_same_note:
                missed.append(str(damage))
        write(disk, path, whole)
    assert missed == []
