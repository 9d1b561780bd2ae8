"""Nodes and topics of the soak with real processes: so short that a minute holds what a week holds."""

from __future__ import annotations

from jepsen.soak.cluster.topics import Kind

SECOND_MS = 1_000
OPEN_FILES_MAX = 48
METADATA_SEGMENT_BYTES, SNAPSHOT_BYTES, METADATA_KEPT_BYTES = 40_000, 40_000, 120_000
METADATA_BYTES_MAX = METADATA_KEPT_BYTES + 3 * METADATA_SEGMENT_BYTES + 4 * SNAPSHOT_BYTES
INDEX_BYTES_MAX = 1 << 20
SNAPSHOTS_MAX, DELETED_TOPICS_MAX = 8, 6
LATE_MS = 20 * SECOND_MS  # a check, the wait of what has left, a node that was just started, a busy machine
NODES = {
    "log.open.files.max": str(OPEN_FILES_MAX),
    "log.index.bytes.max": str(INDEX_BYTES_MAX),
    "log.retention.check.interval.ms": str(SECOND_MS),
    "log.initial.task.delay.ms": str(SECOND_MS),
    "log.cleaner.backoff.ms": str(SECOND_MS),
    "log.cleaner.dedupe.buffer.size": str(2 << 20),
    "log.index.check.interval.ms": str(20 * SECOND_MS),
    "log.flush.offset.checkpoint.interval.ms": str(5 * SECOND_MS),
    "metadata.log.segment.bytes": str(METADATA_SEGMENT_BYTES),
    "metadata.log.max.record.bytes.between.snapshots": str(SNAPSHOT_BYTES),
    "metadata.max.retention.bytes": str(METADATA_KEPT_BYTES),
    "metadata.retention.check.interval.ms": str(SECOND_MS),
    "metadata.max.idle.interval.ms": "100",
    "producer.id.expiration.ms": str(20 * SECOND_MS),
    "producer.id.expiration.check.interval.ms": str(5 * SECOND_MS),
    "auto.create.topics.enable": "false",
}
VALUE_BYTES_MAX = 600
SEGMENT_BYTES = 50_000
_COMMON = {
    "internal.segment.bytes": str(SEGMENT_BYTES),
    "segment.ms": str(5 * SECOND_MS),
    "file.delete.delay.ms": str(SECOND_MS),
    "min.insync.replicas": "2",
}


def _kind(name: str, keys: int = 0, **configs: str) -> Kind:
    changed = {key.replace("_", "."): value for key, value in configs.items()}
    return Kind(name, {**_COMMON, **changed}, keys, LATE_MS, VALUE_BYTES_MAX)


KINDS = (
    _kind("by-time", retention_ms=str(10 * SECOND_MS)),
    _kind("by-size", retention_ms="-1", retention_bytes="200000"),
    _kind(
        "compacted",
        keys=50,
        cleanup_policy="compact",
        min_cleanable_dirty_ratio="0.3",
        delete_retention_ms=str(5 * SECOND_MS),
    ),
)
