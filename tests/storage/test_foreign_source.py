"""What an import reads of a source, and where it stops: high watermark, holes, torn tails, open transactions."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from storage_samples import disk_with_data

from jepsen.sim.machine.disk import SimDisk
from quorumlog.ids import Offset
from quorumlog.records import Record, decode_batch, encode_batch, headers
from quorumlog.records.control import EndTxnMarker, control_batch, decode_control
from quorumlog_storage.directory.offset_files import HIGH_WATERMARKS, LOG_STARTS, render_offsets
from quorumlog_storage.files.names import log_name
from quorumlog_storage.foreign.examine import Examined, examine
from quorumlog_storage.foreign.kafka_metadata import topic_settings
from quorumlog_storage.foreign.source import CLEANED, BadSource, HoleInSource, find_source

AROUND = "/data/kafka"
PATH = f"{AROUND}/t-0"


def plain(base: Offset, count: int = 2, epoch: int = 0) -> bytes:
    records = [Record(base + n, 1_000 + base + n, None, b"v") for n in range(count)]
    return encode_batch(records, base_offset=base, leader_epoch=epoch)


def transactional(base: Offset, producer: int, epoch: int = 3) -> bytes:
    return encode_batch(
        [Record(base, 2_000 + base, None, b"t")], base_offset=base, leader_epoch=epoch, producer_id=producer,
        producer_epoch=1, base_sequence=0, transactional=True,
    )  # fmt: skip


def marker(base: Offset, producer: int, *, committed: bool) -> bytes:
    return control_batch(
        [EndTxnMarker(committed=committed, coordinator_epoch=5)],
        base_offset=base, timestamp_ms=3_000, leader_epoch=3, producer_id=producer, producer_epoch=1,
    )  # fmt: skip


def disk_with(segments: dict[Offset, Sequence[bytes]], **lines: Offset) -> SimDisk:
    """lines: high_watermark, log_start, cleaned of the partition."""
    disk = disk_with_data()
    disk.make_directory(AROUND)
    disk.make_directory(PATH)
    for base, batches in segments.items():
        disk.open(f"{PATH}/{log_name(base)}", create=True).pwritev([b"".join(batches)], 0)
    names = {"high_watermark": HIGH_WATERMARKS, "log_start": LOG_STARTS, "cleaned": CLEANED}
    for what, offset in lines.items():
        disk.open(f"{AROUND}/{names[what]}", create=True).pwritev([render_offsets({("t", 0): offset})], 0)
    return disk


def examined(disk: SimDisk, **options: bool) -> Examined:
    return examine(disk, find_source(disk, PATH), **options)


def copied(disk: SimDisk, found: Examined, from_offset: Offset = 0) -> list[Offset]:
    return [header.base_offset for header, _ in found.batches(disk, from_offset)]


def test_the_copy_ends_at_the_high_watermark() -> None:
    disk = disk_with({0: [plain(0), plain(2, epoch=2), plain(4, epoch=9)]}, high_watermark=4)
    found = examined(disk)
    assert (found.end_offset, found.last_epoch, copied(disk, found)) == (4, 2, [0, 2])
    rest = examined(disk, to_end=True)
    assert (rest.end_offset, rest.last_epoch, copied(disk, rest, 2)) == (6, 9, [2, 4])


def test_without_a_high_watermark_the_end_is_not_taken_silently() -> None:
    disk = disk_with({0: [plain(0)]})
    with pytest.raises(BadSource, match="--to-end"):
        examined(disk)
    assert examined(disk, to_end=True).end_offset == 2


def test_a_source_that_ends_before_its_high_watermark_is_refused() -> None:
    with pytest.raises(BadSource, match="before its high watermark 9"):
        examined(disk_with({0: [plain(0)]}, high_watermark=9))


def test_the_copy_begins_at_the_segment_of_the_log_start() -> None:
    disk = disk_with({0: [plain(0)], 2: [plain(2), plain(4)]}, high_watermark=6, log_start=3)
    found = examined(disk)
    assert (found.source.start_offset, found.source.log_start, copied(disk, found)) == (2, 3, [2, 4])


def test_open_transactions_end_with_abort_markers_in_the_order_of_their_beginning() -> None:
    batches = [transactional(0, 11), transactional(1, 12), transactional(2, 13), marker(3, 12, committed=True)]
    disk = disk_with({0: [*batches, transactional(4, 11)]}, high_watermark=5)
    found = examined(disk)
    assert (found.aborted, found.source_end, found.end_offset, found.max_producer_id) == (2, 5, 7, 13)
    ends = list(found.batches(disk, 5))
    assert [(h.base_offset, h.producer_id, h.producer_epoch, h.max_timestamp) for h, _ in ends] == [
        (5, 11, 1, 2_004), (6, 13, 1, 2_002)
    ]  # fmt: skip
    for header, data in ends:
        (record,) = decode_batch(data, headers(data)[0])
        assert decode_control(record.key, record.value) == EndTxnMarker(committed=False, coordinator_epoch=0)
        assert header.is_control and header.is_transactional and header.leader_epoch == 3
    assert [data for _, data in examined(disk).batches(disk, 5)] == [data for _, data in ends]  # a second run


def test_a_transaction_whose_end_lies_above_the_high_watermark_is_aborted() -> None:
    disk = disk_with({0: [transactional(0, 11), marker(1, 11, committed=True)]}, high_watermark=1)
    assert examined(disk).aborted == 1
    assert examined(disk, to_end=True).aborted == 0


def test_a_hole_between_segments_is_refused_and_a_compacted_one_is_not() -> None:
    segments = {0: [plain(0)], 10: [plain(10)]}
    with pytest.raises(HoleInSource, match="offsets 2 to 9 are missing"):
        examined(disk_with(segments, high_watermark=12))
    assert examined(disk_with(segments, high_watermark=12, cleaned=10)).end_offset == 12
    assert examined(disk_with(segments, high_watermark=12), accept_gaps=True).end_offset == 12


@pytest.mark.parametrize("tail", [bytes(100), plain(2)[:-1], plain(2)[:30]], ids=["zeroes", "torn", "half a header"])
def test_what_an_append_left_behind_the_end_is_left_out(tail: bytes) -> None:
    disk = disk_with({0: [plain(0), tail]}, high_watermark=2)
    assert examined(disk).end_offset == 2
    assert examined(disk, to_end=True).end_offset == 2


def test_damage_is_refused_with_its_place() -> None:
    damaged = plain(2)[:-1] + b"?"
    with pytest.raises(BadSource, match=f"at byte {len(plain(0))}: checksum"):
        examined(disk_with({0: [plain(0), damaged, plain(4)]}, high_watermark=6))
    with pytest.raises(BadSource, match="offset 1 where 2 is next"):
        examined(disk_with({0: [plain(0), plain(1)]}, high_watermark=3))
    with pytest.raises(BadSource, match="epoch 1 at offset 2 goes back"):
        examined(disk_with({0: [plain(0, epoch=2), plain(2, epoch=1)]}, high_watermark=4))


def test_directories_that_are_no_source() -> None:
    disk = disk_with({})
    for path, why in ((PATH, "no segment"), (f"{AROUND}/u-0", "no such directory")):
        with pytest.raises(BadSource, match=why):
            find_source(disk, path)
    disk.make_directory(f"{AROUND}/t-0.{'0' * 32}-stray")
    with pytest.raises(BadSource, match="on its way out"):
        find_source(disk, f"{AROUND}/t-0.{'0' * 32}-stray")


def test_the_settings_of_kafka_s_metadata_log() -> None:
    topic = b"\x01\x02\x00" + b"\x02t" + bytes(range(16)) + b"\x00"
    sets = [b"\x01\x04\x00\x02" + b"\x02t" + b"\x0dretention.ms" + b"\x03-1" + b"\x00"]
    unset = b"\x01\x04\x00\x02" + b"\x02t" + b"\x0dretention.ms" + b"\x00" + b"\x00"
    removed = b"\x01\x09\x00" + bytes(range(16)) + b"\x00"
    for values, want in (
        ([topic, *sets], {"t": {"retention.ms": "-1"}}),
        ([topic, *sets, unset], {"t": {}}),
        ([topic, *sets, removed], {}),
    ):
        disk = disk_with({})
        folder = f"{AROUND}/__cluster_metadata-0"
        disk.make_directory(folder)
        records = [Record(n, 0, None, value) for n, value in enumerate(values)]
        disk.open(f"{folder}/{log_name(0)}", create=True).pwritev([encode_batch(records)], 0)
        assert topic_settings(disk, AROUND) == want
    assert topic_settings(disk_with({}), AROUND) is None
