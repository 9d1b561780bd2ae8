"""Our engine opens what Apache Kafka 4.3.1 wrote: every record, every index, snapshot, epoch and checkpoint file."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorumlog_storage.directory.offset_files import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, parse_offsets
from quorumlog_storage.files.names import parse_snapshot_name
from quorumlog_storage.producers.producer_snapshot import decode_snapshot
from quorumlog_storage.rules.epochs import CHECKPOINT_NAME, EpochStart, LeaderEpochCache
from tests.formats.kafka_directory import (
    PARTITIONS,
    WANT,
    batches_of,
    chosen,
    must_be_what_kafka_read,
    open_partition,
    rows_of,
    unpack_kafka,
)
from tests.rules import rule


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return unpack_kafka(tmp_path)


@rule("storage 10.13")
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "scanned"])
@pytest.mark.parametrize("name", WANT)
def test_the_engine_reads_what_a_kafka_consumer_read(name: str, clean: bool, data: Path) -> None:
    partition, isolation = name.split("/")
    if not clean:  # nothing is trusted: every batch is read and checked
        (data / RECOVERY_POINTS).unlink()
    log = open_partition(data, partition, clean=clean).log
    assert not log.recovery.is_damage
    assert (log.recovery.scanned_bytes > 0) is not clean
    must_be_what_kafka_read(name, rows_of(chosen(batches_of(log), isolation)))


@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_offset_files_agree(partition: str, data: Path) -> None:
    topic, _, number = partition.rpartition("-")
    opened = open_partition(data, partition, clean=True)
    key = (topic, int(number))
    lines = {
        name: parse_offsets(name, (data / name).read_bytes()) for name in (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS)
    }
    assert opened.log.end_offset == lines[RECOVERY_POINTS][key] == lines[HIGH_WATERMARKS][key]
    assert opened.high_watermark == lines[HIGH_WATERMARKS][key]
    assert opened.log.start_offset == lines[LOG_STARTS].get(key, 0)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_epochs_that_a_scan_finds_are_those_of_the_checkpoint(partition: str, data: Path) -> None:
    checkpoint = data / partition / CHECKPOINT_NAME
    content = checkpoint.read_bytes()
    checkpoint.unlink()
    log = open_partition(data, partition, clean=False).log
    theirs = LeaderEpochCache.parse(str(checkpoint), content).entries
    first_left = batches_of(log)[0][0].base_offset  # compaction may have taken the first batches of the first epoch
    assert log.epochs.entries == tuple(EpochStart(epoch, max(start, first_left)) for epoch, start in theirs)


@rule("storage 10.9")
@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_indexes_that_we_build_are_kafka_s_bytes(partition: str, suffix: str, data: Path) -> None:
    paths = sorted((data / partition).glob(f"*{suffix}"))
    theirs = {path.name: path.read_bytes() for path in paths}
    assert theirs or suffix == ".txnindex"
    for path in paths:
        path.unlink()
    (data / RECOVERY_POINTS).unlink()
    open_partition(data, partition, clean=False).close()
    built = {path.name: path.read_bytes() for path in (data / partition).glob(f"*{suffix}")}
    assert built == theirs


@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_producers_that_a_replay_finds_are_those_of_the_snapshot(partition: str, data: Path) -> None:
    folder = data / partition
    newest = max(folder.glob("*.snapshot"), key=lambda path: parse_snapshot_name(path.name) or 0)
    theirs = decode_snapshot(str(newest), newest.read_bytes())
    for path in folder.glob("*.snapshot"):
        path.unlink()
    producers = open_partition(data, partition, clean=True).log.producers
    assert producers is not None
    ours = producers.states.entries
    assert ours.keys() == theirs.keys()
    for producer_id, entry in theirs.items():
        found = ours[producer_id]
        # of the batches Kafka keeps the newest one, and one timestamp of the producer, which a marker raises
        assert found._replace(batches=()) == entry._replace(batches=())
        assert [batch[:3] for batch in found.batches[-1:]] == [batch[:3] for batch in entry.batches[-1:]]
