"""Logs whose last round failed: why, and when the next try is due.

Kafka marks such a log and never tries again until a restart. Here it is tried again, with growing pauses: a full disk
is freed, a damaged replica is copied anew. What failed is told by `quorumlog log explain-compaction` and the metrics.
"""

from __future__ import annotations

from typing import NamedTuple

from quorumlog_broker.partition.key import PartitionKey

FIRST_RETRY_MS = 15_000
RETRY_MAX_MS = 3_600_000


class Failure(NamedTuple):
    """times: in a row. retry_ms: on the monotonic clock. since_ms: of the first of them, wall clock."""

    reason: str
    times: int
    retry_ms: int
    since_ms: int


class Failures:
    """Used on the loop. by_key: to read."""

    def __init__(self) -> None:
        self.by_key: dict[PartitionKey, Failure] = {}

    def failed(self, key: PartitionKey, reason: str, now_ms: int, wall_ms: int) -> Failure:
        before = self.by_key.get(key)
        times = 1 if before is None else before.times + 1
        pause_ms = min(FIRST_RETRY_MS << min(times - 1, 20), RETRY_MAX_MS)
        since_ms = wall_ms if before is None else before.since_ms
        failure = self.by_key[key] = Failure(reason, times, now_ms + pause_ms, since_ms)
        return failure

    def succeeded(self, key: PartitionKey) -> None:
        self.by_key.pop(key, None)

    def may_try(self, key: PartitionKey, now_ms: int) -> bool:
        failure = self.by_key.get(key)
        return failure is None or now_ms >= failure.retry_ms

    def keep_only(self, keys: set[PartitionKey]) -> None:
        """Logs that are gone are forgotten."""
        for key in [key for key in self.by_key if key not in keys]:
            del self.by_key[key]
