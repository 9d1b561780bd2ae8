"""The segments of the metadata log, when a node takes snapshots of its metadata, and how long it keeps both."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorumlog.settings.config_key import MAX_LONG
from quorumlog.settings.key import number, setting, size

NEVER = 0  # of both limits between snapshots
_WEEK_MS = 7 * 24 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRetention:
    """bytes: of the log and all snapshots together. ms: age of a snapshot's last record. -1: no limit."""

    bytes: int = setting(
        size(
            "metadata.max.retention.bytes",
            100 << 20,
            -1,
            "With more than this in the metadata log and its snapshots, the oldest go, as far as a newer snapshot "
            "stands for them; -1: no limit.",
            maximum=MAX_LONG,
        )
    )
    ms: int = setting(
        number(
            "metadata.max.retention.ms",
            _WEEK_MS,
            -1,
            "A snapshot older than this goes, and the metadata log before the next one, if there is one; -1: no limit.",
            maximum=MAX_LONG,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotConfig:
    """bytes_between, interval_ms: of the log since the last snapshot; NEVER turns one off. check_interval_ms: between
    two looks at retention, and at the age of the log's last segment."""

    segment_bytes: int = setting(
        size("metadata.log.segment.bytes", 64 << 20, 1_024, "Size at which a segment of the metadata log is closed.")
    )
    segment_ms: int = setting(
        number(
            "metadata.log.segment.ms", _WEEK_MS, 1, "Age at which a segment of the metadata log is closed.", MAX_LONG
        )
    )
    bytes_between: int = setting(
        size(
            "metadata.log.max.record.bytes.between.snapshots",
            20 << 20,
            1,
            "A node takes a snapshot of its metadata after so many bytes of the metadata log.",
        )
    )
    interval_ms: int = setting(
        number(
            "metadata.log.max.snapshot.interval.ms",
            3_600_000,
            0,
            "A node takes a snapshot of its metadata after so long, if there are new records; 0: by bytes alone.",
        )
    )
    retention: SnapshotRetention = field(default_factory=SnapshotRetention)
    check_interval_ms: int = setting(
        number(
            "metadata.retention.check.interval.ms",
            60_000,
            10,
            "How often a node looks at the two limits above and at metadata.log.segment.ms. Not in Kafka.",
        )
    )
