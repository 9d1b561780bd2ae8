"""What `log` prints."""

from __future__ import annotations

from typing import Literal, TypedDict

from quorumlog_cli.documents.schema import has_more


class BatchLine(TypedDict):
    """Offsets are inclusive. position: bytes from the start of the file."""

    kind: Literal["batch"]
    base_offset: int
    last_offset: int
    count: int
    position: int
    size: int
    crc: str
    crc_ok: bool
    codec: str
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool
    control: bool
    timestamp_type: str
    max_timestamp: int


class RecordLine(TypedDict):
    """key, value and the values of headers in base64."""

    kind: Literal["record"]
    offset: int
    timestamp: int
    key: str | None
    value: str | None
    headers: list[tuple[str, str | None]]


@has_more("what the record means, by its own fields, or key and payload as the decoder shows them")
class MeaningLine(TypedDict):
    """A record of a control batch, of the metadata, of an internal topic, or read by a decoder."""

    kind: Literal["record"]
    offset: int
    timestamp: int


class FileRecordLine(RecordLine):
    file: str


class OffsetEntry(TypedDict):
    """problem: empty if the entry is right. position: bytes."""

    kind: Literal["index"]
    offset: int
    position: int
    problem: str


class TimeEntry(TypedDict):
    kind: Literal["timeindex"]
    timestamp: int
    offset: int
    problem: str


class TransactionEntry(TypedDict):
    kind: Literal["txnindex"]
    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    problem: str


class FileOffsetEntry(OffsetEntry):
    file: str


class FileTimeEntry(TimeEntry):
    file: str


class FileTransactionEntry(TransactionEntry):
    file: str


class ProducerLine(TypedDict):
    kind: Literal["producer"]
    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    transaction_offset: int


class TextLine(TypedDict):
    kind: Literal["text"]
    file: str
    text: str


class Compaction(TypedDict):
    """-1: not known, or there was none."""

    node_id: int
    error_code: int
    error_message: str
    state: str
    reason: str
    first_dirty_offset: int
    boundary_offset: int
    clean_bytes: int
    dirty_bytes: int
    blocked_bytes: int
    dirty_percent: int
    failures: int
    failure: str
    retry_in_ms: int
    last_round_ms: int
    last_bytes_before: int
    last_bytes_after: int


class Exported(TypedDict):
    path: str
    end_offset: int


class Matches(TypedDict):
    """With --count."""

    matches: int


class HexField(TypedDict):
    position: int
    bytes: str
    name: str
    value: str


class HexDamage(TypedDict):
    kind: Literal["damage"]
    position: int
    end: int
    reason: str
    bytes: str


class ImportedPartition(TypedDict):
    partition: int
    first_offset: int
    end_offset: int
    records: int
    aborted_transactions: int


class Imported(TypedDict):
    topic: str
    resumed: bool
    settings: dict[str, str]
    partitions: list[ImportedPartition]


class Activated(TypedDict):
    """With --activate."""

    topic: str
    activated: bool


class Segment(TypedDict):
    """index, timeindex, txnindex: entries; null: there is no such file. Timestamps: milliseconds since 1970."""

    path: str
    base_offset: int
    end_offset: int
    bytes: int
    index: int | None
    timeindex: int | None
    txnindex: int | None
    snapshot: bool
    first_timestamp: int | None
    largest_timestamp: int | None


class LogVerified(TypedDict):
    path: str
    topic_id: str | None
    segments: int
    batches: int
    records: int
    bytes: int
    start_offset: int
    high_watermark: int | None
    end_offset: int
    has_gaps: bool
    faults: int


class PartitionVerified(LogVerified):
    topic: str
    partition: int


class AuditFinding(TypedDict):
    check: str
    path: str
    position: int | None
    offset: int | None
    expected: str
    found: str


class FilesVerified(TypedDict):
    files: list[LogVerified]
    faults: list[AuditFinding]


class DirectoryVerified(TypedDict):
    path: str
    cluster_id: str | None
    node_id: int | None
    clean_shutdown: bool
    logs: list[PartitionVerified]


class DirectoriesVerified(TypedDict):
    directories: list[DirectoryVerified]
    compared: int
    faults: list[AuditFinding]
    notes: list[AuditFinding]
