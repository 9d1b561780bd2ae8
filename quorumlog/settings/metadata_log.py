"""When a node takes snapshots of its metadata, and how long it keeps them and the log before them."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorumlog_quorum.snapshots import SnapshotRetention

NEVER = 0  # of both limits between snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotConfig:
    """The defaults are Kafka's. bytes_between, interval_ms: of the log since the last snapshot; NEVER turns one off."""

    bytes_between: int = 20 << 20
    interval_ms: int = 3_600_000
    retention: SnapshotRetention = field(default_factory=SnapshotRetention)
    check_interval_ms: int = 60_000  # between two looks at retention, and at the age of the log's last segment
    segment_ms: int = 7 * 24 * 3_600_000  # the age at which a segment of the log is closed
