"""A log directory that Apache Kafka 4.3.1 wrote, read by ours record for record (golden/README.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorumlog.records import Record, decode_batch, headers, stamp, verify_crc
from quorumlog.records.columnar import SCHEMA_WITH_HEADERS, decode_columns
from quorumlog.records.control import LeaderChange, UnknownControl, decode_control
from tests.formats.kafka_directory import (
    PARTITIONS,
    WANT,
    FoundBatch,
    chosen,
    must_be_what_kafka_read,
    rows_of,
    unpack_kafka,
)

METADATA = "__cluster_metadata-0"


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_kafka(tmp_path_factory.mktemp("kafka"))


def segments(partition: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(partition.glob("*.log"))]


def data_batches(partition: Path, isolation: str) -> list[FoundBatch]:
    every = [(header, data) for data in segments(partition) for header in headers(data)]
    for header, data in every:
        verify_crc(data, header)
    return chosen(every, isolation)


@pytest.mark.parametrize("name", WANT)
def test_every_record_is_what_a_kafka_consumer_read(name: str, log_dir: Path) -> None:
    partition, isolation = name.split("/")
    must_be_what_kafka_read(name, rows_of(data_batches(log_dir / partition, isolation)))


@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_columnar_reader_agrees(partition: str, log_dir: Path) -> None:
    for data in segments(log_dir / partition):
        plain = [record for header in headers(data) if not header.is_control for record in decode_batch(data, header)]
        read = decode_columns(data, from_offset=0, to_offset=2**63 - 1, columns=SCHEMA_WITH_HEADERS.names).to_pylist()
        assert [
            Record(
                r["offset"], r["timestamp"], r["key"], r["value"], tuple((h["key"], h["value"]) for h in r["headers"])
            )
            for r in read
        ] == plain


def test_a_stamp_makes_kafka_s_own_bytes_again(log_dir: Path) -> None:
    for data in segments(log_dir / "rolled-0"):
        for header in headers(data):
            parts = stamp(data, header, header.base_offset, header.leader_epoch)
            assert b"".join(parts) == data[header.position : header.end]


def test_the_metadata_log_s_control_records_are_understood(log_dir: Path) -> None:
    logs = segments(log_dir / METADATA)
    logs += [path.read_bytes() for path in sorted((log_dir / METADATA).glob("*.checkpoint"))]
    said = []
    for data in logs:
        for header in headers(data):
            verify_crc(data, header)
            if header.is_control:
                said += [decode_control(record.key, record.value) for record in decode_batch(data, header)]
    assert any(isinstance(record, LeaderChange) for record in said)
    assert not any(isinstance(record, UnknownControl) for record in said)
