"""Opening a log: epochs within its range, formats of other versions, what the report says."""

from __future__ import annotations

import zlib
from struct import Struct

import pytest
from storage_samples import PATH, append, batch, disk_with_data, open_log, raw, read_all

from jepsen.sim.machine.disk import SimDisk
from quorumlog.ids import NO_EPOCH, Offset
from quorumlog.records import decode_batch, headers
from quorumlog_storage.files.names import index_name, log_name
from quorumlog_storage.recovery.segment_scan import UnknownFormat
from quorumlog_storage.rules.epochs import CHECKPOINT_NAME, EpochStart, LeaderEpochCache
from tests.rules import rule

ENTRY = Struct(">qiI")


def message(offset: Offset, magic: int, value: bytes) -> bytes:
    """One entry of a message set as Kafka wrote them before 0.11."""
    timestamp = Struct(">q").pack(1_400_000_000_000) if magic == 1 else b""
    checked = bytes([magic, 0]) + timestamp + Struct(">ii").pack(-1, len(value)) + value
    return ENTRY.pack(offset, 4 + len(checked), zlib.crc32(checked)) + checked


def disk_with_log(content: bytes, epochs: bytes | None = b"0\n1\n1 0\n") -> SimDisk:
    disk = disk_with_data()
    disk.make_directory(PATH)
    disk.open(f"{PATH}/{log_name(0)}", create=True).pwritev([content], 0)
    if epochs is not None:
        disk.open(f"{PATH}/{CHECKPOINT_NAME}", create=True).pwritev([epochs], 0)
    return disk


GOOD = raw(batch(0, [b"a", b"b"]))


@rule("storage 3.18")
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("before", [b"", GOOD], ids=["alone", "behind a batch"])
def test_an_old_message_set_is_opened_and_nothing_is_cut(before: bytes, magic: int, clean: bool) -> None:
    content = before + message(2, magic, b"old") + message(3, magic, b"older")
    for epochs in (b"0\n1\n1 0\n", None):
        disk = disk_with_log(content, epochs)
        disk.open(f"{PATH}/{index_name(0)}", create=True)
        for _ in range(2):
            log = open_log(disk, clean=clean, recovery_point=4)
            assert (log.end_offset, log.recovery.cut_bytes) == (4, 0)
            assert disk.read_bytes(f"{PATH}/{log_name(0)}") == content
            data = log.read(2, 1 << 20, upper_bound=4)
            assert [record.value for header in headers(data) for record in decode_batch(data, header)][-2:] == [
                b"old", b"older"
            ]  # fmt: skip
            if not clean or epochs is None:
                assert log.last_epoch == (NO_EPOCH if not before else 1)  # an entry of the old formats has no epoch


@rule("storage 3.18")
@pytest.mark.parametrize("clean", [True, False])
def test_a_later_format_refuses_to_open_too(clean: bool) -> None:
    later = bytearray(raw(batch(2, [b"c"])))
    later[16], later[-1] = 3, 99  # its magic, and a content that ours does not have
    disk = disk_with_log(GOOD + later)
    with pytest.raises(UnknownFormat, match="magic 3"):
        open_log(disk, clean=clean)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    "tail",
    [
        bytes(100),
        message(2, 1, b"old")[:-1],
        message(2, 1, b"old")[:-1] + b"?",
        raw(batch(2, [b"c"]))[:16] + b"\x03" + raw(batch(2, [b"c"]))[17:],
        b"\xff" * 80,
    ],
    ids=["zeroes", "torn", "checksum", "rotten magic", "ones"],
)
def test_damage_is_not_taken_for_another_format(tail: bytes, clean: bool) -> None:
    if clean and tail[-1:] == b"?":
        return  # after a clean stop headers are read, and no checksum is computed
    log = open_log(disk_with_log(GOOD + tail), clean=clean)
    assert (log.end_offset, log.recovery.cut_bytes) == (2, len(tail))


def test_epochs_below_the_start_do_not_survive_a_crash() -> None:
    disk = disk_with_data()
    log = open_log(disk)
    for epoch in (1, 1, 2, 2, 2, 4, 4):
        append(log, [b"x" * 40] * 4, epoch)
    log.sync()
    log.advance_start(log.segment_bases[-1])
    start = log.start_offset
    disk.kill()  # the names are gone, the checkpoint says what it said
    stale = LeaderEpochCache.parse("", disk.read_bytes(f"{PATH}/{CHECKPOINT_NAME}"))
    assert stale.entries[0].start_offset < start
    again = open_log(disk, recovery_point=28)
    assert again.start_offset == start > 0
    assert again.epochs.entries == (EpochStart(4, start),)
    assert LeaderEpochCache.parse("", disk.read_bytes(f"{PATH}/{CHECKPOINT_NAME}")).entries == again.epochs.entries
    assert again.epochs.end_offset_for(1, again.end_offset) == (1, start)


@rule("storage 3.10")
@pytest.mark.parametrize("clean", [True, False])
def test_epochs_are_cut_to_the_range_of_the_log(clean: bool) -> None:
    disk = disk_with_data()
    log = open_log(disk)
    log.truncate_fully(50)
    append(log, [b"x"] * 3, epoch=5)
    log.close()
    disk.kill()
    checkpoint = disk.open(f"{PATH}/{CHECKPOINT_NAME}")
    checkpoint.truncate(0)
    checkpoint.pwritev([b"0\n4\n1 0\n2 20\n5 40\n9 53\n"], 0)
    again = open_log(disk, clean=clean, recovery_point=53)
    assert again.epochs.entries == (EpochStart(5, 50),)


def test_a_report_of_a_whole_log_says_nothing() -> None:
    disk = disk_with_data()
    log = open_log(disk)
    append(log, [b"x"])
    log.close()
    disk.kill()
    report = open_log(disk, clean=True, recovery_point=1).recovery
    assert (report.scanned_bytes, report.cut_bytes, report.reason, report.has_hole) == (0, 0, "", False)
    assert not report.lost_below_recovery_point
    assert len(read_all(open_log(disk))) == 1


@rule("storage 3.22")
def test_an_offset_that_no_index_can_hold_ends_the_log_and_is_kept() -> None:
    """Kafka splits such a segment (KAFKA-6264). What one of its early releases may have written is set aside here."""
    far = raw(batch(2**31 + 5, [b"far"]))
    disk = disk_with_log(GOOD + far)
    log = open_log(disk)
    assert (log.end_offset, log.recovery.cut_bytes) == (2, len(far)) and log.recovery.is_damage
    (kept,) = log.recovery.kept
    assert disk.read_bytes(kept) == far
