"""The topics of the virtual year: one of every policy, with the settings from which its bounds follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quorumlog.configs.topic import TopicConfig

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
RECORD_BYTES = 120  # of one record's value, at most
BATCH_RECORDS = 4  # at most
BATCH_BYTES_MAX = 800  # of a stored batch of so many records, whatever the codec
RETENTION_CHECK_MS = HOUR_MS // 2
CLEANER_BACKOFF_MS = HOUR_MS // 2
INDEX_INTERVAL_BYTES = 1_000
_SMALL = {"index.interval.bytes": str(INDEX_INTERVAL_BYTES)}


@dataclass(frozen=True, slots=True)
class Kind:
    """configs: of the topic. keys: how many are written; 0: the records have none.

    transactional: its batches belong to transactions. keeps_ms: DeleteRecords removes what is older; 0: it is not used.
    loses: a power cut may take what was acknowledged and not synced.
    """

    name: str
    configs: Mapping[str, str]
    keys: int = 0
    transactional: bool = False
    keeps_ms: int = 0
    loses: bool = False
    parsed: TopicConfig = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parsed", TopicConfig.from_map(self.configs))

    @property
    def compacts(self) -> bool:
        return "compact" in self.parsed.cleanup_policy

    @property
    def deletes(self) -> bool:
        return "delete" in self.parsed.cleanup_policy


def _kind(name: str, segment_bytes: int, segment_ms: int, configs: Mapping[str, str], **more: object) -> Kind:
    common = {**_SMALL, "internal.segment.bytes": str(segment_bytes), "segment.ms": str(segment_ms)}
    return Kind(name, {**common, **configs}, **more)  # type: ignore[arg-type]


KINDS = (
    _kind("by-time", 8_000, 12 * HOUR_MS, {"retention.ms": str(3 * DAY_MS)}),
    _kind("by-size", 4_000, 7 * DAY_MS, {"retention.ms": "-1", "retention.bytes": "20000"}),
    _kind(
        "append-time",
        6_000,
        DAY_MS,
        {
            "retention.ms": str(2 * DAY_MS),
            "message.timestamp.type": "LogAppendTime",
            "compression.type": "zstd",
            "segment.jitter.ms": str(HOUR_MS),
        },
    ),
    _kind(
        "compacted",
        4_000,
        DAY_MS,
        {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.3", "delete.retention.ms": str(DAY_MS)},
        keys=60,
    ),
    _kind(
        "compacted-late",
        4_000,
        7 * DAY_MS,
        {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.9",
            "min.compaction.lag.ms": str(2 * HOUR_MS),
            "max.compaction.lag.ms": str(DAY_MS),
            "delete.retention.ms": str(HOUR_MS),
        },
        keys=40,
    ),
    _kind(
        "compacted-by-time",
        4_000,
        12 * HOUR_MS,
        {"cleanup.policy": "compact,delete", "retention.ms": str(4 * DAY_MS), "min.cleanable.dirty.ratio": "0.5"},
        keys=50,
    ),
    _kind(
        "kept",
        6_000,
        2 * DAY_MS,
        {"retention.ms": "-1", "retention.bytes": "-1"},
        keeps_ms=3 * DAY_MS,
    ),
    _kind("transactions", 5_000, DAY_MS, {"retention.ms": str(2 * DAY_MS)}, transactional=True),
    _kind(
        "compacted-transactions",
        4_000,
        DAY_MS,
        {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.3", "delete.retention.ms": str(DAY_MS)},
        keys=40,
        transactional=True,
    ),
    _kind(
        "page-cache",
        6_000,
        DAY_MS,
        {"retention.ms": str(2 * DAY_MS), "durability": "replicated", "flush.messages": "40"},
        loses=True,
    ),
)
