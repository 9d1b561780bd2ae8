"""Kafka's dump tool reads every kind of file that we write, and finds no mismatch."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorumlog.records import Codec, Record, encode_batch
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.batch import received_batches
from tests.formats.golden_directory import unpack
from tests.formats.kafka_directory import GOLDEN, PARTITIONS, batches_of, open_partition, rows_of, unpack_kafka
from tests.formats.kafka_dump import SUFFIXES, dump, files_below, kafka, must_be_sound
from tests.rules import rule

ADDED = 700  # records appended to each partition: several index entries
VALUE = b"appended by quorumlog " * 10


def append_to(log: Log) -> None:
    """Batches of every codec, of one producer, in the log's last epoch and in a later one."""
    for number in range(ADDED // 10):
        base = log.end_offset
        records = [
            Record(offset=base + n, timestamp_ms=1_800_000_000_000 + base + n, key=b"%d" % n, value=VALUE)
            for n in range(10)
        ]
        batch = encode_batch(
            records, base_offset=base, codec=Codec(number % 5), producer_id=9_000_001, producer_epoch=1,
            base_sequence=10 * number, leader_epoch=log.last_epoch + (number == 30),
        )  # fmt: skip
        log.append(received_batches(batch))
    log.sync()


@rule("storage 10.12")
def test_partitions_of_kafka_that_we_appended_to(tmp_path: Path) -> None:
    tool = kafka()
    data = unpack_kafka(tmp_path)
    before = {}
    for partition in PARTITIONS:
        opened = open_partition(data, partition, clean=True)
        before[partition] = rows_of(batches_of(opened.log))
        append_to(opened.log)
        opened.close()
    for partition in PARTITIONS:
        opened = open_partition(data, partition, clean=False)
        assert not opened.log.recovery.is_damage
        rows = rows_of(batches_of(opened.log))
        assert rows[: len(before[partition])] == before[partition]
        assert len(rows) == len(before[partition]) + ADDED
        opened.close()
        files = files_below(data / partition)
        assert {path.suffix for path in files} >= {".log", ".index", ".snapshot"}
        must_be_sound(dump(tool, files, "--deep-iteration"), files)
        indexes = [path for path in files if path.suffix in (".index", ".timeindex")]
        must_be_sound(dump(tool, indexes, "--verify-index-only"), indexes)


@rule("storage 10.12")
@pytest.mark.parametrize("archive", sorted(path.name for path in GOLDEN.glob("directory-*.tar.xz")))
def test_a_data_directory_of_ours(archive: str, tmp_path: Path) -> None:
    tool = kafka()
    data = unpack(GOLDEN / archive, tmp_path / "data")
    files = [path for path in files_below(data) if path.stat().st_size]
    must_be_sound(dump(tool, files, "--deep-iteration", "--skip-record-metadata"), files)
    assert {path.suffix for path in files} <= set(SUFFIXES)


def test_a_damaged_file_is_a_complaint(tmp_path: Path) -> None:
    """So that the tests above can fail."""
    tool = kafka()
    folder = unpack_kafka(tmp_path) / "rolled-0"
    log, index = folder / "00000000000000000000.log", folder / "00000000000000000000.index"
    entries = index.read_bytes()
    index.write_bytes(entries[:-8] + (int.from_bytes(entries[-8:-4], "big") + 1).to_bytes(4, "big") + entries[-4:])
    with pytest.raises(AssertionError):
        must_be_sound(dump(tool, [index]), [index])
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    log.write_bytes(data)
    with pytest.raises(AssertionError):
        must_be_sound(dump(tool, [log], "--deep-iteration"), [log])
