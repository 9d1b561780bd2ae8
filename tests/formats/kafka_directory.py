"""The log directory that Apache Kafka 4.3.1 wrote (golden/README.md), unpacked and opened by our engine.

`rows` and `hash_of` give the form that the golden file's hashes are of.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from quorumlog.records import BatchHeader, Record, decode_batch, headers
from quorumlog.records.control import EndTxnMarker, decode_control
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.log_config import LogConfig

GOLDEN = Path(__file__).parent / "golden"
WANT: dict[str, Any] = json.loads((GOLDEN / "kafka-4.3.1-logdir.json").read_text())
PARTITIONS = sorted({name.split("/")[0] for name in WANT})
READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
INDEX_INTERVALS = {"rolled-0": 512}  # bytes, as its topic was created; 4096 elsewhere
SEGMENT_BYTES = 1 << 20
READ_BYTES = 1 << 20

FoundBatch = tuple[BatchHeader, bytes]  # a header, and the buffer that it has its position in


def unpack_kafka(folder: Path) -> Path:
    """A fresh copy of the log directory, in `folder`."""
    with tarfile.open(GOLDEN / "kafka-4.3.1-logdir.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "node1"


def config_of(partition: str) -> LogConfig:
    return LogConfig(
        segment_bytes=SEGMENT_BYTES, index_interval_bytes=INDEX_INTERVALS.get(partition, 4096), remembers_producers=True
    )


def open_partition(data: Path, partition: str, *, clean: bool) -> PartitionLog:
    """As a node opens it at its start. clean: the clean-shutdown marker of the directory counts."""
    directories = PartitionDirectories(RealDisk(), str(data), clean)
    topic, _, number = partition.rpartition("-")
    key = (topic, int(number))
    (topic_id,) = [i for (i, index), name in directories.find().partitions.items() if (name, index) == key]
    return PartitionLog.open(directories, key, topic_id, config_of(partition))


def batches_of(log: Log, upper_bound: int | None = None) -> list[FoundBatch]:
    """Every batch from the log's start on, read by `Log.read`."""
    return list(_batches(log, log.end_offset if upper_bound is None else upper_bound))


def _batches(log: Log, end: int) -> Iterator[FoundBatch]:
    offset = log.start_offset
    while offset < end:
        data = bytes(log.read(offset, READ_BYTES, upper_bound=end))
        if not data:
            return
        found = headers(data)
        yield from ((header, data) for header in found if header.last_offset >= offset)
        offset = found[-1].next_offset


def chosen(every: Sequence[FoundBatch], isolation: str) -> list[FoundBatch]:
    """Batches with the records that a consumer of this isolation gets."""
    if isolation == READ_COMMITTED:
        return committed_only(every)
    return [(header, data) for header, data in every if not header.is_control]


def committed_only(every: Sequence[FoundBatch]) -> list[FoundBatch]:
    """Without the batches of aborted transactions: looking back, a producer's next marker decides."""
    kept, committed = [], dict[int, bool]()
    for header, data in reversed(every):
        if header.is_control:
            (record,) = decode_batch(data, header)
            marker = decode_control(record.key, record.value)
            assert isinstance(marker, EndTxnMarker)
            committed[header.producer_id] = marker.committed
        elif not header.is_transactional or committed[header.producer_id]:
            kept.append((header, data))
    return kept[::-1]


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


def rows_of(batches: Sequence[FoundBatch]) -> list[list[Any]]:
    return [row(header, record) for header, data in batches for record in decode_batch(data, header)]


def must_be_what_kafka_read(name: str, rows: Sequence[list[Any]]) -> None:
    """name: `<topic>-<partition>/<isolation>`."""
    want = WANT[name]
    assert len(rows) == want["records"], f"{len(rows)} records up to offset {rows[-1][0] if rows else None}"
    assert list(rows[: len(want["first"])]) == want["first"]
    assert list(rows[len(rows) - len(want["last"]) :]) == want["last"]
    assert hash_of(rows) == want["sha256"]


def hash_of(rows: Sequence[list[Any]]) -> str:
    text = json.dumps(rows, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
