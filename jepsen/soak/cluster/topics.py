"""What the topics of a soaked cluster must hold: per partition, what was acknowledged, and what may be there too."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from jepsen.soak.cluster.cluster import DELETE_DELAY_MS, MINUTE_MS, RETENTION_CHECK_MS
from jepsen.soak.year.model import require
from quorumlog.configs.topic import TopicConfig
from quorumlog.ids import Offset

PARTITIONS, REPLICAS = 2, 3
HOUR_MS = 60 * MINUTE_MS
BATCH_OVERHEAD_BYTES = 100
_COMMON = {
    "internal.segment.bytes": "4000",
    "segment.ms": str(HOUR_MS // 2),
    "file.delete.delay.ms": str(DELETE_DELAY_MS),
    "index.interval.bytes": "400",
    "min.insync.replicas": "2",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """keys: how many are written; 0: the records have none. late_ms: that a check of retention and what it removes may
    take. value_bytes_max: of a record."""

    name: str
    configs: Mapping[str, str]
    keys: int = 0
    late_ms: int = RETENTION_CHECK_MS * 2
    value_bytes_max: int = 150

    @property
    def parsed(self) -> TopicConfig:
        return TopicConfig.from_map(self.configs)


KINDS = (
    Kind("by-time", {**_COMMON, "retention.ms": str(2 * HOUR_MS)}),
    Kind("by-size", {**_COMMON, "retention.ms": "-1", "retention.bytes": "20000"}),
    Kind("compacted", {**_COMMON, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.3",
                       "delete.retention.ms": str(HOUR_MS)}, keys=30),
)  # fmt: skip


class Acked(NamedTuple):
    at_ms: int
    offset: Offset
    key: bytes | None
    value: bytes | None
    size: int


@dataclass(slots=True, eq=False)
class Part:
    """Of one partition of a topic's present life. sent: all values that were ever sent; only looked up.

    written: (virtual time, bytes) of the last hours, acknowledged or not.
    """

    kind: Kind
    index: int
    acked: deque[Acked] = field(default_factory=deque)
    sent: set[tuple[bytes | None, bytes | None]] = field(default_factory=set)
    written: deque[tuple[int, int]] = field(default_factory=deque)

    @property
    def name(self) -> str:
        return f"{self.kind.name}-{self.index}"

    def note_sent(self, now_ms: int, key: bytes | None, value: bytes | None) -> int:
        """Returns the bytes that it may take."""
        size = BATCH_OVERHEAD_BYTES + len(key or b"") + len(value or b"")
        self.sent.add((key, value))
        self.written.append((now_ms, size))
        config = self.kind.parsed
        kept_ms = max(config.retention_ms, config.delete_retention_ms) + 2 * (config.segment_ms + self.kind.late_ms)
        while self.written[0][0] < now_ms - kept_ms:
            self.written.popleft()
        return size

    def bytes_max(self, now_ms: int) -> float:
        """Of one replica."""
        config = self.kind.parsed
        late_ms = config.segment_ms + self.kind.late_ms
        recent = self._since(now_ms - late_ms)
        if self.kind.keys:
            clean: float = self.kind.keys * (BATCH_OVERHEAD_BYTES + self.kind.value_bytes_max + 50)
            clean += self._since(now_ms - config.delete_retention_ms - late_ms)
            return clean / (1 - config.min_cleanable_dirty_ratio) + recent + config.segment_bytes
        if config.retention_bytes >= 0:
            return config.retention_bytes + config.segment_bytes + recent
        return self._since(now_ms - config.retention_ms - late_ms)

    def _since(self, at_ms: int) -> float:
        return sum(size for at, size in self.written if at >= at_ms)

    def check(self, found: Mapping[Offset, tuple[bytes | None, bytes | None]], start: Offset, now_ms: int) -> None:
        """found: all that a reader got from the log's start on, by offset. Forgets what a policy has let go."""
        for offset, pair in found.items():
            require(pair in self.sent, "invented-record", f"{self.name}: {pair} at {offset} was never sent")
        if self.kind.keys:
            self._check_compacted(found)
            return
        config = self.kind.parsed
        while self.acked and self.acked[0].offset < start:
            gone = self.acked.popleft()
            may_go = config.retention_ms < 0 or now_ms - gone.at_ms >= config.retention_ms
            require(may_go, "deleted-too-early", f"{self.name}: {gone.offset} is gone, {start} is the start")
        for one in self.acked:
            there = found.get(one.offset)
            require(
                there == (one.key, one.value),
                "lost-record",
                f"{self.name}: {there} at {one.offset}, {one.value!r} was acknowledged",
            )

    def _check_compacted(self, found: Mapping[Offset, tuple[bytes | None, bytes | None]]) -> None:
        """The newest acknowledged record of each key is there, or a newer one of it, or it was a tombstone."""
        newest: dict[bytes | None, Acked] = {}
        for one in self.acked:
            newest[one.key] = one
        last = {key: offset for offset, (key, _) in found.items()}
        for key, one in newest.items():
            offset = last.get(key, -1)
            is_there = offset > one.offset or found.get(one.offset) == (key, one.value) or one.value is None
            require(is_there, "lost-record", f"{self.name}: {key!r} was acknowledged at {one.offset}, last is {offset}")
        self.acked = deque(sorted(newest.values(), key=lambda one: one.offset))
