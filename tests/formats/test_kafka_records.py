"""A log directory that Apache Kafka 4.3.1 wrote, read by ours record for record (golden/README.md)."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from quorumlog.records import BatchHeader, Record, decode_batch, headers, stamp, verify_crc
from quorumlog.records.columnar import decode_columns
from quorumlog.records.control import EndTxnMarker, LeaderChange, UnknownControl, decode_control

GOLDEN = Path(__file__).parent / "golden"
WANT: dict[str, Any] = json.loads((GOLDEN / "kafka-4.3.1-logdir.json").read_text())
METADATA = "__cluster_metadata-0"


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kafka")
    with tarfile.open(GOLDEN / "kafka-4.3.1-logdir.tar.xz") as archive:
        archive.extractall(path, filter="data")
    return path / "node1"


def segments(partition: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(partition.glob("*.log"))]


def committed_only(chosen: list[tuple[BatchHeader, bytes]]) -> list[tuple[BatchHeader, bytes]]:
    """Without the batches of aborted transactions: looking back, a producer's next marker decides."""
    kept, committed = [], dict[int, bool]()
    for header, data in reversed(chosen):
        if header.is_control:
            (record,) = decode_batch(data, header)
            marker = decode_control(record.key, record.value)
            assert isinstance(marker, EndTxnMarker)
            committed[header.producer_id] = marker.committed
        elif not header.is_transactional or committed[header.producer_id]:
            kept.append((header, data))
    return kept[::-1]


def data_batches(partition: Path, isolation: str) -> list[tuple[BatchHeader, bytes]]:
    every = [(header, data) for data in segments(partition) for header in headers(data)]
    for header, data in every:
        verify_crc(data, header)
    if isolation == "read_committed":
        return committed_only(every)
    return [(header, data) for header, data in every if not header.is_control]


def row(header: BatchHeader, record: Record) -> list[Any]:
    """The form that the golden hashes are of."""
    return [
        record.offset,
        2 if header.is_log_append_time else 1,
        record.timestamp_ms,
        None if record.key is None else record.key.hex(),
        None if record.value is None else record.value.hex(),
        [[name, None if value is None else value.hex()] for name, value in record.headers],
    ]


@pytest.mark.parametrize("name", WANT)
def test_every_record_is_what_a_kafka_consumer_read(name: str, log_dir: Path) -> None:
    partition, isolation = name.split("/")
    chosen = data_batches(log_dir / partition, isolation)
    rows = [row(header, record) for header, data in chosen for record in decode_batch(data, header)]
    want = WANT[name]
    assert len(rows) == want["records"]
    assert rows[: len(want["first"])] == want["first"]
    assert rows[len(rows) - len(want["last"]) :] == want["last"]
    text = json.dumps(rows, separators=(",", ":"), ensure_ascii=False)
    assert hashlib.sha256(text.encode()).hexdigest() == want["sha256"]


@pytest.mark.parametrize("partition", sorted({name.split("/")[0] for name in WANT}))
def test_the_columnar_reader_agrees(partition: str, log_dir: Path) -> None:
    for data in segments(log_dir / partition):
        plain = [record for header in headers(data) if not header.is_control for record in decode_batch(data, header)]
        read = decode_columns(data, from_offset=0, to_offset=2**63 - 1, include_headers=True).to_pylist()
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
